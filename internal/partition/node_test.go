package partition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// A wake brings an entry in at once; without one the look each half second finds it. Whoever waits for
// the entry learns of its commit.
func TestInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{}
		r := newRig(t, st, nil)
		time.Sleep(10*time.Second + 100*time.Millisecond)
		for id, wake := range []bool{true, false, true} {
			entry := int64(id + 1)
			st.put(entry, engine.EntryTrigger)
			begun := time.Now()
			if wake {
				r.node.Wake(0)
			}
			if !r.node.AwaitEntry(t.Context(), 0, entry) {
				t.Fatal("not consumed")
			}
			took := time.Since(begun)
			if wake && took != 0 || took > 500*time.Millisecond {
				t.Errorf("entry %d (wake: %v) took %v", entry, wake, took)
			}
			time.Sleep(1100 * time.Millisecond)
		}
		if !r.node.AwaitEntry(t.Context(), 0, 1) || !r.node.AwaitEntry(t.Context(), 0, 0) {
			t.Error("an entry that was consumed before, or none, is waited for")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		st.put(99, engine.EntryTrigger)
		r.end()
		if r.node.AwaitEntry(ctx, 0, 99) {
			t.Error("an entry that nobody consumed is reported as consumed")
		}
		if !r.node.AwaitEntry(t.Context(), 0, 98) {
			t.Error("an entry that somebody else consumed is not found by asking the store")
		}
	})
}

// A full inbox page is followed by the next at once.
func TestInboxBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{}
		for id := range int64(1000) {
			st.put(id+1, engine.EntryTrigger)
		}
		begun := time.Now()
		r := newRig(t, st, func(c *partition.Config) { c.InboxPage = 10 })
		if !r.node.AwaitEntry(t.Context(), 0, 1000) {
			t.Fatal("not consumed")
		}
		if took := time.Since(begun); took >= 500*time.Millisecond {
			t.Errorf("1,000 entries in pages of 10 took %v of virtual time", took)
		}
		r.end()
	})
}

// At a crash point the node dies without a word: nothing is committed or answered from there on, nothing
// is released, and a successor takes over what was committed.
func TestCrashPoints(t *testing.T) {
	tests := []struct {
		point     string
		committed int
	}{
		{"before_commit/report", 0},
		{"after_commit/report", 1},
		{"between_effects/report", 1},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			st := refusing(gate)
			r := newRig(t, st, func(c *partition.Config) {
				c.Crash = func(point string) {
					if point == tt.point {
						panic(point)
					}
				}
			})
			synctest.Wait()
			opener := r.call(context.Background(), engine.SessionOpen{}) // gathers the others into one step
			synctest.Wait()
			calls := []<-chan result{r.report("a"), r.report("a"), r.report("a")}
			synctest.Wait()
			close(gate)
			if res := <-opener; res.err != nil {
				t.Fatalf("%s: opener: %v", tt.point, res.err)
			}
			answered := 0
			for _, ch := range calls {
				if res := <-ch; res.err == nil {
					answered++
				}
			}
			if err := <-r.done; !errors.Is(err, partition.ErrCrashed) {
				t.Errorf("Run: %v", err)
			}
			if got := st.commits() - 1; got != tt.committed {
				t.Errorf("%s: %d commits of reports, want %d", tt.point, got, tt.committed)
			}
			if answered > 1 || answered == 1 && tt.point != "between_effects/report" {
				t.Errorf("%s: %d answers after death", tt.point, answered)
			}
			if st.state().Owner != "one-1" {
				t.Errorf("%s: a dead node released its partition", tt.point)
			}
			st.onCommit = nil
			next := newRig(t, st, func(c *partition.Config) { c.Incarnation = "one-2" })
			synctest.Wait()
			if res := <-next.report("b"); res.err != nil {
				t.Errorf("%s: the successor: %v", tt.point, res.err)
			}
			next.end()
		})
	}
}

// Two servers without the right of a lock share one partition: one owns it, and after it was cut off the
// other takes it, never both at a time.
func TestTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{}
		live := func() []string { return []string{"one", "two"} }
		one := newRig(t, st, func(c *partition.Config) { c.Sole, c.Live = false, live })
		two := newRig(t, st, func(c *partition.Config) { c.Sole, c.Live, c.Server, c.Incarnation = false, live, "two", "two-1" })
		rigs := []*rig{one, two}
		serving := func() (who []int) {
			for i, r := range rigs {
				if res := <-r.call(context.Background(), engine.Inspect{}); res.err == nil {
					who = append(who, i)
				}
			}
			return who
		}
		time.Sleep(3 * time.Second)
		who := serving()
		if len(who) != 1 {
			t.Fatalf("%d servers answer for one partition", len(who))
		}
		for _, r := range rigs {
			if err := r.node.Ready(); err != nil {
				t.Errorf("not ready: %v", err)
			}
		}
		owner, heir := rigs[who[0]], rigs[1-who[0]]
		owner.end()
		stopped := time.Now()
		for len(serving()) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(stopped); took > 1100*time.Millisecond {
			t.Errorf("a released partition was taken after %v, want at most rank + look", took)
		}
		if l := heir.lastLoaded(); !l.Takeover {
			t.Error("a take-over after a graceful hand-over is one, too")
		}
		heir.end()
	})
}

// Starting and stopping at any moment leaves nothing behind.
func TestStartStop(t *testing.T) {
	for i := range 200 {
		st := &memory{}
		node, err := partition.NewNode(t.Context(), partition.Config{Store: st, Incarnation: fmt.Sprint(i), Sole: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := node.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		for range i % 5 {
			wg.Go(func() { _, _ = node.Call(ctx, 0, 0, engine.Inspect{}) })
		}
		for range i % 7 {
			node.Wake(0)
		}
		cancel()
		wg.Wait()
		if owner := st.state().Owner; owner != "" {
			t.Fatalf("run %d: still owned by %s", i, owner)
		}
	}
}

// Checkers see every commit once, in order, with its facts.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seqs []int64
		r := newRig(t, &memory{}, func(c *partition.Config) {
			c.Observe = func(o partition.Observation) {
				if len(o.Facts) > 0 {
					seqs = append(seqs, o.Seq)
				}
			}
		})
		synctest.Wait()
		for range 5 {
			<-r.report("a")
		}
		r.end()
		if want := []int64{1, 2, 3, 4, 5}; !slices.Equal(seqs, want) {
			t.Errorf("observed %v, want %v", seqs, want)
		}
	})
}

// A wall clock that is set an hour back and forth moves no timer and never runs back for the engine.
func TestWallSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var off atomic.Int64
		r := newRig(t, &memory{}, func(c *partition.Config) {
			c.Wall = func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
		})
		for i := range 20 {
			time.Sleep(time.Second)
			synctest.Wait()
			off.Store(int64(i%3-1) * int64(time.Hour))
			if res := <-r.report("a"); res.err != nil {
				t.Fatal(res.err)
			}
		}
		r.end()
		var last engine.Now
		for _, step := range r.steps {
			if step.now.Wall < last.Wall || step.now.Mono < last.Mono {
				t.Fatalf("%+v after %+v", step.now, last)
			}
			last = step.now
		}
	})
}

// The database goes away for a minute: callers are told to ask elsewhere, nothing is acknowledged, and it
// goes on by itself.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{}
		var away atomic.Bool
		gone := func() error {
			if away.Load() {
				return job.Errorf(job.KindUnavailable, "away", "the database is away")
			}
			return nil
		}
		st.onRows, st.onRenew = gone, gone
		st.onCommit = func(context.Context, int, *engine.Batch) error { return gone() }
		r := newRig(t, st, nil)
		synctest.Wait()
		away.Store(true)
		for range 60 {
			wantKind(t, <-r.report("a"), job.KindNoOwner, "")
			time.Sleep(time.Second)
		}
		away.Store(false)
		time.Sleep(3 * time.Second)
		if res := <-r.report("a"); res.err != nil {
			t.Errorf("after the outage: %v", res.err)
		}
		if got := st.commits(); got != 1 {
			t.Errorf("%d commits, want 1", got)
		}
		r.end()
	})
}
