package engine_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/job"
)

// asked is an execution that waits for its instant, in the twin's list.
type asked struct {
	due   time.Duration // of the wall clock since the start
	state job.ExecutionState
}

// TestSoonAgainstList: with pages of two and four in memory, an engine lets exactly those begin whose instant has come, as a
// list does that is looked through from its begin to its end.
func TestSoonAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScenario()
		var list []*asked
		var wall time.Duration
		run := func(format string, args ...any) {
			if out, err := s.run(fmt.Sprintf(format, args...)); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		run("config page=2 soon=4 horizon=%ds ready=500 owner=1000s", rapid.SampledFrom([]int{2, 6, 20}).Draw(t, "horizon"))
		run("job files")
		some := func() int { return rapid.IntRange(0, len(list)-1).Draw(t, "which") }
		in := func() time.Duration {
			return time.Duration(rapid.IntRange(1, 300).Draw(t, "in")) * 100 * time.Millisecond
		}
		pass := func(d time.Duration) {
			for _, a := range list {
				if wall+d >= a.due && a.state == job.ExecutionScheduled {
					a.state = job.ExecutionQueued
				}
			}
			wall += d
		}
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
			case op < 4 || len(list) == 0:
				d := in()
				for range rapid.IntRange(1, 3).Draw(t, "times") {
					list = append(list, &asked{wall + d, job.ExecutionScheduled})
					run("trigger files in=%s", d)
				}
			case op == 4:
				i := some()
				run("cancel e%d", i+1)
				list[i].state = job.ExecutionCancelled
			case op == 5:
				i, d := some(), in()
				run("reschedule e%d in=%s", i+1, d)
				if list[i].state == job.ExecutionScheduled {
					list[i].due = wall + d
				}
			case op == 6:
				run("reload")
			case op == 7:
				d := in()
				pass(d)
				run("wall +%s", d)
			default:
				d := in()
				pass(d)
				run("advance %s quiet", d)
			}
			for i, a := range list {
				run("expect e%d %s", i+1, a.state)
			}
		}
	})
}
