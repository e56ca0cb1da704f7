package engine_test

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// The pages of the database.

func (d *database) duePage(w engine.WantDue) engine.DuePage {
	if w.Owed {
		return d.owedPage(w)
	}
	p := engine.DuePage{Seq: d.seq, Until: w.Until, After: w.After}
	var due []job.Cursor
	for _, c := range d.cursors {
		def := d.newest(c.Job)
		if c.Next != 0 && c.Next <= w.Until && (!def.Spec.Disabled || c.Revision != def.Revision) && def.Deleted == nil && d.planners[c.Job] == d.partition && (w.After == nil || compareCursors(c, *w.After) > 0) {
			due = append(due, c)
		}
	}
	slices.SortFunc(due, compareCursors)
	if len(due) > w.Limit {
		due, p.Partial = due[:w.Limit], true
	}
	for _, c := range due {
		p.Items = append(p.Items, engine.Due{Definition: d.newest(c.Job), Cursor: c})
	}
	return p
}

func (d *database) scheduledPage(w engine.WantScheduled) engine.ScheduledPage {
	p := engine.ScheduledPage{Seq: d.seq, After: w.After, Through: engine.EndOf(w.Until)}
	for _, r := range d.ordered() {
		at := engine.Place{At: r.row.PlannedAt, ID: r.row.ID}
		if r.row.State != job.ExecutionScheduled || r.row.Reason != job.WaitDelay || at.Compare(w.After) <= 0 || r.row.PlannedAt > w.Until {
			continue
		}
		if len(p.Rows) == w.Limit {
			last := &p.Rows[w.Limit-1].Execution
			p.Through = engine.Place{At: last.PlannedAt, ID: last.ID}
			break
		}
		p.Rows = append(p.Rows, d.full(r))
	}
	return p
}

func (d *database) backlogPage(w engine.WantBacklog) engine.BacklogPage {
	p := engine.BacklogPage{Seq: d.seq, After: w.Place()}
	for _, r := range d.ordered() {
		behind := cmp.Or(cmp.Compare(r.row.PlannedAt, w.PlannedAt), bytes.Compare(r.row.ID[:], w.ID[:])) > 0
		switch {
		case r.row.State != job.ExecutionQueued || !behind:
		case len(p.Rows) == w.Limit:
			p.Partial = true
		default:
			p.Rows = append(p.Rows, d.full(r))
		}
	}
	return p
}

func (d *database) executionPage(ids []job.ExecutionID) engine.ExecutionPage {
	p := engine.ExecutionPage{Seq: d.seq, Asked: ids}
	for _, id := range ids {
		if r := cmp.Or(d.live[id], d.history[id]); r != nil {
			p.Rows = append(p.Rows, d.full(r))
		}
	}
	d.elsewhere(&p)
	return p
}

func (d *database) shardPage(refs []engine.ShardRef) engine.ShardPage {
	p := engine.ShardPage{Seq: d.seq, Asked: refs}
	for _, ref := range refs {
		if r := cmp.Or(d.live[ref.Execution], d.history[ref.Execution]); r != nil && ref.Index >= 0 && ref.Index < len(r.shards) {
			s := &r.shards[ref.Index]
			p.Rows = append(p.Rows, engine.Settled{ShardRef: ref, Token: s.Token, ReportSeq: s.ReportSeq, Closed: s.Closed})
		}
	}
	return p
}
