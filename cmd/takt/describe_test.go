package main

import (
	"strings"
	"testing"

	"github.com/taktsched/takt"
)

// What runs of a job is told, or that it is not known, and why; nothing is said where nothing runs.
func TestDescribeSaysWhatIsNotKnown(t *testing.T) {
	for _, test := range []struct {
		status takt.JobStatus
		want   string // "": no word of it
	}{
		{takt.JobStatus{}, ""},
		{takt.JobStatus{Incomplete: "its owner is away"}, "not known, nor what waits: its owner is away"},
		{takt.JobStatus{Live: &takt.JobLive{Running: []string{"x1"}}}, "x1"},
	} {
		var a account
		a.overlapFacts(&takt.Job{Status: &test.status})
		var out strings.Builder
		if err := a.print(&out); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.Contains(text, "Running:") != (test.want != "") || !strings.Contains(text, test.want) {
			t.Errorf("%+v: %s", test.status, text)
		}
	}
}
