package store_test

import (
	"testing"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"": "", "plain": "plain", "ünï 🙂": "ünï 🙂", "tab\t, line\n": "tab\t, line\n",
		"nul\x00": "nul\uFFFD", "cut \xc3": "cut \uFFFD", "\xed\xa0\x80 surrogate": "\uFFFD surrogate", "\x00\xff": "\uFFFD\uFFFD",
	} {
		if got := store.MakeClean(s); got != want || !store.Clean(got) {
			t.Errorf("MakeClean(%q) = %q, should be %q", s, got, want)
		}
		if got := store.Clean(s); got != (s == want) {
			t.Errorf("Clean(%q) = %v", s, got)
		}
	}
}

func TestAfter(t *testing.T) {
	t.Parallel()
	id := job.ExecutionID{1, 2, 3}
	var back job.ExecutionID
	if more, err := store.ParseAfter("executions", store.After("executions", id), &back); !more || err != nil || back != id {
		t.Errorf("%v, %v, %v", more, err, back)
	}
	if more, err := store.ParseAfter("executions", "", &back); more || err != nil {
		t.Errorf("the first page: %v, %v", more, err)
	}
	if _, err := store.ParseAfter("jobs", store.After("executions", id), new(string)); job.KindOf(err) != job.KindInvalid {
		t.Errorf("a place in another list: %v", err)
	}
}
