package partition_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// gated is a memory whose commits wait until they are let through.
func gated() (*memory, chan error) {
	gate := make(chan error)
	return &memory{onCommit: func(ctx context.Context, _ int, _ *engine.Batch) error {
		select {
		case err := <-gate:
			return err
		case <-ctx.Done():
			return job.Errorf(job.KindUnknown, "cut", "cut off")
		}
	}}, gate
}

// While a commit is on the way, everything but renewals waits for it: also what is refused, and what was
// only read. The next step is prepared, its commit is sent after the first (R1).
func TestAnswersWaitForCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, gate := gated()
		r := newRig(t, st, nil)
		synctest.Wait()
		first := r.report("a")
		synctest.Wait()
		second, stale := r.report("b"), r.report(sessionStale)
		inspect := r.call(context.Background(), engine.Inspect{})
		synctest.Wait()
		beat := r.call(context.Background(), engine.Heartbeat{Call: 7})
		synctest.Wait()
		if res := now(t, beat); res.err != nil || res.reply.Value.(*engine.Beaten).Call != 7 {
			t.Fatalf("a renewal waits for a commit: %+v", res)
		}
		third := r.report("c")
		synctest.Wait()
		if got := st.tried(); got != 1 {
			t.Fatalf("%d commits on the way, want 1", got)
		}
		for what, ch := range map[string]<-chan result{"first": first, "second": second, "stale": stale, "inspect": inspect, "third": third} {
			pending(t, what, ch)
		}
		gate <- nil
		synctest.Wait()
		now(t, first)
		for what, ch := range map[string]<-chan result{"second": second, "stale": stale, "inspect": inspect, "third": third} {
			pending(t, what, ch)
		}
		gate <- nil
		synctest.Wait()
		now(t, second)
		now(t, stale)
		now(t, inspect)
		pending(t, "third", third)
		gate <- nil
		synctest.Wait()
		now(t, third)
		r.end()
	})
}

// A refusal that rests on a commit in flight waits for it also when its own step writes nothing.
func TestNegativeAnswerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, gate := gated()
		r := newRig(t, st, nil)
		synctest.Wait()
		first := r.report("a")
		synctest.Wait()
		stale := r.report(sessionStale)
		synctest.Wait()
		beat := r.call(context.Background(), engine.Heartbeat{})
		synctest.Wait()
		now(t, beat)
		pending(t, "the refusal", stale)
		gate <- nil
		synctest.Wait()
		now(t, first)
		now(t, stale)
		if got := st.commits(); got != 1 {
			t.Errorf("%d commits, want 1: a step that changes nothing commits nothing", got)
		}
		r.end()
	})
}

// A lone event is not held back for company, also not after a burst.
func TestLoneEventGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &memory{}, nil)
		time.Sleep(time.Second)
		for range 10 {
			begun := time.Now()
			if took := (<-r.report("a")).at.Sub(begun); took != 0 {
				t.Fatalf("a lone report took %v of virtual time", took)
			}
		}
		burst := []<-chan result{}
		for range 10 {
			burst = append(burst, r.report("b"))
		}
		for _, ch := range burst {
			<-ch
		}
		time.Sleep(50 * time.Millisecond)
		begun := time.Now()
		if took := (<-r.report("a")).at.Sub(begun); took != 0 {
			t.Fatalf("a lone report after a burst took %v of virtual time", took)
		}
		r.end()
	})
}

// After a step with several calls, as many are waited for a moment, and no longer than until they are there.
func TestBurstsAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		st := refusing(gate)
		r := newRig(t, st, nil)
		time.Sleep(time.Second + time.Millisecond) // no page is being read
		opener := r.report("a")
		synctest.Wait()
		first := []<-chan result{r.report("a"), r.report("a"), r.report("a")}
		synctest.Wait()
		close(gate)
		for _, ch := range append(first, opener) {
			<-ch
		}
		before, begun := st.commits(), time.Now()
		var second []<-chan result
		for range 3 {
			time.Sleep(500 * time.Microsecond)
			second = append(second, r.report("a"))
		}
		for _, ch := range second {
			<-ch
		}
		if got, took := st.commits()-before, time.Since(begun); got != 1 || took != 1500*time.Microsecond {
			t.Errorf("three reports within a millisecond took %d commits and %v, want 1 and no wait behind the last", got, took)
		}
		lone := time.Now()
		<-r.report("a")
		if took := time.Since(lone); took > 2*time.Millisecond {
			t.Errorf("a report whose company does not come waited %v", took)
		}
		r.end()
	})
}

// A commit of unknown outcome ends the engine and its epoch, whether it landed or not; who waited is told
// no_owner, and the next call is served under a higher epoch.
func TestUnknownCommitEndsTheEpoch(t *testing.T) {
	for _, landed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			st := &memory{}
			st.onCommit = func(_ context.Context, n int, _ *engine.Batch) error {
				if n != 1 {
					return nil
				}
				err := job.Errorf(job.KindUnknown, "cut", "the connection broke")
				if landed {
					err = err.WithCause(errLands)
				}
				return err
			}
			r := newRig(t, st, nil)
			synctest.Wait()
			before := st.state()
			wantKind(t, <-r.report("a"), job.KindNoOwner, "no_owner")
			synctest.Wait()
			after := st.state()
			if after.Epoch <= before.Epoch {
				t.Fatalf("epoch %d after an unknown commit under %d", after.Epoch, before.Epoch)
			}
			res := <-r.report("a")
			if res.err != nil || res.reply.Epoch != after.Epoch {
				t.Fatalf("served under epoch %d, %v; want %d", res.reply.Epoch, res.err, after.Epoch)
			}
			if got := r.node.Stats()[0]; got.Engines != 2 || got.CommitErr != 1 {
				t.Errorf("stats %+v, want 2 engines and 1 failed commit", got)
			}
			r.end()
		})
	}
}

// A fenced commit under another owner's epoch ends ownership: nothing is taken back while the other one
// renews, and after it has stood still for P the partition is taken over.
func TestFencedCommitEndsOwnership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{}
		r := newRig(t, st, nil)
		synctest.Wait()
		st.mu.Lock()
		st.row.Owner, st.row.Epoch = "other", st.row.Epoch+5
		other := st.row.Epoch
		st.mu.Unlock()
		wantKind(t, <-r.report("a"), job.KindNoOwner, "no_owner")
		for range 20 { // the other one lives
			time.Sleep(time.Second)
			st.mu.Lock()
			st.row.Beat++
			st.mu.Unlock()
			wantKind(t, <-r.report("a"), job.KindNoOwner, "no_owner")
		}
		if got := st.state(); got.Owner != "other" {
			t.Fatalf("owned by %s, taken from a living owner", got.Owner)
		}
		died := time.Now()
		for st.state().Owner == "other" {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(died); took < 5*time.Second || took > 5520*time.Millisecond {
			t.Errorf("taken over after %v, want P … P + look", took)
		}
		synctest.Wait()
		if res := <-r.report("a"); res.err != nil || res.reply.Epoch <= other {
			t.Errorf("after the take-over: epoch %d, %v", res.reply.Epoch, res.err)
		}
		if last := r.lastLoaded(); !last.Takeover {
			t.Error("the engine was not told that it took over")
		}
		r.end()
	})
}

func (r *rig) lastLoaded() *engine.Loaded {
	for i := len(r.steps) - 1; i >= 0; i-- {
		if l := r.steps[i].loaded; l != nil {
			return l
		}
	}
	return nil
}

// A caller that gives up is forgotten, and the engine is told of a poll.
func TestPollGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &memory{}, nil)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		res := <-r.call(ctx, engine.Poll{Session: "a", Wait: time.Hour})
		if res.err == nil {
			t.Fatal("the poll was answered")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(r.gone) != 1 {
			t.Errorf("the engine was told of %d polls that nobody waits for, want 1", len(r.gone))
		}
		r.end()
	})
}

// Hanging polls end when the node stops, and the partition is free at once.
func TestStopReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, gate := gated()
		r := newRig(t, st, nil)
		synctest.Wait()
		poll := r.call(context.Background(), engine.Poll{Session: "a", Wait: time.Hour})
		report := r.report("a")
		synctest.Wait()
		go func() {
			time.Sleep(500 * time.Millisecond)
			gate <- nil
		}()
		r.end()
		wantKind(t, <-poll, job.KindNoOwner, "")
		if res := <-report; res.err != nil {
			t.Errorf("the commit on the way was not waited for: %v", res.err)
		}
		if got := st.state(); got.Owner != "" {
			t.Errorf("still owned by %s", got.Owner)
		}
		if _, err := r.node.Call(t.Context(), 0, 0, engine.Inspect{}); job.KindOf(err) != job.KindNoOwner {
			t.Errorf("a stopped node answered: %v", err)
		}
	})
}

// A caller that has met a higher epoch makes the owner drop its engine; the next epoch is above it.
func TestHigherEpochDropsTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{}
		r := newRig(t, st, nil)
		synctest.Wait()
		high := st.state().Epoch + 1_000_000
		if _, err := r.node.Call(t.Context(), 0, high, engine.Inspect{}); job.KindOf(err) != job.KindNoOwner {
			t.Fatalf("answered under a lower epoch: %v", err)
		}
		synctest.Wait()
		if got := st.state().Epoch; got <= high {
			t.Errorf("new epoch %d is not above the one that was met, %d", got, high)
		}
		wild := job.Epoch(1 << 60)
		if _, err := r.node.Call(t.Context(), 0, wild, engine.Inspect{}); job.KindOf(err) != job.KindInvalid {
			t.Errorf("an epoch that no clock can have given: %v", err)
		}
		r.end()
	})
}

// Callers that name ever higher epochs cost one engine in ten seconds, and nobody else an answer; then they
// have an owner, too.
func TestEverHigherEpochs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRig(t, &memory{}, func(c *partition.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		synctest.Wait()
		epoch := r.node.Stats()[0].Epoch
		met := epoch
		for range 50 {
			met += 1000
			_, err := r.node.Call(context.Background(), 0, met, engine.Heartbeat{})
			if job.KindOf(err) != job.KindNoOwner {
				t.Fatalf("a call that has met a higher epoch: %v", err)
			}
			time.Sleep(100 * time.Millisecond)
			if res := <-r.report("a"); res.err != nil {
				t.Fatalf("another caller: %v", res.err)
			}
		}
		if n := r.node.Stats()[0].Engines; n != 2 {
			t.Errorf("%d engines after 50 calls in 5 s, want 2", n)
		}
		time.Sleep(6 * time.Second)
		_, _ = r.node.Call(context.Background(), 0, met, engine.Heartbeat{})
		time.Sleep(time.Second)
		if reply, err := r.node.Call(context.Background(), 0, met, engine.Heartbeat{}); err != nil || reply.Epoch <= met {
			t.Errorf("after ten seconds: epoch %d, %v; want one above %d", reply.Epoch, err, met)
		}
		r.end()
		if n := strings.Count(log.String(), "store_went_back"); n != 1 {
			t.Errorf("%d lines tell that the store went back, want 1", n)
		}
	})
}
