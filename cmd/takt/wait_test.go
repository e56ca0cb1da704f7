package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/taktsched/takt"
)

// What an execution waits for is said once until it changes.
func TestWaitNotes(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for name, c := range map[string]struct {
		looks []string // state/waits, or "down"
		want  []string
	}{
		"nothing":                  {[]string{"queued/", "running/"}, nil},
		"once":                     {[]string{"queued/no_slot", "queued/no_slot", "queued/no_slot"}, []string{"no_slot"}},
		"shards that come and go":  {[]string{"running/no_slot", "running/", "running/no_slot", "running/", "running/no_slot"}, []string{"no_slot"}},
		"something else":           {[]string{"queued/no_worker", "queued/no_slot", "queued/no_worker"}, []string{"no_worker", "no_slot", "no_worker"}},
		"something else between":   {[]string{"running/no_slot", "running/", "running/no_worker", "running/"}, []string{"no_slot", "no_worker"}},
		"a second attempt":         {[]string{"queued/no_slot", "running/", "queued/no_slot"}, []string{"no_slot", "no_slot"}},
		"no server":                {[]string{"down", "down", "queued/", "down"}, []string{"down", "down"}},
		"no server, then the same": {[]string{"queued/no_slot", "down", "queued/no_slot", "queued/no_slot"}, []string{"no_slot", "down", "no_slot"}},
	} {
		var notes waitNotes
		var got []string
		for _, look := range c.looks {
			var line string
			if look == "down" {
				line = notes.unanswered(down)
			} else {
				state, waits, _ := strings.Cut(look, "/")
				line = notes.looked(&takt.Execution{State: state, Waits: waits})
			}
			if line != "" {
				got = append(got, line)
			}
		}
		want := make([]string, len(c.want))
		for i, w := range c.want {
			if want[i] = "waits: " + w; w == "down" {
				want[i] = "no server answers, asking on: down"
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: said %q, want %q", name, got, want)
		}
	}
}
