package storetest

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

func (w *twin) LoadPartition(_ context.Context, partition int) (engine.Loaded, error) {
	out := engine.Loaded{Seq: w.parts[partition].Seq, LastToken: w.parts[partition].LastToken}
	for _, s := range ordered(w.sessions, func(a, b job.Session) int { return cmp.Compare(a.ID, b.ID) }) {
		if s.Partition == partition {
			out.Sessions = append(out.Sessions, s)
		}
	}
	for _, c := range w.cursors {
		out.Owes = out.Owes || c.partition == partition && c.Owed != 0
	}
	for _, e := range ordered(w.live, byID) {
		if e.Partition == partition && e.State != job.ExecutionQueued && e.State != job.ExecutionScheduled {
			row := w.row(e)
			for i, s := range row.Shards {
				if s.State.Ended() {
					row.Shards[i] = job.Shard{Execution: s.Execution, Index: s.Index, State: s.State, Reason: s.Reason, Token: s.Token,
						Closed: s.Closed, ReportSeq: s.ReportSeq, EndedAt: s.EndedAt}
				}
			}
			out.Executions = append(out.Executions, row)
		}
		if e.Partition == partition && counts(&e) {
			out.Waiting = append(out.Waiting, engine.Waiting{Job: e.JobUID, ID: e.ID, PlannedAt: e.PlannedAt, State: e.State, Reason: e.Reason, Round: e.Round})
		}
	}
	slices.SortFunc(out.Waiting, func(a, b engine.Waiting) int {
		return cmp.Or(bytes.Compare(a.Job[:], b.Job[:]), cmp.Compare(a.PlannedAt, b.PlannedAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
	out.Backfills = w.loadedBackfills(partition)
	return out, nil
}

// counts tells whether an owner has to know of an execution for the overlap policy of its job, although it is not under way.
func counts(e *job.Execution) bool {
	switch e.State {
	case job.ExecutionScheduled:
		return e.Reason == job.WaitOverlap || e.Reason == job.WaitReplace
	case job.ExecutionQueued:
		return e.Reason == job.ReasonOverlapTurn || e.Trigger != job.TriggerRequest && e.Reason != job.ReasonOverlapFree
	}
	return false
}

func (w *twin) InboxPage(_ context.Context, partition, limit int) (engine.InboxPage, error) {
	out := engine.InboxPage{Seq: w.parts[partition].Seq}
	for _, first := range []bool{true, false} {
		for _, e := range w.inbox {
			if e.partition != partition || e.overtakes != first {
				continue
			}
			if len(out.Entries) == limit {
				out.Partial = true
				continue
			}
			if !e.Job.IsZero() {
				e.Definition, e.Cursors = w.definition(e.Job, e.revision), w.cursorsOf(e.Job)
				e.Planner, e.Place = max(w.planner(e.Job), 0), w.place(e.Job)
				for _, c := range e.Cursors {
					if e.Definition != nil && (c.Held != 0 || c.Owed != 0) && c.Revision != e.Definition.Revision {
						e.Before = w.definition(e.Job, c.Revision)
					}
				}
				e.Past = w.past(&e.Entry)
			}
			for _, c := range e.Cursors {
				if _, lives := w.live[e.NewestOf(c)]; lives {
					e.Running = append(e.Running, c.Schedule)
				}
			}
			if d := w.definition(e.Job, 0); e.Kind.Triggers() && e.Definition != nil && d.Revision != e.Definition.Revision {
				e.Pool = d.Spec.Pool
			}
			if b, is := w.backfills[e.Execution]; is && e.Kind == engine.EntryBackfill {
				e.Backfill, e.Pool = &b, w.definition(e.Job, 0).Spec.Pool
			}
			for _, x := range ordered(w.live, byID) {
				if e.Kind == engine.EntryCancelJob && x.JobUID == e.Job && x.Partition == partition && (x.State == job.ExecutionQueued || x.State == job.ExecutionScheduled) && len(e.Queued) < engine.QueuedMax {
					e.Queued = append(e.Queued, x.ID)
				}
			}
			out.Entries = append(out.Entries, e.Entry)
		}
	}
	return out, nil
}

func compareCursors(a, b job.Cursor) int {
	return cmp.Or(cmp.Compare(a.Next, b.Next), bytes.Compare(a.Job[:], b.Job[:]), cmp.Compare(a.Schedule, b.Schedule))
}

func (w *twin) DuePage(_ context.Context, partition int, want engine.WantDue) (engine.DuePage, error) {
	out := engine.DuePage{Owed: want.Owed, Seq: w.parts[partition].Seq, Until: want.Until, After: want.After}
	order := compareCursors
	if want.Owed {
		order = func(a, b job.Cursor) int {
			return cmp.Or(bytes.Compare(a.Job[:], b.Job[:]), cmp.Compare(a.Schedule, b.Schedule))
		}
	}
	for _, c := range ordered(w.cursors, func(a, b twinCursor) int { return order(a.Cursor, b.Cursor) }) {
		d := w.definition(c.Job, 0)
		if c.partition != partition || d == nil || d.Deleted != nil {
			continue
		}
		if want.Owed && c.Owed == 0 || !want.Owed && (c.Next == 0 || c.Next > want.Until || d.Spec.Disabled && d.Revision == c.Revision) {
			continue
		}
		if want.After != nil && order(c.Cursor, *want.After) <= 0 {
			continue
		}
		if len(out.Items) == want.Limit {
			out.Partial = true
			break
		}
		out.Items = append(out.Items, engine.Due{Definition: d, Cursor: c.Cursor})
	}
	return out, nil
}

func byPlanned(a, b job.Execution) int {
	return cmp.Or(cmp.Compare(a.PlannedAt, b.PlannedAt), byID(a, b))
}

func (w *twin) BacklogPage(_ context.Context, partition int, want engine.WantBacklog) (engine.BacklogPage, error) {
	out := engine.BacklogPage{Seq: w.parts[partition].Seq, After: want.Place()}
	after := job.Execution{PlannedAt: want.PlannedAt, ID: want.ID}
	for _, e := range ordered(w.live, byPlanned) {
		if e.Partition != partition || e.State != job.ExecutionQueued || byPlanned(e, after) <= 0 {
			continue
		}
		if len(out.Rows) == want.Limit {
			out.Partial = true
			break
		}
		out.Rows = append(out.Rows, w.row(e))
	}
	return out, nil
}

func (w *twin) find(id job.ExecutionID) (job.Execution, bool) {
	if e, ok := w.live[id]; ok {
		return e, true
	}
	e, ok := w.history[id]
	return e, ok
}

func (w *twin) ExecutionPage(_ context.Context, partition int, ids []job.ExecutionID) (engine.ExecutionPage, error) {
	out := engine.ExecutionPage{Seq: w.parts[partition].Seq, Asked: slices.Clone(ids)}
	for _, id := range ids {
		if e, ok := w.find(id); ok && e.Partition == partition {
			row := w.row(e)
			row.Home = w.home(e.JobUID, e.Revision, partition)
			out.Rows = append(out.Rows, row)
		} else if ok {
			engine.PutElsewhere(&out, &e)
		}
	}
	return out, nil
}

func (w *twin) ShardPage(_ context.Context, partition int, refs []engine.ShardRef) (engine.ShardPage, error) {
	out := engine.ShardPage{Seq: w.parts[partition].Seq, Asked: slices.Clone(refs)}
	for _, ref := range refs {
		for _, s := range w.shardsOf(ref.Execution) {
			if e, ok := w.find(ref.Execution); ok && e.Partition == partition && s.Index == ref.Index {
				out.Rows = append(out.Rows, engine.Settled{ShardRef: ref, Token: s.Token, ReportSeq: s.ReportSeq, Closed: s.Closed})
			}
		}
	}
	return out, nil
}

// list walks everything: the rows that keep says yes to, in order, behind the place after.
func list[T any](all []T, name string, p store.Page, keep func(T) bool, place func(T) string) (rows []T, next string, err error) {
	var after string
	if _, err := store.ParseAfter("twin "+name, p.After, &after); err != nil {
		return nil, "", err
	}
	skipping := p.After != ""
	for _, v := range all {
		switch {
		case skipping:
			skipping = place(v) != after
		case !keep(v):
		case len(rows) == p.Rows():
			return rows, store.After("twin "+name, place(rows[len(rows)-1])), nil
		default:
			rows = append(rows, v)
		}
	}
	return rows, "", nil
}

func (w *twin) Job(_ context.Context, namespace, name string) (store.JobRow, error) {
	j, ok := w.jobs[jobName{namespace, name}]
	if !ok {
		return store.JobRow{}, refuse(job.KindNotFound, "job_not_found")
	}
	d := j.revisions[len(j.revisions)-1]
	return store.JobRow{Definition: w.filled(d), Cursors: w.cursorsOf(d.UID)}, nil
}

func (w *twin) Jobs(_ context.Context, namespace string, p store.Page) ([]store.JobRow, string, error) {
	var all []store.JobRow
	for at, j := range w.jobs {
		d := j.revisions[len(j.revisions)-1]
		if at.namespace == namespace {
			all = append(all, store.JobRow{Definition: w.filled(d), Cursors: w.cursorsOf(d.UID)})
		}
	}
	name := func(r store.JobRow) string { return r.Definition.Name }
	slices.SortFunc(all, func(a, b store.JobRow) int { return cmp.Compare(name(a), name(b)) })
	return list(all, "jobs", p, func(store.JobRow) bool { return true }, name)
}

// pendingTrigger is the inbox entry that asks for an execution.
func (w *twin) pendingTrigger(id job.ExecutionID) (twinEntry, bool) {
	at := slices.IndexFunc(w.inbox, func(e twinEntry) bool { return e.Kind.Triggers() && e.Execution == id })
	if at < 0 {
		return twinEntry{}, false
	}
	return w.inbox[at], true
}

func (w *twin) Execution(_ context.Context, namespace string, id job.ExecutionID) (job.Execution, error) {
	if e, ok := w.find(id); ok && e.Namespace == namespace {
		return e, nil
	}
	entry, ok := w.pendingTrigger(id)
	if !ok || entry.namespace != namespace {
		return job.Execution{}, refuse(job.KindNotFound, "execution_not_found")
	}
	d := w.definition(entry.Job, entry.revision)
	params := entry.Request.Params
	if len(params) == 0 {
		params = d.Spec.Params
	}
	return job.Execution{
		ID: id, Partition: entry.partition, Namespace: namespace, Job: d.Name, JobUID: d.UID, Revision: d.Revision,
		Pool: d.Spec.Pool, Handler: d.Spec.Handler, Trigger: job.TriggerRequest, PlannedAt: entry.Request.At, CreatedAt: store.AskedAt(entry.Request), Reason: store.ReasonAsked(entry.Request),
		RequestKey: entry.Request.Key, Params: params, ShardTotal: d.Spec.ShardTotal(), State: job.ExecutionScheduled,
	}, nil
}

func (w *twin) Executions(_ context.Context, f store.ExecutionFilter) ([]job.Execution, string, error) {
	all := append(ordered(w.live, byID), ordered(w.history, byID)...)
	slices.SortFunc(all, func(a, b job.Execution) int { return byID(b, a) })
	return list(all, "executions", f.Page, func(e job.Execution) bool {
		return f.Selects(&e)
	}, func(e job.Execution) string { return e.ID.String() })
}

func (w *twin) Shards(ctx context.Context, namespace string, id job.ExecutionID, p store.Page) ([]job.Shard, string, error) {
	if _, err := w.Execution(ctx, namespace, id); err != nil {
		return nil, "", err
	}
	return list(w.shardsOf(id), "shards", p, func(job.Shard) bool { return true }, func(s job.Shard) string { return string(rune(s.Index)) })
}

func (w *twin) Decisions(_ context.Context, namespace, name string, p store.Page) ([]job.Decision, string, error) {
	type numbered struct {
		job.Decision
		n int
	}
	var all []numbered
	for n, d := range slices.Backward(w.decisions) {
		all = append(all, numbered{d, n})
	}
	found, next, err := list(all, "decisions", p, func(d numbered) bool {
		return d.Namespace == namespace && (name == "" || d.Name == name)
	}, func(d numbered) string { return string(rune(d.n)) })
	var out []job.Decision
	for _, d := range found {
		out = append(out, d.Decision)
	}
	return out, next, err
}

func (w *twin) Journal(_ context.Context, partition int, afterSeq int64, limit int) ([]store.JournalRow, error) {
	var out []store.JournalRow
	for _, r := range w.journal {
		if r.Partition == partition && r.Seq > afterSeq && len(out) < limit {
			out = append(out, r)
		}
	}
	return out, nil
}
