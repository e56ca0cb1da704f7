package job_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/job"
)

// The edges as the design tells them; "-" is "not there yet". Whatever is not listed is forbidden.
const (
	executionStory = `
		-                   : scheduled queued running
		scheduled           : queued running cancelled failed timed_out
		queued              : running cancelled failed timed_out
		running             : cancelling succeeded partially_succeeded failed timed_out cancelled
		cancelling          : cancelled succeeded partially_succeeded failed timed_out
		succeeded           :
		partially_succeeded : queued scheduled
		failed              : queued scheduled
		timed_out           : queued scheduled
		cancelled           : queued scheduled`
	shardStory = `
		-          : queued leased
		queued     : leased cancelled timed_out succeeded failed
		leased     : running succeeded failed timed_out cancelled retry_wait queued stopping
		running    : succeeded failed timed_out cancelled retry_wait queued stopping
		retry_wait : queued cancelled timed_out succeeded failed
		stopping   : cancelled timed_out succeeded failed
		succeeded  :
		failed     : queued
		timed_out  : queued
		cancelled  : queued`
	attemptStory = `
		-           : running
		running     : succeeded failed timed_out cancelled lost released undelivered abandoned
		succeeded   :
		failed      :
		timed_out   :
		cancelled   :
		lost        : succeeded failed
		released    :
		undelivered : succeeded failed
		abandoned   :`
)

type state interface {
	~string
}

func edges[S state](t *testing.T, story string) map[S][]S {
	t.Helper()
	told := map[S][]S{}
	for line := range strings.Lines(strings.TrimSpace(story)) {
		from, to, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("no colon in %q", line)
		}
		name := S(strings.Trim(from, " \t-"))
		told[name] = nil
		for _, s := range strings.Fields(to) {
			told[name] = append(told[name], S(s))
		}
	}
	return told
}

func checkEdges[S interface {
	state
	CanBecome(S) bool
}](t *testing.T, story string) map[S][]S {
	t.Helper()
	told := edges[S](t, story)
	for from := range told {
		for to := range told {
			if got, want := from.CanBecome(to), slices.Contains(told[from], to); got != want {
				t.Errorf("%q → %q: %v, want %v", from, to, got, want)
			}
		}
		if from.CanBecome("nonsense") || S("nonsense").CanBecome(from) {
			t.Errorf("%q has an edge with a state that does not exist", from)
		}
	}
	return told
}

func TestExecutionEdges(t *testing.T) {
	t.Parallel()
	told := checkEdges[job.ExecutionState](t, executionStory)
	ends := []job.ExecutionState{job.ExecutionSucceeded, job.ExecutionPartiallySucceeded, job.ExecutionFailed,
		job.ExecutionTimedOut, job.ExecutionCancelled}
	for s := range told {
		if got, want := s.Ended(), slices.Contains(ends, s); got != want {
			t.Errorf("%q ended: %v, want %v", s, got, want)
		}
		checkSources(t, told, s, s.Sources())
	}
}

func TestShardEdges(t *testing.T) {
	t.Parallel()
	told := checkEdges[job.ShardState](t, shardStory)
	ends := []job.ShardState{job.ShardSucceeded, job.ShardFailed, job.ShardTimedOut, job.ShardCancelled}
	for s := range told {
		if got, want := s.Ended(), slices.Contains(ends, s); got != want {
			t.Errorf("%q ended: %v, want %v", s, got, want)
		}
		checkSources(t, told, s, s.Sources())
	}
}

func TestAttemptEdges(t *testing.T) {
	t.Parallel()
	checkEdges[job.AttemptState](t, attemptStory)
}

// Sources is the table read backwards.
func checkSources[S state](t *testing.T, told map[S][]S, to S, got []S) {
	t.Helper()
	var want []S
	for from, tos := range told {
		if from != "" && slices.Contains(tos, to) {
			want = append(want, from)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("sources of %q: %v, want %v", to, got, want)
	}
}

func TestAggregate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shards string
		cancel bool
		want   job.ExecutionState
		ended  bool
	}{
		{"succeeded succeeded", false, job.ExecutionSucceeded, true},
		{"succeeded succeeded", true, job.ExecutionSucceeded, true},
		{"succeeded cancelled", true, job.ExecutionCancelled, true},
		{"failed timed_out", true, job.ExecutionCancelled, true},
		{"succeeded failed", false, job.ExecutionPartiallySucceeded, true},
		{"succeeded timed_out", false, job.ExecutionPartiallySucceeded, true},
		{"succeeded cancelled", false, job.ExecutionPartiallySucceeded, true},
		{"failed timed_out cancelled", false, job.ExecutionFailed, true},
		{"timed_out cancelled", false, job.ExecutionTimedOut, true},
		{"cancelled cancelled", false, job.ExecutionCancelled, true},
		{"succeeded queued", false, "", false},
		{"failed running", true, "", false},
		{"retry_wait", false, "", false},
		{"stopping", true, "", false},
		{"leased", false, "", false},
	} {
		var shards []job.ShardState
		for _, s := range strings.Fields(c.shards) {
			shards = append(shards, job.ShardState(s))
		}
		if got, ended := job.Aggregate(shards, c.cancel); got != c.want || ended != c.ended {
			t.Errorf("%s, cancel %v: %q, %v; want %q, %v", c.shards, c.cancel, got, ended, c.want, c.ended)
		}
	}
}

// The order of shards does not matter, an end comes with the last shard and not before, it is an end of
// the table, and success is said only when every shard succeeded.
func TestAggregateProperty(t *testing.T) {
	t.Parallel()
	all := []job.ShardState{job.ShardQueued, job.ShardLeased, job.ShardRunning, job.ShardRetryWait, job.ShardStopping,
		job.ShardSucceeded, job.ShardFailed, job.ShardTimedOut, job.ShardCancelled}
	rapid.Check(t, func(t *rapid.T) {
		from := all
		if rapid.Bool().Draw(t, "ended") {
			from = all[5:]
		}
		shards := rapid.SliceOfN(rapid.SampledFrom(from), 1, 20).Draw(t, "shards")
		cancel := rapid.Bool().Draw(t, "cancel")
		got, ended := job.Aggregate(shards, cancel)
		again, endedAgain := job.Aggregate(rapid.Permutation(shards).Draw(t, "order"), cancel)
		if got != again || ended != endedAgain {
			t.Fatalf("%v: %q; in another order %q", shards, got, again)
		}
		if live := slices.ContainsFunc(shards, func(s job.ShardState) bool { return !s.Ended() }); ended == live || ended != got.Ended() {
			t.Fatalf("%v: %q, ended %v", shards, got, ended)
		}
		whole := !slices.ContainsFunc(shards, func(s job.ShardState) bool { return s != job.ShardSucceeded })
		if (got == job.ExecutionSucceeded) != whole {
			t.Fatalf("%v: %q", shards, got)
		}
		if got == job.ExecutionPartiallySucceeded && (cancel || !slices.Contains(shards, job.ShardSucceeded)) {
			t.Fatalf("%v, cancel %v: %q", shards, cancel, got)
		}
	})
}
