package engine_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/job"
)

// queuer is the dumb twin of the overlap policies of one job that declares one. It is told what comes and what has ended, and
// says of each execution whether it may run, waits or was dropped (I25), and who is next (I26).
type queuer struct {
	policy  job.OverlapPolicy
	bound   int
	all     []*comer
	blocked map[job.Reason]int
}

type comer struct {
	id       job.ExecutionID
	at       job.Instant
	own      job.OverlapPolicy // of the revision that it was made from
	state    string            // runs, waits, ended
	free     bool              // it counts for nobody
	replaces bool
	again    bool
	replaced bool
	why      job.Reason // it ended at once
}

func (q *queuer) in(state string) (found []*comer) {
	for _, c := range q.all {
		if c.state == state && !c.free {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *comer) int { return cmp.Or(cmp.Compare(a.at, b.at), bytes.Compare(a.id[:], b.id[:])) })
	return found
}

func (q *queuer) come(c *comer, asked bool) {
	c.own, c.state = q.policy, "runs"
	q.all = append(q.all, c)
	waiting := slices.DeleteFunc(q.in("waits"), func(w *comer) bool { return w.again })
	c.state = ""
	busy := len(q.in("runs")) > 0
	c.state = "runs"
	switch {
	case q.policy == job.OverlapAllow:
		c.free = true
	case !busy:
	case q.policy == job.OverlapQueue && len(waiting) < q.bound:
		c.state = "waits"
	case q.policy == job.OverlapReplace:
		c.state, c.replaces = "waits", true
		for _, w := range waiting {
			if w.replaces {
				w.state, w.why = "ended", job.ReasonReplaced
			}
		}
		for _, r := range q.in("runs") {
			r.replaced = true
		}
	default:
		c.why = job.ReasonOverlapFull
		if q.policy == job.OverlapSkip {
			c.why = job.ReasonOverlapSkip
		}
		if c.state = "ended"; !asked {
			q.blocked[c.why]++
			q.all = q.all[:len(q.all)-1]
		}
	}
}

func (q *queuer) rerun(c *comer) {
	c.again, c.replaces, c.replaced, c.why = true, false, false, ""
	c.state = "waits"
	if c.free || len(q.in("runs")) == 0 {
		c.state = "runs"
	}
}

func (q *queuer) next() {
	if w := q.in("waits"); len(w) > 0 && len(q.in("runs")) == 0 {
		w[0].state = "runs"
	}
}

func (q *queuer) edit(policy job.OverlapPolicy, bound int) {
	q.policy, q.bound = policy, bound
	if policy == job.OverlapAllow {
		for _, w := range q.in("waits") {
			w.state = "runs"
		}
	}
}

// overlapRun plays a world against the twin.
type overlapRun struct {
	*scenario
	t    *rapid.T
	q    *queuer
	uid  job.UID
	last int // worker
	log  string
}

func (r *overlapRun) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	out, err := r.run(line)
	if len(r.log) > 30_000 {
		r.log = r.log[len(r.log)-20_000:]
	}
	r.log += fmt.Sprintf("# %s t=%v\n%s", line, r.mono, out)
	if err != nil {
		r.t.Fatalf("%v\n%s", err, r.log)
	}
}

func (r *overlapRun) row(id job.ExecutionID) *record { return cmp.Or(r.db.live[id], r.db.history[id]) }

// settle tells the twin what has ended, until nothing more has.
func (r *overlapRun) settle() {
	for again := true; again; {
		again = false
		for _, c := range r.q.all {
			if x := r.row(c.id); c.state == "runs" && x != nil && x.row.State.Ended() {
				if c.replaced && x.row.State == job.ExecutionCancelled && x.row.Reason != job.ReasonReplaced && x.row.Reason != job.ReasonCancelRequested {
					r.t.Fatalf("%s was replaced and says %q\n%s", r.names.exec(c.id), x.row.Reason, r.log)
				}
				c.state, again = "ended", true
			}
		}
		r.q.next()
	}
}

// compare looks at every row.
func (r *overlapRun) compare() {
	r.settle()
	if len(r.db.live)+len(r.db.history) != len(r.q.all) {
		r.t.Fatalf("%d executions, the twin has %d\n%s", len(r.db.live)+len(r.db.history), len(r.q.all), r.log)
	}
	for _, c := range r.q.all {
		x := r.row(c.id).row
		is := "runs"
		switch {
		case x.WaitsItsTurn():
			is = "waits"
		case x.State.Ended():
			is = "ended"
		case x.State == job.ExecutionScheduled:
			is = "nothing known"
		}
		if is != c.state || c.state == "ended" && c.why != "" && x.Reason != c.why {
			r.t.Fatalf("%s %s (%s, %q), should be: %s %q\n%s", r.names.exec(c.id), is, x.State, x.Reason, c.state, c.why, r.log)
		}
	}
	blocked := map[job.Reason]int{}
	for _, d := range r.db.decisions {
		blocked[d.Reason]++
	}
	for _, why := range []job.Reason{job.ReasonOverlapSkip, job.ReasonOverlapFull} {
		if blocked[why] != r.q.blocked[why] {
			r.t.Fatalf("%d instants blocked for %s, should be %d\n%s", blocked[why], why, r.q.blocked[why], r.log)
		}
	}
}

func (r *overlapRun) hire() {
	r.last++
	r.say("worker W%d lives slots=3", r.last)
}

func (r *overlapRun) pick(what string, of func(*comer, *job.Execution) bool) *comer {
	var found []*comer
	for _, c := range r.q.all {
		if of(c, &r.row(c.id).row) {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[rapid.IntRange(0, len(found)-1).Draw(r.t, what)]
}

func (r *overlapRun) second() {
	r.say("advance 1s quiet")
	r.settle() // what arrived comes before what is due
	if at := r.wall(); (at-wallStart)%10_000 == 0 {
		r.q.come(&comer{id: job.PlannedID(r.uid, at), at: at}, false)
	}
}

func (r *overlapRun) trigger() {
	r.say("trigger j")
	id := job.RequestedID(r.wall(), [10]byte{8: byte(r.requests >> 8), 9: byte(r.requests)})
	r.q.come(&comer{id: id, at: id.PlannedAt()}, true)
}

func (r *overlapRun) edit() {
	policy := rapid.SampledFrom([]job.OverlapPolicy{job.OverlapQueue, job.OverlapQueue, job.OverlapSkip, job.OverlapReplace, job.OverlapAllow}).Draw(r.t, "policy")
	bound := rapid.IntRange(0, 3).Draw(r.t, "queued")
	queued := ""
	if policy == job.OverlapQueue {
		queued = fmt.Sprintf("queued=%d", bound)
	}
	r.say("job j every=10s grace=2s overlap=%s %s", policy, queued)
	r.q.edit(policy, bound)
}

// done ends what a living worker runs.
func (r *overlapRun) done(c *comer, outcome string) {
	if sh := r.row(c.id).shards[0]; sh.State == job.ShardRunning && r.lives[sh.Worker] != nil {
		r.say("report %s %s/0 done %s", sh.Worker, r.names.exec(c.id), outcome)
	}
}

func runs(_ *comer, x *job.Execution) bool { return x.State == job.ExecutionRunning }

func (r *overlapRun) act() {
	switch n := rapid.IntRange(0, 99).Draw(r.t, "act"); {
	case n < 50:
		r.second()
	case n < 60:
		r.trigger()
	case n < 72:
		if c := r.pick("done", runs); c != nil {
			r.done(c, rapid.SampledFrom([]string{"success", "fatal"}).Draw(r.t, "outcome"))
		}
	case n < 78:
		if c := r.pick("cancel", func(_ *comer, x *job.Execution) bool { return !x.State.Ended() }); c != nil {
			r.say("cancel %s", r.names.exec(c.id))
			if c.state == "waits" {
				c.state = "ended"
			}
		}
	case n < 83:
		if c := r.pick("rerun", func(_ *comer, x *job.Execution) bool { return x.State.Ended() && x.State != job.ExecutionSucceeded }); c != nil {
			r.say("rerun %s", r.names.exec(c.id))
			r.q.rerun(c)
		}
	case n < 87:
		r.edit()
	case n < 95:
		r.say("reload %s", rapid.SampledFrom([]string{"", "takeover"}).Draw(r.t, "takeover"))
	case n < 97 && r.lives[fmt.Sprintf("W%d", r.last)] != nil:
		r.say("kill W%d", r.last)
	default:
		r.hire()
	}
	r.compare()
}

// TestOverlapTwin: whatever comes, ends, is cancelled, run again, edited or reloaded, with rows in memory or not: the policy
// says who runs, in the order of planned time, and nothing waits for ever (I25, I26).
func TestOverlapTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &overlapRun{scenario: newScenario(), t: t, q: &queuer{policy: job.OverlapQueue, bound: 1, blocked: map[job.Reason]int{}}}
		r.say("config ready=%d bytes=%d", rapid.SampledFrom([]int{1, 100}).Draw(t, "ready"), rapid.SampledFrom([]int{4000, 8200, 1 << 20}).Draw(t, "bytes"))
		r.say("job j every=10s grace=2s overlap=queue")
		r.uid = r.jobs["j"].UID
		if rapid.Bool().Draw(t, "worker") {
			r.hire()
		}
		for range rapid.IntRange(1, 120).Draw(t, "acts") {
			r.act()
		}
		r.say("job j grace=2s overlap=%s", r.q.policy) // nothing more comes
		r.hire()
		for range 400 {
			r.say("advance 1s quiet")
			for _, c := range r.q.all {
				if runs(c, &r.row(c.id).row) {
					r.done(c, "success")
				}
			}
			r.compare()
			if len(r.db.live) == 0 {
				return
			}
		}
		t.Fatalf("%d executions never end\n%s", len(r.db.live), r.log)
	})
}
