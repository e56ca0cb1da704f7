package storetest

import (
	"errors"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var partitionCases = []examCase{
	{"Partitions/new", func(tb TB, s store.Store) {
		rows, err := s.PartitionRows(ctx)
		wantVerdict(tb, "PartitionRows", err, "ok")
		l := lineageOf(tb, s)
		equal(tb, "rows", rows, []store.PartitionRow{{Fence: store.Fence{Partition: 0}, Lineage: l}, {Fence: store.Fence{Partition: 1}, Lineage: l}})
	}},
	{"Partitions/epoch", func(tb TB, s store.Store) {
		d := sit(tb, s)
		equal(tb, "first epoch", d.f.Epoch, 1)
		row := acquire(tb, s, "me", 5)
		equal(tb, "epoch by the clock", row.Epoch, 5)
		d.f = row.Fence
		d.commit(engine.Batch{LastToken: 900})
		row = acquire(tb, s, "you", 3)
		equal(tb, "epoch above the last token", row.Epoch, 901)
		equal(tb, "row", row, store.PartitionRow{Fence: store.Fence{Partition: 0, Owner: "you", Epoch: 901, Seq: 1}, LastToken: 900, Lineage: lineageOf(tb, s)})
		row = acquire(tb, s, "you", 3)
		equal(tb, "epoch above the old one, acquired from oneself", row.Epoch, 902)
		d.f = row.Fence
		d.commit(engine.Batch{LastToken: 7})
		rows, _ := s.PartitionRows(ctx)
		equal(tb, "last token never goes back", rows[0].LastToken, 900)
	}},
	{"Partitions/seen row outdated", func(tb TB, s store.Store) {
		d := sit(tb, s)
		rows, _ := s.PartitionRows(ctx)
		for what, change := range map[string]func(*store.PartitionRow){
			"owner": func(r *store.PartitionRow) { r.Owner = "somebody" },
			"epoch": func(r *store.PartitionRow) { r.Epoch-- },
			"beat":  func(r *store.PartitionRow) { r.Beat++ },
		} {
			seen := rows[0]
			change(&seen)
			d.unchanged("acquire with another "+what, "fenced/fence", func() error {
				_, err := s.AcquirePartition(ctx, seen, "you", 0, engine.Level)
				return err
			})
		}
		if _, err := s.RenewPartition(ctx, d.f); err != nil {
			tb.Errorf("RenewPartition: %v", err)
		}
		_, err := s.AcquirePartition(ctx, rows[0], "you", 0, engine.Level)
		wantVerdict(tb, "acquire after a renewal that was not seen", err, "fenced/fence")
	}},
	{"Partitions/floor", func(tb TB, s store.Store) {
		floor := func(what string, raise, want int) {
			tb.Helper()
			got, err := s.RaiseFloor(ctx, raise)
			wantVerdict(tb, "RaiseFloor", err, "ok")
			equal(tb, what, got, want)
		}
		floor("of a new database", 0, 0)
		d := sit(tb, s)
		take := func(partition, level int, want string) {
			tb.Helper()
			rows, err := s.PartitionRows(ctx)
			wantVerdict(tb, "PartitionRows", err, "ok")
			d.unchanged("acquire", want, func() error {
				_, err := s.AcquirePartition(ctx, rows[partition], "old", 0, level)
				return err
			})
		}
		floor("raised", 2, 2)
		floor("raised to where it is", 2, 2)
		floor("asked", 0, 2)
		floor("never lowered", 1, 2)
		for _, level := range []int{1, 0, -1} {
			take(1, level, "conflict/server_too_old")
			take(0, level, "conflict/server_too_old") // from who has it
		}
		d.commit(engine.Batch{}) // the owner goes on until it loses the partition
		_, err := s.RenewPartition(ctx, d.f)
		wantVerdict(tb, "RenewPartition", err, "ok")
		floor("raised to the newest", engine.Level, engine.Level)
		take(1, engine.Level-1, "conflict/server_too_old")
		wantVerdict(tb, "ReleasePartition", s.ReleasePartition(ctx, d.f), "ok")
		take(0, engine.Level-1, "conflict/server_too_old")
		row := acquire(tb, s, "new", 0)
		equal(tb, "who knows enough", row.Owner, "new")
	}},
	{"Partitions/renew", func(tb TB, s store.Store) {
		d := sit(tb, s)
		for want := int64(1); want <= 3; want++ {
			beat, err := s.RenewPartition(ctx, d.f)
			wantVerdict(tb, "RenewPartition", err, "ok")
			equal(tb, "beat", beat, want)
		}
		stale, other := d.f, d.f
		stale.Epoch, other.Owner = stale.Epoch-1, "you"
		for _, f := range []store.Fence{stale, other, {Partition: 1}} {
			d.unchanged("renew by another", "fenced/fence", func() error { _, err := s.RenewPartition(ctx, f); return err })
		}
	}},
	{"Partitions/release", func(tb TB, s store.Store) {
		d := sit(tb, s)
		stale := d.f
		stale.Epoch--
		d.unchanged("release by another", "ok", func() error { return s.ReleasePartition(ctx, stale) })
		wantVerdict(tb, "release", s.ReleasePartition(ctx, d.f), "ok")
		d.refused("commit after release", "fenced/fence", engine.Batch{})
		nobody := d.f
		nobody.Owner = ""
		d.unchanged("commit by nobody", "fenced/fence", func() error { return s.Commit(ctx, nobody, &engine.Batch{Seq: 1}) })
		d.unchanged("renew by nobody", "fenced/fence", func() error { _, err := s.RenewPartition(ctx, nobody); return err })
		equal(tb, "epoch after release", acquire(tb, s, "you", 0).Epoch, 2)
	}},
}

// acquire takes partition 0 as it is.
func acquire(tb TB, s store.Store, owner string, clock int64) store.PartitionRow {
	tb.Helper()
	rows, err := s.PartitionRows(ctx)
	if err != nil {
		tb.Fatalf("PartitionRows: %v", err)
	}
	row, err := s.AcquirePartition(ctx, rows[0], owner, clock, engine.Level)
	if err != nil {
		tb.Fatalf("AcquirePartition: %v", err)
	}
	return row
}

var commitCases = []examCase{
	{"Commit/fence", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.insert(job.ExecutionRunning, job.ShardLeased)
		_, good := d.execution(job.ExecutionRunning, job.ShardLeased)
		good.Seq = d.f.Seq + 1
		for what, spoil := range map[string]func(*store.Fence, *engine.Batch){
			"stale epoch":     func(f *store.Fence, _ *engine.Batch) { f.Epoch-- },
			"epoch to come":   func(f *store.Fence, _ *engine.Batch) { f.Epoch++ },
			"other owner":     func(f *store.Fence, _ *engine.Batch) { f.Owner = "you" },
			"other partition": func(f *store.Fence, _ *engine.Batch) { f.Partition = 1 },
			"seq behind":      func(_ *store.Fence, b *engine.Batch) { b.Seq-- },
			"seq ahead":       func(_ *store.Fence, b *engine.Batch) { b.Seq++ },
		} {
			f, b := d.f, good
			spoil(&f, &b)
			d.unchanged(what, "fenced/fence", func() error { return s.Commit(ctx, f, &b) })
		}
		wantVerdict(tb, "the good one", s.Commit(ctx, d.f, &good), "ok")
		d.unchanged("the same again", "fenced/fence", func() error { return s.Commit(ctx, d.f, &good) })
	}},
	{"Commit/late after a new epoch", func(tb TB, s store.Store) {
		d := sit(tb, s)
		_, b := d.execution(job.ExecutionRunning, job.ShardLeased)
		b.Seq = 1
		acquire(tb, s, "me", 0) // R3: from oneself
		d.unchanged("the commit that was on its way", "fenced/fence", func() error { return s.Commit(ctx, d.f, &b) })
	}},
	{"Commit/execution guard", func(tb TB, s store.Store) {
		d := sit(tb, s)
		e, again := d.execution(job.ExecutionRunning, job.ShardLeased)
		d.commit(again)
		d.refused("insert twice", "fenced/state_guard", again)
		d.refused("another state", "fenced/state_guard", finish(withState(e, job.ExecutionQueued), job.ExecutionRunning))
		d.refused("end from another state", "fenced/state_guard", finish(withState(e, job.ExecutionQueued), job.ExecutionFailed))
		d.refused("rerun of a live one", "fenced/state_guard", finish(withState(e, job.ExecutionFailed), job.ExecutionQueued))
		absent, _ := d.execution(job.ExecutionRunning)
		d.refused("one that is nowhere", "fenced/state_guard", finish(absent, job.ExecutionFailed))
		d.commit(finish(e, job.ExecutionFailed))
		d.refused("insert of an ended one", "fenced/state_guard", again)
		d.refused("end twice", "fenced/state_guard", finish(e, job.ExecutionFailed))
		d.refused("rerun from another end", "fenced/state_guard", finish(withState(e, job.ExecutionCancelled), job.ExecutionQueued))
		_, b := d.execution(job.ExecutionRunning, job.ShardLeased)
		b.Executions = append(b.Executions, again.Executions...)
		d.refused("a good write before a bad one", "fenced/state_guard", b)
		over, b := d.execution(job.ExecutionCancelled, job.ShardCancelled)
		d.commit(b)
		_, more := d.execution(job.ExecutionCancelled, job.ShardCancelled)
		more.Executions, more.Shards = append(more.Executions, b.Executions...), append(more.Shards, b.Shards...)
		d.refused("one that came ended, again", "fenced/state_guard", more)
		more.Seq = d.f.Seq + 1
		if err, ok := errors.AsType[*job.Error](s.Commit(ctx, d.f, &more)); !ok || err.Field != over.ID.String() {
			tb.Errorf("the refusal does not name %s: %v", over.ID, err)
		}
	}},
	{"Commit/shard guard", func(tb TB, s store.Store) {
		d := sit(tb, s)
		e := d.insert(job.ExecutionRunning, job.ShardLeased, job.ShardQueued)
		d.refused("insert twice", "fenced/state_guard", shard(e, 0, "", job.ShardQueued))
		d.refused("another state", "fenced/state_guard", shard(e, 0, job.ShardRunning, job.ShardSucceeded))
		d.refused("one that is not there", "fenced/state_guard", shard(e, 2, job.ShardQueued, job.ShardLeased))
		end := finish(e, job.ExecutionFailed)
		end.Shards = shard(e, 1, job.ShardLeased, job.ShardFailed).Shards
		d.refused("another state, with the end of its execution", "fenced/state_guard", end)
		d.commit(shard(e, 0, job.ShardLeased, job.ShardRunning))
		d.commit(finish(e, job.ExecutionFailed))
		d.refused("of an ended execution", "fenced/state_guard", shard(e, 0, job.ShardRunning, job.ShardSucceeded))
		for what, b := range map[string]engine.Batch{"shard": shard(e, 0, job.ShardRunning, job.ShardSucceeded), "execution": finish(e, job.ExecutionFailed)} {
			b.Seq = d.f.Seq + 1
			if err, ok := errors.AsType[*job.Error](s.Commit(ctx, d.f, &b)); !ok || err.Field != e.ID.String() {
				tb.Errorf("the refusal of a write of the %s does not name %s: %v", what, e.ID, err)
			}
		}
	}},
	{"Commit/entry guard", func(tb TB, s store.Store) {
		d := sit(tb, s)
		_, w := d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		d.refused("an entry that is not there", "fenced/entry_guard", engine.Batch{Consumed: []int64{w.Entry, w.Entry + 100}})
		d.commit(engine.Batch{Consumed: []int64{w.Entry}})
		pending, err := s.EntryPending(ctx, w.Entry)
		wantVerdict(tb, "EntryPending", err, "ok")
		equal(tb, "pending after its commit", pending, false)
		page, _ := s.InboxPage(ctx, 0, 10)
		equal(tb, "inbox after its commit", len(page.Entries), 0)
		d.refused("an entry twice", "fenced/entry_guard", engine.Batch{Consumed: []int64{w.Entry}})
		_, w, err = s.PutJob(ctx, store.PutJob{Partition: 1, Definition: job.Definition{UID: job.UID{2}, Namespace: "ns", Name: "k"}})
		wantVerdict(tb, "PutJob", err, "ok")
		d.refused("an entry of another partition", "fenced/entry_guard", engine.Batch{Consumed: []int64{w.Entry}})
	}},
	{"Commit/history", func(tb TB, s store.Store) {
		d := sit(tb, s)
		e := d.insert(job.ExecutionRunning, job.ShardLeased, job.ShardSucceeded, job.ShardLeased)
		end := finish(e, job.ExecutionPartiallySucceeded)
		end.Shards = append(shard(e, 2, job.ShardLeased, job.ShardFailed).Shards, shard(e, 0, job.ShardLeased, job.ShardFailed).Shards...)
		d.commit(end)
		d.wantStates("ended", e.ID, job.ExecutionPartiallySucceeded, job.ShardFailed, job.ShardSucceeded, job.ShardFailed)
		loaded, _ := s.LoadPartition(ctx, 0)
		equal(tb, "live after the end", len(loaded.Executions), 0)
		again := finish(withState(e, job.ExecutionPartiallySucceeded), job.ExecutionQueued)
		again.Executions[0].Row.Round = 1
		again.Shards = shard(e, 0, job.ShardFailed, job.ShardQueued).Shards
		d.commit(again)
		d.wantStates("rerun", e.ID, job.ExecutionQueued, job.ShardQueued, job.ShardSucceeded, job.ShardFailed)
		backlog, _ := s.BacklogPage(ctx, 0, engine.WantBacklog{Limit: 9})
		equal(tb, "backlog after the rerun", len(backlog.Rows), 1)
		d.commit(finish(withState(e, job.ExecutionQueued), job.ExecutionRunning))
		d.commit(finish(e, job.ExecutionFailed))
		d.wantStates("ended without a write for any shard", e.ID, job.ExecutionFailed, job.ShardQueued, job.ShardSucceeded, job.ShardFailed)
	}},
	{"Commit/journal", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.commit(engine.Batch{At: noon})
		d.commit(engine.Batch{At: noon + 1, LastToken: 4, Facts: []engine.Fact{{Kind: engine.FactOwned, Note: "x"}, {Kind: engine.FactStarted, Shard: 2}}})
		rows, err := s.Journal(ctx, 0, 0, 10)
		wantVerdict(tb, "Journal", err, "ok")
		equal(tb, "rows", rows, []store.JournalRow{
			{Seq: 1, Epoch: d.f.Epoch, At: noon, Facts: []byte(`[]`)},
			{Seq: 2, Epoch: d.f.Epoch, At: noon + 1, Facts: []byte(`[{"kind":"owned","note":"x"},{"kind":"started","shard":2}]`)},
		})
		rows, _ = s.Journal(ctx, 0, 1, 10)
		equal(tb, "rows behind 1", len(rows), 1)
		rows, _ = s.Journal(ctx, 0, 0, 1)
		equal(tb, "rows, at most one", len(rows), 1)
		rows, _ = s.Journal(ctx, 1, 0, 10)
		equal(tb, "rows of the other partition", len(rows), 0)
	}},
	{"Commit/refused texts", func(tb TB, s store.Store) {
		d := sit(tb, s)
		for _, bad := range []string{"a\x00b", "\xff", "\xed\xa0\x80"} {
			e, b := d.execution(job.ExecutionRunning, job.ShardLeased)
			b.Shards[0].Row.Worker = bad
			d.refused("worker of a shard", "rejected/bad_text", b)
			_, b = d.execution(job.ExecutionRunning)
			b.Executions[0].Row.Params = []byte(`"` + bad + `"`)
			d.refused("parameters", "rejected/bad_text", b)
			b = shard(e, 0, "", job.ShardQueued)
			b.Shards[0].Row.Error = &job.Failure{Message: bad}
			d.refused("error of a shard", "rejected/bad_text", b)
			d.refused("label of a session", "rejected/bad_text", engine.Batch{Sessions: []job.Session{{ID: "0.x", Labels: map[string]string{"l": bad}}}})
			d.refused("decision", "rejected/bad_text", engine.Batch{Decisions: []job.Decision{{Namespace: "ns", Name: bad}}})
			d.refused("cursor", "rejected/bad_text", engine.Batch{Cursors: []job.Cursor{{Schedule: bad}}})
			d.commit(engine.Batch{Poison: []engine.Poison{{Kind: bad, Event: []byte(bad), Error: bad}}})
		}
	}},
	{"Commit/sessions", func(tb TB, s store.Store) {
		d := sit(tb, s)
		a := job.Session{ID: "0.a", Namespace: "ns", Pool: "p", Worker: "w", Incarnation: "i", Handlers: []string{"h", "k"}, Slots: 4,
			Labels: map[string]string{"zone": "x"}, Build: "b", TTL: 15 * time.Second, Beat: 3 * time.Second, Margin: 1500 * time.Millisecond, OpenedAt: noon, Unheard: 1}
		d.commit(engine.Batch{Sessions: []job.Session{a, {ID: "0.b"}, {ID: "1.a", Partition: 1}}})
		a.Slots, a.Unheard, a.Labels = 5, 2, nil
		d.commit(engine.Batch{Sessions: []job.Session{a}, EndSessions: []job.SessionID{"0.b", "0.never"}})
		loaded, err := s.LoadPartition(ctx, 0)
		wantVerdict(tb, "LoadPartition", err, "ok")
		equal(tb, "sessions", loaded.Sessions, []job.Session{a})
	}},
}

func withState(e job.Execution, state job.ExecutionState) job.Execution {
	e.State = state
	return e
}
