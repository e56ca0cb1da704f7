package storetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// twin is the contract in maps: no index, no cleverness, every list is a walk over everything. It
// implements store.Store, so that one operation can be put to it and to an adapter.
type twin struct {
	parts     []store.PartitionRow
	jobs      map[jobName]twinJob
	deleted   []twinJob
	floor     int
	calendars map[jobName]*twinCalendar
	keys      map[store.RequestKey]twinKey // Hash is left empty in the key
	inbox     []twinEntry                  // by id
	lastEntry int64
	cursors   map[cursorKey]twinCursor
	sessions  map[job.SessionID]job.Session
	live      map[job.ExecutionID]job.Execution
	history   map[job.ExecutionID]job.Execution
	shards    map[shardKey]job.Shard // of live and ended executions alike
	decisions []job.Decision
	matched   map[job.ExecutionID][]job.Parent
	told      int // entries of the newest commit about ends of parents
	backfills map[job.ExecutionID]job.Backfill
	journal   []store.JournalRow

	store.Logs    // nil: random histories have no logs; their case has a model of its own
	store.Sweeper // nil: nor is anything in them old
	servers       // nil: nor servers
}

type (
	servers = store.Servers // Servers is the name of a method, too

	jobName struct{ namespace, name string }
	twinJob struct {
		partition int // of the newest revision's pool
		home      int // that it was created in
		revisions []job.Definition
		changes   []job.Change // of the revisions
	}
	twinKey struct {
		hash string
		id   job.ExecutionID
		at   job.Instant
	}
	twinEntry struct {
		partition int
		namespace string
		overtakes bool // a pause, a deletion, a cancel of something that the owner has taken in
		engine.Entry
		revision int64 // of a trigger
	}
	cursorKey struct {
		job      job.UID
		schedule string
	}
	twinCursor struct {
		partition int
		job.Cursor
	}
	shardKey struct {
		execution job.ExecutionID
		index     int
	}
)

var _ store.Store = (*twin)(nil)

func newTwin(partitions int, lineage string) *twin {
	w := &twin{
		jobs: map[jobName]twinJob{}, calendars: map[jobName]*twinCalendar{}, keys: map[store.RequestKey]twinKey{}, cursors: map[cursorKey]twinCursor{},
		sessions: map[job.SessionID]job.Session{}, live: map[job.ExecutionID]job.Execution{},
		history: map[job.ExecutionID]job.Execution{}, matched: map[job.ExecutionID][]job.Parent{}, shards: map[shardKey]job.Shard{},
	}
	for p := range partitions {
		w.parts = append(w.parts, store.PartitionRow{Fence: store.Fence{Partition: p}, Lineage: lineage})
	}
	return w
}

func (w *twin) Ping(context.Context) error { return nil }
func (w *twin) Close() error               { return nil }

func refuse(kind job.Kind, code string) *job.Error { return job.Errorf(kind, code, "the twin refuses") }

// newest first or last, by a key.
func ordered[K comparable, V any](m map[K]V, compare func(a, b V) int) []V {
	return slices.SortedFunc(maps.Values(m), compare)
}

func byID(a, b job.Execution) int { return bytes.Compare(a.ID[:], b.ID[:]) }

func (w *twin) PartitionRows(context.Context) ([]store.PartitionRow, error) {
	return slices.Clone(w.parts), nil
}

func (w *twin) AcquirePartition(_ context.Context, seen store.PartitionRow, owner string, clock int64, level int) (store.PartitionRow, error) {
	p := &w.parts[seen.Partition]
	if p.Owner != seen.Owner || p.Epoch != seen.Epoch || p.Beat != seen.Beat {
		return store.PartitionRow{}, refuse(job.KindFenced, "fence")
	}
	if level < w.floor {
		return store.PartitionRow{}, refuse(job.KindConflict, "server_too_old")
	}
	p.Owner = owner
	p.Epoch = max(p.Epoch+1, job.Epoch(p.LastToken)+1, job.Epoch(clock))
	return *p, nil
}

func (w *twin) RaiseFloor(_ context.Context, level int) (int, error) {
	w.floor = max(w.floor, level)
	return w.floor, nil
}

func (w *twin) owned(f store.Fence) *store.PartitionRow {
	p := &w.parts[f.Partition]
	if f.Owner == "" || p.Owner != f.Owner || p.Epoch != f.Epoch {
		return nil
	}
	return p
}

func (w *twin) RenewPartition(_ context.Context, f store.Fence) (int64, error) {
	p := w.owned(f)
	if p == nil {
		return 0, refuse(job.KindFenced, "fence")
	}
	p.Beat++
	return p.Beat, nil
}

func (w *twin) SettlePartition(_ context.Context, f store.Fence, lineage string) error {
	p := w.owned(f)
	if p == nil {
		return refuse(job.KindFenced, "fence")
	}
	p.Lineage = lineage
	return nil
}

func (w *twin) ReleasePartition(_ context.Context, f store.Fence) error {
	if p := w.owned(f); p != nil {
		p.Owner = ""
	}
	return nil
}

// Commit looks at every guard before it changes anything.
func (w *twin) Commit(_ context.Context, f store.Fence, b *engine.Batch) error {
	if err := store.CheckBatch(b); err != nil {
		return err
	}
	p := w.owned(f)
	if p == nil || p.Seq != b.Seq-1 {
		return refuse(job.KindFenced, "fence")
	}
	for _, id := range b.Consumed {
		if !slices.ContainsFunc(w.inbox, func(e twinEntry) bool { return e.ID == id && e.partition == f.Partition }) {
			return refuse(job.KindFenced, "entry_guard")
		}
	}
	for _, x := range b.Forwarded {
		if !slices.ContainsFunc(w.inbox, func(e twinEntry) bool {
			return e.ID == x.Entry && e.partition == f.Partition && !slices.Contains(b.Consumed, e.ID)
		}) {
			return refuse(job.KindFenced, "entry_guard")
		}
	}
	alive := map[job.ExecutionID]bool{} // by this batch
	for _, x := range b.Executions {
		if stored, _ := w.find(x.Row.ID); stored.State != x.From {
			return refuse(job.KindFenced, "state_guard").WithField(x.Row.ID.String())
		}
		alive[x.Row.ID] = true
	}
	for _, x := range b.Shards {
		_, live := w.live[x.Row.Execution]
		if !live && !alive[x.Row.Execution] || w.shards[shardKey{x.Row.Execution, x.Row.Index}].State != x.From {
			return refuse(job.KindFenced, "state_guard").WithField(x.Row.Execution.String())
		}
	}
	if !w.mayPlan(f.Partition, b) {
		return refuse(job.KindFenced, "planner_guard")
	}
	if !w.mayProgress(f.Partition, b) {
		return refuse(job.KindFenced, "backfill_guard")
	}
	for _, x := range b.Poison {
		for _, e := range w.inbox {
			if e.ID == x.Entry && e.partition == f.Partition && e.Kind.Triggers() {
				maps.DeleteFunc(w.keys, func(_ store.RequestKey, made twinKey) bool { return made.id == e.Execution })
			}
		}
	}
	p.Seq, p.LastToken = b.Seq, max(p.LastToken, b.LastToken)
	w.inbox = slices.DeleteFunc(w.inbox, func(e twinEntry) bool { return slices.Contains(b.Consumed, e.ID) })
	return w.apply(f, b)
}

func (w *twin) apply(f store.Fence, b *engine.Batch) error {
	for _, x := range b.Executions {
		delete(w.live, x.Row.ID)
		delete(w.history, x.Row.ID)
		if x.Row.State.Ended() {
			w.history[x.Row.ID] = x.Row
		} else {
			w.live[x.Row.ID] = x.Row
		}
	}
	for _, x := range b.Shards {
		w.shards[shardKey{x.Row.Execution, x.Row.Index}] = x.Row
	}
	for _, s := range b.Streaks {
		for k, c := range w.cursors {
			if k.job == s.Job && c.partition == f.Partition {
				c.Failures = s.Next(c.Failures)
				w.cursors[k] = c
			}
		}
	}
	for _, c := range b.Cursors {
		k := cursorKey{c.Job, c.Schedule}
		if old, there := w.cursors[k]; there {
			c.Failures = old.Failures
		}
		w.cursors[k] = twinCursor{f.Partition, c}
	}
	for _, c := range b.DropCursors {
		if k := (cursorKey{c.Job, c.Schedule}); w.cursors[k].partition == f.Partition {
			delete(w.cursors, k)
		}
	}
	for _, x := range b.Handovers {
		for k, c := range w.cursors {
			if k.job == x.Job {
				w.cursors[k] = twinCursor{x.Partition, c.Cursor}
			}
		}
	}
	for _, x := range b.Forwarded {
		for i := range w.inbox {
			if w.inbox[i].ID == x.Entry {
				w.inbox[i].partition = x.Partition
			}
		}
	}
	w.decisions = append(w.decisions, b.Decisions...)
	for _, m := range b.Matched {
		w.matched[m.Execution] = m.Parents
	}
	w.progress(f.Partition, b)
	w.told = 0
	w.sent(b)
	for i := range b.Executions {
		if x := &b.Executions[i].Row; x.State.Ended() {
			w.tellChildren(x)
		}
	}
	for _, s := range b.Sessions {
		w.sessions[s.ID] = s
	}
	for _, id := range b.EndSessions {
		delete(w.sessions, id)
	}
	facts, err := json.Marshal(b.Facts)
	if len(b.Facts) == 0 {
		facts = []byte("[]")
	}
	w.journal = append(w.journal, store.JournalRow{Partition: f.Partition, Seq: b.Seq, Epoch: f.Epoch, At: b.At, Facts: facts})
	return err
}

func (w *twin) shardsOf(id job.ExecutionID) []job.Shard {
	var all []job.Shard
	for k, s := range w.shards {
		if k.execution == id {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b job.Shard) int { return cmp.Compare(a.Index, b.Index) })
	return all
}

func (w *twin) cursorsOf(uid job.UID) []job.Cursor {
	var all []job.Cursor
	for k, c := range w.cursors {
		if k.job == uid {
			all = append(all, c.Cursor)
		}
	}
	slices.SortFunc(all, func(a, b job.Cursor) int { return cmp.Compare(a.Schedule, b.Schedule) })
	return all
}

// definition finds a revision of a job; 0 is the newest; nil when there is none.
func (w *twin) definition(uid job.UID, revision int64) *job.Definition {
	for _, j := range slices.Concat(slices.Collect(maps.Values(w.jobs)), w.deleted) {
		if j.revisions[0].UID != uid {
			continue
		}
		if revision == 0 {
			revision = int64(len(j.revisions))
		}
		if revision <= int64(len(j.revisions)) {
			d := w.filled(j.revisions[revision-1])
			return &d
		}
	}
	return nil
}

func (w *twin) row(e job.Execution) engine.Row {
	return engine.Row{Execution: e, Shards: w.shardsOf(e.ID), Definition: w.definition(e.JobUID, e.Revision)}
}
