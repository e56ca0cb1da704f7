package engine_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// fanIn is a history of two parents and what runs after both, with a model that only looks at rows.
type fanIn struct {
	*scenario
	r    *rapid.T
	both map[job.Instant]bool // both parents had ended at some moment
}

func (f *fanIn) do(line string) {
	f.r.Helper()
	if _, err := f.run(line); err != nil {
		f.r.Fatalf("%s: %v", line, err)
	}
}

// of are the executions of a job, by planned instant.
func (f *fanIn) of(name string) map[job.Instant]job.Execution {
	all := map[job.Instant]job.Execution{}
	for _, m := range []map[job.ExecutionID]*record{f.db.live, f.db.history} {
		for _, x := range m {
			if x.row.Job == name {
				all[x.row.PlannedAt] = x.row
			}
		}
	}
	return all
}

// some draws a parent's execution that has ended, or not; zero when there is none.
func (f *fanIn) some(ended bool) (id job.ExecutionID) {
	var ids []job.ExecutionID
	for _, name := range []string{"a", "b"} {
		for _, x := range f.of(name) {
			if x.State.Ended() == ended {
				ids = append(ids, x.ID)
			}
		}
	}
	if len(ids) == 0 {
		return id
	}
	slices.SortFunc(ids, func(a, b job.ExecutionID) int { return bytes.Compare(a[:], b[:]) })
	return rapid.SampledFrom(ids).Draw(f.r, "execution")
}

func (f *fanIn) act() {
	id := f.some(true)
	switch rapid.IntRange(0, 9).Draw(f.r, "act") {
	case 0, 1:
		f.do("advance " + rapid.SampledFrom([]string{"100ms", "2s", "5s"}).Draw(f.r, "time") + " quiet")
	case 2, 3, 4:
		if id := f.some(false); !id.IsZero() {
			f.db.post(engine.Entry{Kind: engine.EntryCancel, Execution: id})
		}
	case 5:
		if !id.IsZero() {
			f.db.post(engine.Entry{Kind: engine.EntryRerun, Execution: id})
		}
	case 6: // told twice
		if !id.IsZero() {
			f.db.post(engine.Entry{Kind: engine.EntryParentEnded, Job: f.db.named("c"), Execution: id})
		}
	case 7:
		f.do("reload" + rapid.SampledFrom([]string{"", " takeover"}).Draw(f.r, "owner"))
	default:
		f.db.inbox = rapid.Permutation(f.db.inbox).Draw(f.r, "order")
		f.do("inbox limit=" + rapid.SampledFrom([]string{"1", "2", "100"}).Draw(f.r, "limit"))
	}
	a, b := f.of("a"), f.of("b")
	for at := range a {
		f.both[at] = f.both[at] || a[at].State.Ended() && b[at].State.Ended()
	}
}

// Whatever ends when, is told twice, late or in another order, is run again and whoever owns the partition: what runs after
// both runs when both have ended, never before, and once.
func TestFanInAgainstItsTwin(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := &fanIn{scenario: newScenario(), r: r, both: map[job.Instant]bool{}}
		for _, line := range []string{"config rate=100", "job a every=5s overlap=allow", "job b every=5s overlap=allow", "job c after=a:finished,b:finished overlap=allow"} {
			f.do(line)
		}
		for range rapid.IntRange(5, 40).Draw(r, "acts") {
			f.act()
		}
		for range 3 * (len(f.db.inbox) + 2) {
			f.do("inbox")
			f.do("advance 1ms quiet")
		}
		if len(f.db.inbox) > 0 {
			r.Fatalf("entries are left: %+v", f.db.inbox)
		}
		a, b, c := f.of("a"), f.of("b"), f.of("c")
		for _, at := range slices.Sorted(maps.Keys(a)) {
			x, there := c[at]
			runs := there && x.State == job.ExecutionQueued
			both := a[at].State.Ended() && b[at].State.Ended()
			if both && !runs || runs && !f.both[at] && !both {
				r.Errorf("of %d: a %s, b %s, c %q; both had ended: %v", at, a[at].State, b[at].State, x.State, f.both[at])
			}
			if x.Round != 0 || there && x.ID != job.PlannedID(x.JobUID, at) {
				r.Errorf("of %d: c is %+v", at, x)
			}
		}
	})
}
