package engine_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// database is the dumbest thing that keeps the store's promises: it holds committed rows, refuses what
// the contract says must be refused, and answers the core's pages.
type database struct {
	seq       int64
	lastToken job.Token
	live      map[job.ExecutionID]*record
	history   map[job.ExecutionID]*record
	revisions map[job.UID][]*job.Definition
	calendars map[string][]job.Calendar // all revisions by name
	cursors   map[cursorKey]job.Cursor
	sessions  map[job.SessionID]job.Session
	partition int
	mates     map[int]*database // by partition, this one too: revisions, cursors and planners are theirs together
	planners  map[job.UID]int   // of jobs that have cursors
	homes     map[job.UID]int   // where a job was created
	anybody   bool              // writes cursors (mutant)
	inbox     []engine.Entry
	behind    map[int64]bool // cancels that were asked while their trigger waited
	entries   *int64
	decisions []job.Decision
	backfills *[]job.Backfill // of all partitions
	poison    []engine.Poison
	arrivals  int // executions that were sent here
}

type record struct {
	row    job.Execution
	shards []job.Shard
}

type cursorKey struct {
	job      job.UID
	schedule string
}

func newDatabase() *database {
	d := &database{live: map[job.ExecutionID]*record{}, history: map[job.ExecutionID]*record{}, mates: map[int]*database{},
		revisions: map[job.UID][]*job.Definition{}, calendars: map[string][]job.Calendar{}, cursors: map[cursorKey]job.Cursor{}, sessions: map[job.SessionID]job.Session{},
		behind: map[int64]bool{}, planners: map[job.UID]int{}, homes: map[job.UID]int{}, entries: new(int64), backfills: new([]job.Backfill)}
	d.mates[0] = d
	return d
}

// mate is another partition of the same tables.
func (d *database) mate(partition int) *database {
	if m := d.mates[partition]; m != nil {
		return m
	}
	m := newDatabase()
	m.calendars = d.calendars
	m.partition, m.mates, m.revisions, m.cursors, m.planners, m.homes, m.entries, m.backfills = partition, d.mates, d.revisions, d.cursors, d.planners, d.homes, d.entries, d.backfills
	d.mates[partition] = m
	return m
}

func (d *database) planner(u job.UID) int {
	if len(d.cursorsOf(u)) > 0 {
		return d.planners[u]
	}
	return d.homes[u]
}

func (d *database) copy() *database {
	c := *d
	c.live, c.history = copyRecords(d.live), copyRecords(d.history)
	c.calendars = maps.Clone(d.calendars)
	c.revisions, c.cursors, c.sessions = maps.Clone(d.revisions), maps.Clone(d.cursors), maps.Clone(d.sessions)
	c.inbox, c.behind = slices.Clone(d.inbox), maps.Clone(d.behind)
	backfills := slices.Clone(*d.backfills)
	c.backfills, c.mates = &backfills, map[int]*database{d.partition: &c}
	return &c
}

func copyRecords(m map[job.ExecutionID]*record) map[job.ExecutionID]*record {
	c := map[job.ExecutionID]*record{}
	for id, r := range m {
		c[id] = &record{r.row, slices.Clone(r.shards)}
	}
	return c
}

// commit applies a batch or refuses it whole, as the contract says.
func (d *database) commit(b *engine.Batch) error {
	if b.Seq != d.seq+1 {
		return fmt.Errorf("fence: batch %d behind %d", b.Seq, d.seq)
	}
	if b.LastToken < d.lastToken {
		return fmt.Errorf("last token went back from %d to %d", d.lastToken, b.LastToken)
	}
	for _, id := range b.Consumed {
		n := len(d.inbox)
		d.inbox = slices.DeleteFunc(d.inbox, func(e engine.Entry) bool { return e.ID == id })
		if len(d.inbox) == n {
			return fmt.Errorf("entry guard: entry %d is not there", id)
		}
	}
	if err := d.writeExecutions(b); err != nil {
		return err
	}
	if err := d.writeShards(b); err != nil {
		return err
	}
	for i := range b.Executions {
		if id := b.Executions[i].Row.ID; b.Executions[i].Row.State.Ended() {
			d.history[id] = d.live[id]
			delete(d.live, id)
		}
	}
	if err := d.writeCursors(b); err != nil {
		return err
	}
	for _, s := range b.Sessions {
		d.sessions[s.ID] = s
	}
	for _, id := range b.EndSessions {
		delete(d.sessions, id)
	}
	d.decisions = append(d.decisions, b.Decisions...)
	if err := d.writeBackfills(b); err != nil {
		return err
	}
	d.sent(b)
	d.poison = append(d.poison, b.Poison...)
	d.seq, d.lastToken = b.Seq, b.LastToken
	d.tellChildren(b)
	return nil
}

func (d *database) writeCursors(b *engine.Batch) error {
	for _, s := range b.Streaks {
		for k, c := range d.cursors {
			if k.job == s.Job && d.planners[k.job] == d.partition {
				c.Failures = s.Next(c.Failures)
				d.cursors[k] = c
			}
		}
	}
	for _, c := range b.Cursors {
		if p := d.planner(c.Job); p != d.partition && !d.anybody {
			return fmt.Errorf("planner guard: partition %d writes a cursor, the planner is %d", d.partition, p)
		}
		old, there := d.cursors[cursorKey{c.Job, c.Schedule}]
		if c.Last < old.Last {
			return fmt.Errorf("a cursor goes back from %+v to %+v", old, c)
		}
		if there {
			c.Failures = old.Failures
		}
		d.cursors[cursorKey{c.Job, c.Schedule}], d.planners[c.Job] = c, d.partition
	}
	for _, c := range b.DropCursors {
		if d.planner(c.Job) == d.partition {
			delete(d.cursors, cursorKey{c.Job, c.Schedule})
		}
	}
	for _, h := range b.Handovers {
		if !d.anybody && (len(d.cursorsOf(h.Job)) == 0 || d.planner(h.Job) != d.partition) {
			return fmt.Errorf("planner guard: partition %d hands over what it does not plan", d.partition)
		}
		d.planners[h.Job] = h.Partition
	}
	for _, f := range b.Forwarded {
		i := slices.IndexFunc(d.inbox, func(e engine.Entry) bool { return e.ID == f.Entry })
		if i < 0 {
			return fmt.Errorf("entry guard: entry %d is not there", f.Entry)
		}
		to := d.mate(f.Partition)
		to.inbox = append(to.inbox, d.inbox[i])
		d.inbox = slices.Delete(slices.Clone(d.inbox), i, i+1)
	}
	return nil
}

func (d *database) writeExecutions(b *engine.Batch) error {
	seen := map[job.ExecutionID]bool{}
	for i := range b.Executions {
		w := &b.Executions[i]
		id := w.Row.ID
		if seen[id] {
			return fmt.Errorf("two writes of execution %s in one batch", id)
		}
		seen[id] = true
		if r := d.history[id]; w.From.Ended() && r != nil && r.row.State == w.From { // rerun: it moves back
			d.live[id] = r
			delete(d.history, id)
		}
		var stored job.ExecutionState
		if r := cmp.Or(d.live[id], d.history[id]); r != nil {
			stored = r.row.State
		}
		if stored != w.From {
			return fmt.Errorf("state guard: execution %s is %q, not %q", id, stored, w.From)
		}
		if d.live[id] == nil {
			d.live[id] = &record{shards: make([]job.Shard, w.Row.ShardTotal)}
		}
		d.live[id].row = w.Row
	}
	return nil
}

func (d *database) writeShards(b *engine.Batch) error {
	type key struct {
		id    job.ExecutionID
		index int
	}
	seen := map[key]bool{}
	for i := range b.Shards {
		w := &b.Shards[i]
		r := d.live[w.Row.Execution]
		if k := (key{w.Row.Execution, w.Row.Index}); seen[k] {
			return fmt.Errorf("two writes of shard %v in one batch", k)
		} else {
			seen[k] = true
		}
		if r == nil || r.shards[w.Row.Index].State != w.From {
			return fmt.Errorf("state guard: shard %s/%d is not %q", w.Row.Execution, w.Row.Index, w.From)
		}
		if w.Row.CheckpointSeq < r.shards[w.Row.Index].CheckpointSeq {
			return fmt.Errorf("checkpoint of shard %s/%d goes back", w.Row.Execution, w.Row.Index)
		}
		if w.Row.Token < r.shards[w.Row.Index].Token {
			return fmt.Errorf("token of shard %s/%d goes back", w.Row.Execution, w.Row.Index)
		}
		row := w.Row
		row.Attempts = slices.Clone(w.Row.Attempts)
		r.shards[w.Row.Index] = row
	}
	return nil
}

func (d *database) newest(u job.UID) *job.Definition {
	if revisions := d.revisions[u]; len(revisions) > 0 {
		return revisions[len(revisions)-1]
	}
	return nil
}

func (d *database) revision(u job.UID, n int64) *job.Definition {
	for _, def := range d.revisions[u] {
		if def.Revision == n {
			return def
		}
	}
	return nil
}

func (d *database) full(r *record) engine.Row {
	row := engine.Row{Execution: r.row, Shards: slices.Clone(r.shards), Definition: d.revision(r.row.JobUID, r.row.Revision), Home: d.home(r.row.JobUID, r.row.Revision)}
	for i := range row.Shards {
		row.Shards[i].Attempts = slices.Clone(row.Shards[i].Attempts)
	}
	return row
}

func (d *database) loaded(takeover bool) engine.Loaded {
	l := engine.Loaded{Seq: d.seq, LastToken: d.lastToken, Takeover: takeover, Backfills: d.liveBackfills(), Owes: len(d.owedPage(engine.WantDue{Limit: 1}).Items) > 0}
	for _, s := range d.sessions {
		l.Sessions = append(l.Sessions, s)
	}
	slices.SortFunc(l.Sessions, func(a, b job.Session) int { return cmp.Compare(a.ID, b.ID) })
	for _, r := range d.ordered() {
		switch x := &r.row; {
		case x.State != job.ExecutionQueued && x.State != job.ExecutionScheduled:
			l.Executions = append(l.Executions, d.full(r))
		case x.State == job.ExecutionScheduled && (x.Reason == job.WaitOverlap || x.Reason == job.WaitReplace),
			x.State == job.ExecutionQueued && (x.Reason == job.ReasonOverlapTurn || x.Trigger != job.TriggerRequest && x.Reason != job.ReasonOverlapFree):
			l.Waiting = append(l.Waiting, engine.Waiting{Job: x.JobUID, ID: x.ID, PlannedAt: x.PlannedAt, State: x.State, Reason: x.Reason, Round: x.Round})
		}
	}
	slices.SortStableFunc(l.Waiting, func(a, b engine.Waiting) int { return bytes.Compare(a.Job[:], b.Job[:]) })
	return l
}

// ordered lists live executions by (PlannedAt, ID).
func (d *database) ordered() []*record {
	var all []*record
	for _, r := range d.live {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.row.PlannedAt, b.row.PlannedAt), bytes.Compare(a.row.ID[:], b.row.ID[:]))
	})
	return all
}

func (d *database) post(e engine.Entry) int64 {
	*d.entries++
	e.ID = *d.entries
	if e.Kind == engine.EntryCancel {
		d.behind[e.ID] = slices.ContainsFunc(d.inbox, func(o engine.Entry) bool {
			return o.Kind.Triggers() && o.Execution == e.Execution
		})
	}
	d.inbox = append(d.inbox, e)
	return e.ID
}

func (d *database) inboxPage(limit int) engine.InboxPage {
	p := engine.InboxPage{Seq: d.seq}
	for _, first := range []bool{true, false} {
		for _, e := range d.inbox {
			overtakes := e.Kind == engine.EntryJobDeleted || e.Kind == engine.EntryCancelJob || e.Kind == engine.EntryCancel && !d.behind[e.ID]
			if overtakes != first {
				continue
			}
			if len(p.Entries) == limit {
				p.Partial = true
				continue
			}
			if e.Planner = d.planner(e.Job); d.newest(e.Job) != nil {
				e.Place = place(d.newest(e.Job).Spec.Pool)
			}
			if e.Kind == engine.EntryCancelJob {
				e.Queued = d.queuedOf(e.Job, 3)
			}
			if e.Definition = d.newest(e.Job); e.Kind.Triggers() {
				e.Definition, e.Pool = d.asked(e.Job), d.newest(e.Job).Spec.Pool
			}
			d.joinBackfill(&e)
			e.Cursors = d.cursorsOf(e.Job)
			d.running(&e)
			for _, c := range e.Cursors {
				if (c.Held != 0 || c.Owed != 0) && c.Revision != e.Definition.Revision {
					e.Before = d.revision(e.Job, c.Revision)
				}
			}
			if e.WantsPast() {
				e.Past = d.past(e.Job)
			}
			p.Entries = append(p.Entries, e)
		}
	}
	return p
}

func (d *database) queuedOf(u job.UID, limit int) (ids []job.ExecutionID) {
	for _, r := range d.ordered() {
		if r.row.JobUID == u && (r.row.State == job.ExecutionQueued || r.row.State == job.ExecutionScheduled) && len(ids) < limit {
			ids = append(ids, r.row.ID)
		}
	}
	return ids
}

func (d *database) cursorsOf(u job.UID) []job.Cursor {
	var out []job.Cursor
	for k, c := range d.cursors {
		if k.job == u {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, compareCursors)
	return out
}

func compareCursors(a, b job.Cursor) int {
	return cmp.Or(cmp.Compare(a.Next, b.Next), bytes.Compare(a.Job[:], b.Job[:]), cmp.Compare(a.Schedule, b.Schedule))
}

// owedPage lists cursors that owe, by job and schedule.
func (d *database) owedPage(w engine.WantDue) engine.DuePage {
	p := engine.DuePage{Owed: true, Seq: d.seq, After: w.After}
	byName := func(a, b job.Cursor) int {
		return cmp.Or(bytes.Compare(a.Job[:], b.Job[:]), cmp.Compare(a.Schedule, b.Schedule))
	}
	for _, c := range slices.SortedFunc(maps.Values(d.cursors), byName) {
		if c.Owed == 0 || d.newest(c.Job).Deleted != nil || d.planners[c.Job] != d.partition || w.After != nil && byName(c, *w.After) <= 0 {
			continue
		}
		if p.Partial = len(p.Items) == w.Limit; p.Partial {
			return p
		}
		p.Items = append(p.Items, engine.Due{Definition: d.newest(c.Job), Cursor: c})
	}
	return p
}
