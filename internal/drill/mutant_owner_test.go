package drill_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/partition"
)

// ownerMutants are the parts of the model that live between owner and database. Each scenario is played
// twice, on a real database: with the part the checker finds nothing, without it the invariant breaks.
var ownerMutants = []struct {
	name   string
	breaks string
	play   func(h *house, mutant bool)
}{
	{"fence", "I10", playFence},
	{"new epoch after an unknown commit", "I15", playUnknownCommit},
	{"look at the own deadline", "I12", playOwnDeadline},
	{"waiting negative answers", "I10", playNegative},
	{"epochs in calls", "I12", playEpochs},
}

func TestMutantsOfOwner(t *testing.T) {
	for _, m := range ownerMutants {
		t.Run(m.name, func(t *testing.T) {
			if v := violations(inHouse(t, func(h *house) { m.play(h, false) })); v != "" {
				t.Fatalf("with the part:\n%s", v)
			}
			mustBreak(t, inHouse(t, func(h *house) { m.play(h, true) }), m.breaks)
		})
	}
}

// running brings a shard into the hands of a worker.
func running(h *house, n *partition.Node, name string) (*hand, engine.Assignment) {
	h.t.Helper()
	w := h.hand(n, name)
	w.ask(n)
	h.trigger(n)
	a := w.takes(time.Second)
	if _, err := w.report(n, a, 1, engine.ItemStarted, ""); err != nil {
		h.t.Fatal(err)
	}
	return w, a
}

func is(what string, faults ...commitFault) func(string, *engine.Batch) commitFault {
	return func(_ string, b *engine.Batch) commitFault {
		for _, f := range b.Facts {
			if string(f.Kind) == what && len(faults) > 0 {
				fault := faults[0]
				faults = faults[1:]
				return fault
			}
		}
		return ""
	}
}

// playFence: the commit of an old owner is on its way while the next one decides otherwise.
func playFence(h *house, mutant bool) {
	old := &chaos{Store: h.st, noFence: mutant}
	a := h.node("a", old, nil)
	h.owned(a)
	h.job(nil)
	w, mine := running(h, a, "w")
	old.setRule(is(string(engine.FactResult), commitHeld))
	old.setMute(true)
	h.wg.Go(func() {
		_, _ = w.report(a, mine, 2, engine.ItemDone, engine.OutcomeSuccess) // the answer is lost with the owner
	})
	h.waitFor("the commit is under way", time.Second, func() bool { return old.waiting() == 1 })
	b := h.node("b", h.st, nil)
	h.owned(b)
	x := h.hand(b, "x")
	x.ask(b)
	h.wait(15 * time.Second)
	if _, err := x.call(b, engine.Heartbeat{Session: x.id, Call: x.next()}); err != nil {
		h.t.Fatal(err)
	}
	theirs := x.takes(6 * time.Second) // TTL + P of the new owner
	if _, err := x.report(b, theirs, 1, engine.ItemStarted, ""); err != nil {
		h.t.Fatal(err)
	}
	landed := old.land()
	if (landed == nil) != mutant {
		h.t.Errorf("the old owner's commit: %v, want it refused unless the fence is missing", landed)
	}
	h.wait(time.Second)
}

// playUnknownCommit: the commit that took a lease away is neither there nor refused when its owner
// loads again; it lands afterwards.
func playUnknownCommit(h *house, mutant bool) {
	st := &chaos{Store: h.st}
	a := h.node("a", st, func(c *partition.Config) { c.Switches.KeepEpoch = mutant })
	h.owned(a)
	h.job(nil)
	w, mine := running(h, a, "w")
	h.wait(10 * time.Second)
	x := h.hand(a, "x")
	x.ask(a)
	st.setRule(is(string(engine.FactLeaseExpired), commitLater))
	h.waitFor("the engine is loaded again", 10*time.Second, func() bool {
		all := a.Stats()
		return st.waiting() == 1 && len(all) == 1 && all[0].Engines == 2
	})
	renewed, err := w.beat(a, mine.Token) // rests on no commit
	h.t.Logf("beat after the unknown commit: renewed %v, %v", renewed, err)
	h.t.Logf("the unknown commit lands: %v", st.land())
	h.wait(time.Second)
	if renewed {
		w.effect(mine)
	}
	h.wait(time.Second)
}

// playOwnDeadline: an owner is cut off from the database and does not know that it has a successor.
func playOwnDeadline(h *house, mutant bool) {
	cut := &chaos{Store: h.st}
	a := h.node("a", cut, func(c *partition.Config) { c.Switches.NoDeadline = mutant })
	h.owned(a)
	h.job(nil)
	w, mine := running(h, a, "w")
	cut.setMute(true)
	b := h.node("b", h.st, nil)
	h.owned(b)
	x := h.hand(b, "x")
	x.ask(b)
	for range 9 {
		h.wait(3 * time.Second)
		if _, err := w.beat(a, mine.Token); err != nil {
			if _, err = w.beat(b, mine.Token); err != nil {
				h.t.Fatalf("beat at the successor: %v", err)
			}
		}
		if _, err := x.call(b, engine.Heartbeat{Session: x.id, Call: x.next()}); err != nil {
			h.t.Fatal(err)
		}
	}
}

// playNegative: a verdict is on its way to the database, and the late report that it makes stale comes in.
func playNegative(h *house, mutant bool) {
	st := &chaos{Store: h.st}
	a := h.node("a", st, func(c *partition.Config) { c.Switches.NegativesAtOnce = mutant })
	h.owned(a)
	h.job(nil)
	w, mine := running(h, a, "w")
	h.wait(10 * time.Second)
	x := h.hand(a, "x")
	x.ask(a)
	st.setRule(is(string(engine.FactLeaseExpired), commitHeld))
	h.waitFor("the verdict is under way", 10*time.Second, func() bool { return st.waiting() == 1 })
	lost := make(chan struct{})
	h.wg.Go(func() {
		defer close(lost)
		_, err := w.beat(a, mine.Token)
		h.t.Logf("beat under the verdict: %v", err)
	})
	h.wait(time.Second)
	st.mu.Lock()
	st.underway = nil // it never arrives
	st.mu.Unlock()
	<-lost
	h.wait(6 * time.Second)
	if _, err := w.report(a, mine, 2, engine.ItemDone, engine.OutcomeSuccess); err != nil {
		h.t.Logf("report after the verdict was lost: %v", err)
	}
}

// playEpochs: an owner's time is not up yet, but a worker has met its successor.
func playEpochs(h *house, mutant bool) {
	cut := &chaos{Store: h.st}
	a := h.node("a", cut, func(c *partition.Config) { c.Switches.EpochsIgnored = mutant })
	h.owned(a)
	h.job(nil)
	w, mine := running(h, a, "w")
	cut.setMute(true)
	b := h.node("b", h.st, func(c *partition.Config) { c.Sole = true }) // takes it at once
	h.owned(b)
	x := h.hand(b, "x")
	x.ask(b)
	w.seen = b.Stats()[0].Epoch
	if _, err := w.report(b, mine, 2, engine.ItemDone, engine.OutcomeReleased); err != nil {
		h.t.Fatal(err)
	}
	x.takes(time.Second)
	h.wait(time.Millisecond)
	_, err := w.beat(a, mine.Token) // a beat that was on the way
	h.t.Logf("the old owner answers %v", err)
	h.wait(time.Second)
}
