package partition_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// An owner whose renewals fail answers nobody from its own deadline on, 0.5 s before others may judge,
// not even with what it decided before.
func TestOwnDeadline(t *testing.T) {
	tests := []struct {
		name  string
		blind bool
	}{{"looks", false}, {"does not look (mutant)", true}}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			st, gate := gated()
			var broken atomic.Bool
			st.onRenew = func() error {
				if broken.Load() {
					return job.Errorf(job.KindUnavailable, "away", "the database is away")
				}
				return nil
			}
			st.onRows = st.onRenew
			r := newRig(t, st, func(c *partition.Config) {
				c.Switches.NoDeadline = tt.blind
				c.Lease.Renew = 400 * time.Millisecond
			})
			synctest.Wait()
			broken.Store(true)
			time.Sleep(4400 * time.Millisecond) // deadline: 4.5 s after the acquiring
			beat := <-r.call(context.Background(), engine.Heartbeat{})
			if beat.err != nil {
				t.Fatalf("before the deadline: %v", beat.err)
			}
			late := r.report("a") // stepped before the deadline, decided after it
			synctest.Wait()
			time.Sleep(200 * time.Millisecond)
			beat = <-r.call(context.Background(), engine.Heartbeat{})
			if refused := job.KindOf(beat.err) == job.KindNoOwner; refused == tt.blind {
				t.Errorf("%s: a request after the deadline was answered %v", tt.name, beat.err)
			}
			select {
			case gate <- nil:
			default: // the tenure is over and has cut its commit off
			}
			if res := <-late; (job.KindOf(res.err) == job.KindNoOwner) == tt.blind {
				t.Errorf("%s: an answer after the deadline: %v", tt.name, res.err)
			}
			r.end()
		})
	}
}

// An owner that is frozen between its commit and its answers, past its own deadline, does not send them.
func TestFrozenBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{}
		var freeze atomic.Bool
		st.onRenew = func() error { return job.Errorf(job.KindUnavailable, "away", "the database is away") }
		r := newRig(t, st, func(c *partition.Config) {
			c.Observe = func(partition.Observation) {
				if freeze.Load() {
					time.Sleep(10 * time.Second)
				}
			}
		})
		synctest.Wait()
		freeze.Store(true)
		wantKind(t, <-r.report("a"), job.KindNoOwner, "no_owner")
		if got := st.commits(); got != 1 {
			t.Errorf("%d commits, want 1", got)
		}
		freeze.Store(false)
		r.end()
	})
}

// A runner that hangs is not renewed, so that its partition goes to somebody else.
func TestWatchdog(t *testing.T) {
	for _, mutant := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			st := &memory{}
			r := newRig(t, st, func(c *partition.Config) { c.Switches.RenewWithoutStep = mutant })
			time.Sleep(20 * time.Second)
			if st.renewals() < 12 {
				t.Fatalf("an idle runner was renewed %d times in 20 s", st.renewals())
			}
			stuck := r.report(sessionHangs)
			time.Sleep(5 * time.Second)
			before := st.renewals()
			time.Sleep(20 * time.Second)
			if renewed := st.renewals() > before; renewed != mutant {
				t.Errorf("mutant %v: renewed %d times while the runner hung", mutant, st.renewals()-before)
			}
			close(r.hang)
			if res := <-stuck; (job.KindOf(res.err) == job.KindNoOwner) == mutant {
				t.Errorf("mutant %v: the call that hung got %v", mutant, res.err)
			}
			r.end()
		})
	}
}
