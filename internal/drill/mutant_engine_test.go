package drill_test

import (
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// engineMutants are the parts of the model that live in the engine. Each scenario is played twice: with
// the part the checker finds nothing, without it the named invariant breaks.
var engineMutants = []struct {
	name    string
	breaks  string
	without engine.Switches
	play    func(d *desk)
}{
	{"deadline from the named call", "I13", engine.Switches{DeadlineFromReceipt: true}, playNamedCall},
	{"grace after take-over", "I14", engine.Switches{NoTakeoverGrace: true}, playTakeover},
	{"a decision only stops renewal", "I15", engine.Switches{DecisionEndsLease: true}, playTimeout},
	{"page guard", "I19", engine.Switches{NoPageGuard: true}, playOldPage},
	{"an older token writes nothing", "I10", engine.Switches{OldTokenWrites: true}, playOldToken},
	{"tokens start at the epoch", "I09", engine.Switches{TokensFromZero: true}, playNewEpoch},
}

func TestMutants(t *testing.T) {
	for _, m := range engineMutants {
		t.Run(m.name, func(t *testing.T) {
			whole := newDesk(t, engine.Switches{})
			m.play(whole)
			if v := violations(whole.history()); v != "" {
				t.Fatalf("with the part:\n%s", v)
			}
			mutant := newDesk(t, m.without)
			m.play(mutant)
			mustBreak(t, mutant.history(), m.breaks)
		})
	}
}

// mustBreak wants a violation of the invariant and says that the mutant is dead.
func mustBreak(t *testing.T, h *drill.History, invariant string) {
	t.Helper()
	for _, v := range drill.Check(h) {
		if v.Invariant == invariant {
			t.Logf("killed: without it %s", v)
			return
		}
	}
	t.Errorf("the mutant survives: %s is not broken; found:\n%s", invariant, violations(h))
}

// TestMutantsMargin: a handler that looked at its lease in time needs a second to finish what it began.
func TestMutantsMargin(t *testing.T) {
	play := func(margin time.Duration) *drill.History {
		d := newDesk(t, engine.Switches{})
		d.cfg.Margin, d.hist.Margin = margin, margin
		d.load(false)
		a, b := d.worker("a"), d.worker("b")
		a.ask()
		d.trigger()
		mine := a.takes()
		a.report(mine, 1, engine.ItemStarted, "")
		d.until(10 * time.Second)
		b.ask()
		d.until(15*time.Second - margin - time.Millisecond)
		began := d.wall().Time()
		d.until(d.mono + time.Second)
		a.effect(mine)
		d.hist.Effects[0].Began = began
		d.until(17 * time.Second)
		return d.history()
	}
	if v := drill.Check(play(1500 * time.Millisecond)); len(v) > 0 {
		t.Fatalf("with the part: %v", v)
	}
	mustBreak(t, play(0), "I15")
}

// playNamedCall: a poll hangs, a newer beat is taken in, then comes the grant. The owner's deadline and
// the call that the answer names must be one pair.
func playNamedCall(d *desk) {
	a, b := d.worker("a"), d.worker("b")
	a.ask()
	d.until(10 * time.Second)
	a.beat()
	d.trigger()
	mine := a.takes()
	d.until(12 * time.Second)
	b.ask()
	d.until(23 * time.Second)
	a.effect(mine) // within its own deadline: the beat of 10 s + TTL − margin
	d.until(26 * time.Second)
}

// playTakeover: a renewal needs no commit, so the next owner has not seen it.
func playTakeover(d *desk) {
	a := d.worker("a")
	a.ask()
	d.trigger()
	mine := a.takes()
	a.report(mine, 1, engine.ItemStarted, "")
	d.until(4 * time.Second)
	a.beat(mine.Token)
	d.until(5 * time.Second)
	d.load(true)
	d.until(6 * time.Second)
}

// playTimeout: the attempt times out; its holder has not heard of that yet and may act.
func playTimeout(d *desk) {
	d.def.Spec.Timeout.Attempt = 8 * time.Second
	a, b := d.worker("a"), d.worker("b")
	a.ask()
	d.trigger()
	mine := a.takes()
	a.report(mine, 1, engine.ItemStarted, "")
	for at := 3 * time.Second; at < 8*time.Second; at += 3 * time.Second {
		d.until(at)
		a.beat(mine.Token)
	}
	b.ask()
	d.until(9 * time.Second) // timed out at 8 s, the retry is due
	a.effect(mine)           // its lease rests on the beat of 6 s
	d.until(12 * time.Second)
	for _, c := range a.beat(mine.Token).Cancels {
		if c.Token == mine.Token {
			a.report(mine, 2, engine.ItemDone, engine.OutcomeCancelled)
		}
	}
	b.beat()
	d.until(13 * time.Second)
}

// playOldPage: a page was read before the commit that cancelled what it shows.
func playOldPage(d *desk) {
	id := d.trigger()
	old := d.backlog(engine.WantBacklog{})
	d.request(engine.EntryCancel, id)
	d.step(old)
	a := d.worker("a")
	a.ask()
	d.until(time.Second)
}

// playOldToken: a silent worker's late checkpoint and result, when another one runs the shard.
func playOldToken(d *desk) {
	a, b := d.worker("a"), d.worker("b")
	a.ask()
	d.trigger()
	mine := a.takes()
	a.report(mine, 1, engine.ItemStarted, "")
	d.until(10 * time.Second)
	b.beat()
	d.until(23 * time.Second)
	b.beat()
	b.ask()
	d.until(24 * time.Second)
	b.report(b.takes(), 1, engine.ItemStarted, "")
	d.until(25 * time.Second)
	a.report(mine, 2, engine.ItemCheckpoint, "")
	a.report(mine, 3, engine.ItemDone, engine.OutcomeSuccess)
}

// playNewEpoch: the database has forgotten its tail, the counter of tokens too.
func playNewEpoch(d *desk) {
	a := d.worker("a")
	a.ask()
	d.trigger()
	first := a.takes()
	a.report(first, 1, engine.ItemDone, engine.OutcomeSuccess)
	d.token = 0
	d.load(false)
	a.ask()
	d.trigger()
	a.report(a.takes(), 1, engine.ItemDone, engine.OutcomeSuccess)
}

// TestLateReportCounts: what the holder of an expired lease reports counts until the next lease (R6).
func TestLateReportCounts(t *testing.T) {
	d := newDesk(t, engine.Switches{})
	a := d.worker("a")
	a.ask()
	id := d.trigger()
	mine := a.takes()
	a.report(mine, 1, engine.ItemStarted, "")
	d.until(16 * time.Second)
	if got := a.report(mine, 2, engine.ItemDone, engine.OutcomeSuccess); got != engine.ItemAccepted {
		t.Errorf("late done: %s, want accepted", got)
	}
	if s := d.rows[id].Execution.State; s != job.ExecutionSucceeded {
		t.Errorf("execution is %s, want succeeded", s)
	}
	if v := violations(d.history()); strings.TrimSpace(v) != "" {
		t.Error(v)
	}
}
