package engine_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// names gives short names to what a scenario shows: e1, e2 … for executions in the order of their
// creation, A, B/2 … for sessions.
type names struct {
	execs    map[job.ExecutionID]string
	sessions map[job.SessionID]string
	jobs     map[job.UID]string
	delays   bool // a request was delayed: only then pages of such are told
}

func (n *names) exec(id job.ExecutionID) string {
	if n.execs[id] == "" {
		n.execs[id] = fmt.Sprintf("e%d", len(n.execs)+1)
	}
	return n.execs[id]
}

func (n *names) session(id job.SessionID) string {
	if s, ok := n.sessions[id]; ok {
		return s
	}
	return string(id)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

func instant(i job.Instant) string { return seconds(i.Sub(wallStart)) }

// words joins what is not empty.
type words []string

func (w *words) add(show bool, format string, args ...any) {
	if show {
		*w = append(*w, fmt.Sprintf(format, args...))
	}
}

// result prints a step in full; what changes nothing and tells nothing prints nothing.
func (n *names) result(w *world, r *engine.Result) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	n.writes(&r.Batch, line)
	for i := range r.Batch.Facts {
		line("fact %s", n.fact(&r.Batch.Facts[i]))
	}
	for i := range r.Trace {
		if r.Trace[i].Kind != engine.FactLeaseRenewed { // the beat's answer says the same
			line("trace %s", n.fact(&r.Trace[i]))
		}
	}
	for _, a := range r.Answers {
		what := "?"
		if c := w.replies[a.Reply]; c != nil {
			what = c.what
		}
		line("%s: %s", what, n.answer(a))
	}
	if s := n.want(&r.Want); s != "" {
		line("want%s", s)
	}
	if b.Len() == 0 {
		return ""
	}
	head := "t=" + seconds(w.mono)
	if !r.Batch.Empty() {
		head += fmt.Sprintf(" commit %d", r.Batch.Seq)
	}
	return head + "\n" + b.String()
}

// writes prints the rows that a batch changes.
func (n *names) writes(batch *engine.Batch, line func(format string, args ...any)) {
	for i := range batch.Executions {
		line("%s", n.execWrite(&batch.Executions[i]))
	}
	for i := range batch.Shards {
		line("%s", n.shardWrite(&batch.Shards[i]))
	}
	for _, c := range batch.Cursors {
		held := ""
		if c.Held != 0 {
			held = " held=" + instant(c.Held)
		}
		if c.Owed != 0 {
			held += " owed="
		}
		for i, r := range c.OwedRanges() {
			held += strings.Repeat(",", min(i, 1)) + instant(r.From) + ".." + instant(r.To)
		}
		switch {
		case c.Stamp > 0:
			held += fmt.Sprintf(" calendars=%d", c.Stamp)
		case c.Stamp < 0:
			held += " marked"
		}
		if c.Failures > 0 {
			held += fmt.Sprintf(" failures=%d", c.Failures)
		}
		line("cursor %s/%s next=%s last=%s rev=%d%s", n.jobs[c.Job], c.Schedule, optional(c.Next), optional(c.Last), c.Revision, held)
	}
	for _, c := range batch.DropCursors {
		line("cursor %s/%s dropped", n.jobs[c.Job], c.Schedule)
	}
	for _, s := range batch.Streaks {
		line("streak %s reset=%t most=%d failed=%d", n.jobs[s.Job], s.Reset, s.Most, s.Failed)
	}
	for _, d := range batch.Decisions {
		line("decision %s/%s %s (%s) %s..%s ×%d", d.Name, d.Schedule, d.Kind, d.Reason, instant(d.From), instant(d.To), d.Count)
	}
	for i := range batch.Matched {
		line("%s", n.matchedRow(&batch.Matched[i]))
	}
	for i := range batch.Backfills {
		line("%s", backfillWrite(&batch.Backfills[i]))
	}
	for _, s := range batch.SentBackfills {
		line("backfill b%d sent to partition %d", s.ID[15], s.Partition)
	}
	for _, s := range batch.Sessions {
		line("session %s slots=%d unheard=%d", n.session(s.ID), s.Slots, s.Unheard)
	}
	for _, id := range batch.EndSessions {
		line("session %s deleted", n.session(id))
	}
	for _, id := range batch.Consumed {
		line("entry %d consumed", id)
	}
	for _, h := range batch.Handovers {
		line("job %s handed over to partition %d", n.jobs[h.Job], h.Partition)
	}
	for _, f := range batch.Forwarded {
		line("entry %d forwarded to partition %d", f.Entry, f.Partition)
	}
	for _, p := range batch.Poison {
		line("poison entry=%d %s: %s", p.Entry, p.Kind, p.Error)
	}
}

func optional(i job.Instant) string {
	if i == 0 {
		return "-"
	}
	return instant(i)
}

func (n *names) execWrite(w *engine.ExecutionWrite) string {
	x := &w.Row
	var s words
	s.add(true, "exec %s %s → %s", n.exec(x.ID), orNew(string(w.From)), x.State)
	s.add(x.Reason != "", "(%s)", x.Reason)
	s.add(w.From == job.ExecutionScheduled && w.Row.State == w.From, "planned=%s", instant(x.PlannedAt))
	s.add(w.From == "", "job=%s rev=%d %s planned=%s shards=%d", x.Job, x.Revision, x.Trigger, instant(x.PlannedAt), x.ShardTotal)
	s.add(x.Cancel != "", "cancel=%s", x.Cancel)
	s.add(x.Round > 0, "round=%d", x.Round)
	s.add(w.Sent, "sent to partition %d", x.Partition)
	return strings.Join(s, " ")
}

func orNew(s string) string {
	if s == "" {
		return "new"
	}
	return s
}

func (n *names) shardWrite(w *engine.ShardWrite) string {
	x := &w.Row
	var s words
	s.add(true, "shard %s/%d %s → %s", n.exec(x.Execution), x.Index, orNew(string(w.From)), x.State)
	s.add(x.Reason != "", "(%s)", x.Reason)
	s.add(x.Token > 0, "token=%d", x.Token)
	s.add(x.Session != "", "holder=%s", n.session(x.Session))
	s.add(x.Closed, "closed")
	if len(x.Attempts) > 0 {
		a := x.Attempts[len(x.Attempts)-1]
		s.add(true, "attempt=%d:%s", a.Number, a.State)
	}
	s.add(x.Faults > 0, "faults=%d", x.Faults)
	s.add(x.Losses > 0, "losses=%d", x.Losses)
	s.add(x.RetryAt > 0, "retry=%s", instant(x.RetryAt))
	s.add(x.StopBy > 0, "stopBy=%s", instant(x.StopBy))
	s.add(x.TimeoutAt > 0, "timeout=%s", instant(x.TimeoutAt))
	s.add(x.CheckpointSeq > 0, "ckpt=%d:%s", x.CheckpointSeq, x.Checkpoint)
	s.add(x.Result != nil, "result=%s", x.Result)
	return strings.Join(s, " ")
}

func (n *names) fact(f *engine.Fact) string {
	var s words
	s.add(true, "%s", f.Kind)
	s.add(f.Job != "", "%s", f.Job)
	if !f.Execution.IsZero() {
		of := f.Kind == engine.FactExecutionCreated || f.Kind == engine.FactExecutionState || f.Kind == engine.FactCancelRequested || f.Kind == engine.FactRescheduled || f.Kind == engine.FactRerun
		s.add(of, "%s", n.exec(f.Execution))
		s.add(!of, "%s/%d", n.exec(f.Execution), f.Shard)
	}
	s.add(f.Token > 0, "token=%d", f.Token)
	s.add(f.Attempt > 0, "attempt=%d", f.Attempt)
	s.add(f.Session != "", "%s", n.session(f.Session))
	s.add(f.From+f.To != "", "%s→%s", f.From, f.To)
	s.add(f.Reason != "", "(%s)", f.Reason)
	s.add(f.PlannedAt > 0, "planned=%s", instant(f.PlannedAt))
	s.add(f.Until > 0, "until=%s", instant(f.Until))
	s.add(f.Count > 0, "×%d", f.Count)
	s.add(f.Checkpoint > 0, "ckpt=%d", f.Checkpoint)
	s.add(f.Call > 0, "call=%d", f.Call)
	s.add(f.Note != "", "%q", f.Note)
	return strings.Join(s, " ")
}

func (n *names) want(w *engine.Want) string {
	var s words
	s.add(w.Inbox, " inbox")
	if w.Due != nil {
		s.add(true, " due until=%s", instant(w.Due.Until))
		s.add(w.Due.After != nil, " after a part")
	}
	if w.Backlog != nil {
		s.add(true, " backlog")
		s.add(w.Backlog.PlannedAt > 0, " behind %s", instant(w.Backlog.PlannedAt))
	}
	if w.Scheduled != nil && n.delays {
		s.add(true, " scheduled until=%s", instant(w.Scheduled.Until))
		s.add(w.Scheduled.After.At > wallStart, " behind %s", instant(w.Scheduled.After.At))
	}
	for _, id := range w.Executions {
		s.add(true, " %s", n.exec(id))
	}
	for _, u := range w.Upstream {
		s.add(!u.Waiting.IsZero(), " parents of %s", n.exec(u.Waiting))
		s.add(!u.Ended.IsZero(), " %s after %s", n.jobs[u.Child], n.exec(u.Ended))
	}
	for _, ref := range w.Shards {
		s.add(true, " %s/%d", n.exec(ref.Execution), ref.Index)
	}
	return strings.Join(s, "")
}
