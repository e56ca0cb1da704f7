package storetest

import (
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

func minutely(zone string) job.Spec {
	return job.Spec{Pool: "p", Handler: "h", Schedules: []job.Schedule{{ID: "main", Spec: schedule.Spec{Cron: "* * * * *", TimeZone: zone}}}}
}

// plannedJob is a desk with a job whose schedule is planned up to noon.
func plannedJob(tb TB, s store.Store) (*desk, job.Definition) {
	tb.Helper()
	d := sit(tb, s)
	def, w := d.putJob("j", 1, minutely("UTC"))
	d.commit(engine.Batch{At: noon, Consumed: []int64{w.Entry}, Cursors: []job.Cursor{{Job: def.UID, Schedule: "main", Revision: def.Revision, Next: noon + 60_000, Last: noon}}})
	return d, def
}

func (d *desk) backfill(id byte, from, to job.Instant) (job.Backfill, store.Written, error) {
	b := job.Backfill{ID: job.ExecutionID{id}, Namespace: "ns", Job: "j", From: from, To: to, At: noon, Spec: job.BackfillSpec{Reverse: true, MaxParallel: 3, By: "ann", Reason: "为什么"}}
	return d.s.PutBackfill(ctx, store.PutBackfill{Backfill: b, Count: func(job.Definition) (int64, error) { return 7, nil }}, func(job.Definition) int { return 0 })
}

var backfillCases = []examCase{
	{"Backfills/asked for", func(tb TB, s store.Store) {
		d, def := plannedJob(tb, s)
		b, w, err := d.backfill(1, noon-1000, noon)
		wantVerdict(tb, "PutBackfill", err, "ok")
		equal(tb, "filled in", []any{b.JobUID, b.Revision, b.Spec.Total, b.Progress.State}, []any{def.UID, def.Revision, int64(7), job.BackfillPending})
		page, err := s.InboxPage(ctx, 0, 10)
		wantVerdict(tb, "InboxPage", err, "ok")
		if len(page.Entries) != 1 || page.Entries[0].Backfill == nil || page.Entries[0].Definition == nil {
			tb.Fatalf("the inbox holds %+v", page.Entries)
		}
		e := page.Entries[0]
		equal(tb, "entry", []any{e.ID, e.Kind, e.Execution, *e.Backfill, e.Definition.Revision}, []any{w.Entry, engine.EntryBackfill, b.ID, b, int64(1)})
		read, err := s.Backfill(ctx, "ns", b.ID)
		wantVerdict(tb, "Backfill", err, "ok")
		equal(tb, "read", read, b)
		_, err = s.Backfill(ctx, "other", b.ID)
		wantVerdict(tb, "in another namespace", err, "not_found/backfill_not_found")
		_, err = s.Backfill(ctx, "ns", job.ExecutionID{9})
		wantVerdict(tb, "another id", err, "not_found/backfill_not_found")
	}},
	{"Backfills/refused", func(tb TB, s store.Store) {
		d, def := plannedJob(tb, s)
		ask := func(what, want string, from, to job.Instant) {
			tb.Helper()
			d.unchanged(what, want, func() error { _, _, err := d.backfill(2, from, to); return err })
		}
		ask("what is to be planned", "conflict/range_not_planned", noon, noon+60_000)
		d.unchanged("no such job", "not_found/job_not_found", func() error {
			_, _, err := s.PutBackfill(ctx, store.PutBackfill{Backfill: job.Backfill{ID: job.ExecutionID{3}, Namespace: "ns", Job: "none"}}, nil)
			return err
		})
		_, _, err := d.backfill(1, noon-2000, noon-1000)
		wantVerdict(tb, "PutBackfill", err, "ok")
		ask("a part of a range that lives", "conflict/backfill_live", noon-1000, noon)
		_, _, err = d.backfill(2, noon-999, noon)
		wantVerdict(tb, "beside it", err, "ok")
		d.putJob("j", 2, minutely("Asia/Tokyo"))
		ask("a revision that is not in force", "conflict/range_not_planned", 1, 2)
		d.commit(engine.Batch{At: noon, Cursors: []job.Cursor{{Job: def.UID, Schedule: "main", Revision: 2, Next: noon + 60_000, Last: noon, Owed: noon - 9000, OwedTo: noon - 5000}}})
		ask("what is caught up", "conflict/range_not_planned", noon-5000, noon-3000)
		_, _, err = d.backfill(4, noon-4999, noon-3000)
		wantVerdict(tb, "behind it", err, "ok")
		c := job.Cursor{Job: def.UID, Schedule: "main", Revision: 2, Next: noon + 60_000, Last: noon, Owed: noon - 9000, OwedTo: noon - 8000}
		c.Owe(job.InstantRange{From: noon - 6000, To: noon - 6000})
		d.commit(engine.Batch{At: noon, Cursors: []job.Cursor{c}})
		ask("what is caught up of a later outage", "conflict/range_not_planned", noon-6500, noon-5500)
		_, _, err = d.backfill(5, noon-7999, noon-6001)
		wantVerdict(tb, "between the two", err, "ok")
	}},
	{"Backfills/progress", func(tb TB, s store.Store) {
		d, _ := plannedJob(tb, s)
		b, w, _ := d.backfill(1, noon-2000, noon)
		p := job.BackfillProgress{ID: b.ID, State: job.BackfillRunning, Cursor: noon - 2000, Open: []job.Instant{noon - 2000}, Succeeded: 1, Failed: 2, Skipped: 3, Started: noon}
		d.commit(engine.Batch{At: noon, Consumed: []int64{w.Entry}, Backfills: []job.BackfillProgress{p}})
		loaded, err := s.LoadPartition(ctx, 0)
		wantVerdict(tb, "LoadPartition", err, "ok")
		if len(loaded.Backfills) != 1 || loaded.Backfills[0].Definition == nil {
			tb.Fatalf("loaded %+v", loaded.Backfills)
		}
		equal(tb, "loaded", loaded.Backfills[0].Progress, p)
		loaded, _ = s.LoadPartition(ctx, 1)
		equal(tb, "of the other partition", len(loaded.Backfills), 0)
		p.State, p.Open, p.Ended, p.Reason = job.BackfillDone, nil, noon+1, job.ReasonCancelRequested
		d.commit(engine.Batch{At: noon, Backfills: []job.BackfillProgress{p}})
		loaded, _ = s.LoadPartition(ctx, 0)
		equal(tb, "ended", len(loaded.Backfills), 0)
		read, _ := s.Backfill(ctx, "ns", b.ID)
		equal(tb, "read", read.Progress, p)
		_, _, err = s.CancelBackfill(ctx, store.CancelBackfill{Namespace: "ns", ID: b.ID})
		wantVerdict(tb, "cancel what has ended", err, "conflict/backfill_ended")
		_, _, err = d.backfill(2, noon-2000, noon)
		wantVerdict(tb, "the same range again", err, "ok")
	}},
	{"Backfills/swept", func(tb TB, s store.Store) {
		d, _ := plannedJob(tb, s)
		sweeper, ok := s.(store.JobSweeper)
		if !ok {
			tb.Fatalf("the store is no JobSweeper")
		}
		ask := func(id byte, from, to job.Instant) (job.Backfill, store.Written) {
			tb.Helper()
			in := job.Backfill{ID: job.ExecutionID{0, id}, Namespace: "ns", Job: "j", From: from, To: to, At: noon}
			b, w, err := d.s.PutBackfill(ctx, store.PutBackfill{Backfill: in, Count: func(job.Definition) (int64, error) { return 7, nil }}, func(job.Definition) int { return 0 })
			wantVerdict(tb, "PutBackfill", err, "ok")
			return b, w
		}
		for id, ends := range map[byte]job.Instant{1: noon + 500, 2: noon + 10, 3: 0, 4: noon + 100, 5: noon + 99} { // 3 goes on
			at := noon - 1000*job.Instant(id)
			b, w := ask(id, at, at+500)
			p := job.BackfillProgress{ID: b.ID, State: job.BackfillRunning, Started: noon}
			if ends != 0 {
				p.State, p.Ended = job.BackfillDone, ends
			}
			d.commit(engine.Batch{At: noon, Consumed: []int64{w.Entry}, Backfills: []job.BackfillProgress{p}})
		}
		late, last := ask(6, noon-9000, noon-8000) // has ended, and its entry is still there
		d.commit(engine.Batch{At: noon, Backfills: []job.BackfillProgress{{ID: late.ID, State: job.BackfillCancelled, Ended: noon}}})
		sweep := func(namespace string, limit int) int {
			tb.Helper()
			n, err := sweeper.SweepBackfills(ctx, namespace, noon+100, limit)
			wantVerdict(tb, "SweepBackfills", err, "ok")
			return n
		}
		left := func(what string, want ...byte) {
			tb.Helper()
			all, _, err := s.Backfills(ctx, "ns", "", store.Page{Limit: 10})
			wantVerdict(tb, "Backfills", err, "ok")
			var ids []byte
			for _, b := range all {
				ids = append(ids, b.ID[1])
			}
			equal(tb, what, ids, want)
		}
		equal(tb, "of another namespace", sweep("other", 10), 0)
		equal(tb, "first step, behind one that is younger", sweep("ns", 1), 1)
		left("after one", 6, 5, 4, 3, 1)
		equal(tb, "second step", sweep("ns", 10), 1)
		equal(tb, "then nothing", sweep("ns", 10), 0)
		left("those that ended at the instant or later, go on, or are told of", 6, 4, 3, 1)
		d.commit(engine.Batch{At: noon, Consumed: []int64{last.Entry}})
		equal(tb, "its entry was consumed", sweep("ns", 10), 1)
		left("at the end", 4, 3, 1)
		_, err := s.Backfill(ctx, "ns", job.ExecutionID{0, 2})
		wantVerdict(tb, "one that is gone", err, "not_found/backfill_not_found")
		loaded, err := s.LoadPartition(ctx, 0)
		wantVerdict(tb, "LoadPartition", err, "ok")
		equal(tb, "what goes on is loaded", len(loaded.Backfills), 1)
	}},
	{"Backfills/cancelled", func(tb TB, s store.Store) {
		d, _ := plannedJob(tb, s)
		b, first, _ := d.backfill(1, noon-2000, noon)
		cancel := func(c job.BackfillCancel) store.Written {
			tb.Helper()
			got, w, err := s.CancelBackfill(ctx, store.CancelBackfill{Namespace: "ns", ID: b.ID, Cancel: c})
			wantVerdict(tb, "CancelBackfill", err, "ok")
			if w.Entry != 0 {
				equal(tb, "cancelled", got.Cancel, &c)
			}
			return w
		}
		asked := job.BackfillCancel{At: noon, By: "ann", Note: "no"}
		if w := cancel(asked); w.Entry <= first.Entry {
			tb.Errorf("the entry is %d behind %d", w.Entry, first.Entry)
		}
		equal(tb, "asked again", cancel(asked).Entry, int64(0))
		asked.Running = true
		if cancel(asked).Entry == 0 {
			tb.Errorf("that what runs is cancelled too was not written")
		}
		page, _ := s.InboxPage(ctx, 0, 10)
		for _, e := range page.Entries {
			equal(tb, "each entry shows the row as it is", e.Backfill.Cancel, &asked)
		}
		equal(tb, "entries", len(page.Entries), 3)
		_, _, err := s.CancelBackfill(ctx, store.CancelBackfill{Namespace: "other", ID: b.ID})
		wantVerdict(tb, "in another namespace", err, "not_found/backfill_not_found")
	}},
	{"Backfills/end with their job", func(tb TB, s store.Store) {
		d, _ := plannedJob(tb, s)
		b, _, _ := d.backfill(1, noon-2000, noon)
		if _, err := s.DeleteJob(ctx, store.DeleteJob{Namespace: "ns", Name: "j", Deletion: job.Deletion{At: noon + 1, Cancel: true, By: "bob", Reason: "gone"}}); err != nil {
			tb.Fatalf("DeleteJob: %v", err)
		}
		read, _ := s.Backfill(ctx, "ns", b.ID)
		equal(tb, "asked to end", read.Cancel, &job.BackfillCancel{At: noon + 1, Running: true, By: "bob", Reason: job.ReasonJobDeleted, Note: "gone"})
	}},
	{"Backfills/listed", func(tb TB, s store.Store) {
		d, _ := plannedJob(tb, s)
		for i := range byte(5) {
			_, _, err := d.backfill(i+1, noon-job.Instant(i+1)*10_000, noon-job.Instant(i+1)*10_000+5)
			wantVerdict(tb, "PutBackfill", err, "ok")
		}
		var got []byte
		for p := (store.Page{Limit: 2}); ; {
			rows, next, err := s.Backfills(ctx, "ns", "j", p)
			wantVerdict(tb, "Backfills", err, "ok")
			for _, b := range rows {
				got = append(got, b.ID[0])
			}
			if p.After = next; next == "" {
				break
			}
		}
		equal(tb, "newest first", got, []byte{5, 4, 3, 2, 1})
		rows, _, _ := s.Backfills(ctx, "ns", "other", store.Page{})
		equal(tb, "of another job", len(rows), 0)
		rows, _, _ = s.Backfills(ctx, "other", "", store.Page{})
		equal(tb, "of another namespace", len(rows), 0)
	}},
	{"Instants/decisions in", func(tb TB, s store.Store) {
		d := sit(tb, s)
		one := func(schedule string, from, to job.Instant) job.Decision {
			return job.Decision{Job: job.UID{1}, Namespace: "ns", Name: "j", Schedule: schedule, Kind: job.DecisionMissed, Reason: job.ReasonMissedDown, From: from, To: to, Count: 2, At: noon}
		}
		a, b, c := one("main", noon, noon+10), one("main", noon+20, noon+30), one("two", noon-5, noon+100)
		follows := one("", noon+7, noon+7)
		d.commit(engine.Batch{At: noon, Decisions: []job.Decision{b, a, c, follows}})
		within := func(from, to job.Instant, schedules ...string) []job.Decision {
			tb.Helper()
			got, err := s.DecisionsIn(ctx, job.UID{1}, schedules, from, to)
			wantVerdict(tb, "DecisionsIn", err, "ok")
			return got
		}
		at := func(when job.Instant, schedules ...string) []job.Decision {
			tb.Helper()
			return within(when, when, schedules...)
		}
		equal(tb, "the first of two", within(noon+5, noon+25, "main"), []job.Decision{a})
		equal(tb, "at the ends of what is asked for", [][]job.Decision{within(noon+15, noon+20, "main"), within(noon+10, noon+15, "main")}, [][]job.Decision{{b}, {a}})
		equal(tb, "between ranges, for long", len(within(noon+11, noon+19, "main")), 0)
		equal(tb, "of no schedule", [][]job.Decision{at(noon+7, ""), within(noon, noon+9, ""), at(noon+8, "")}, [][]job.Decision{{follows}, {follows}, nil})
		equal(tb, "in a range", at(noon+5, "main", "two"), []job.Decision{a, c})
		equal(tb, "at its ends", [][]job.Decision{at(noon, "main"), at(noon+10, "main"), at(noon+20, "main"), at(noon+30, "main")}, [][]job.Decision{{a}, {a}, {b}, {b}})
		equal(tb, "between ranges", len(at(noon+15, "main")), 0)
		equal(tb, "behind all", len(at(noon+31, "main", "none")), 0)
	}},
	{"Instants/upcoming and counts", func(tb TB, s store.Store) {
		d := sit(tb, s)
		var names []string
		for i, name := range []string{"a", "b", "c"} {
			def, w := d.putJob(name, byte(i+1), minutely(""))
			d.commit(engine.Batch{At: noon, Consumed: []int64{w.Entry}, Cursors: []job.Cursor{{Job: def.UID, Schedule: "main", Revision: 1, Next: noon + job.Instant(10-i), Last: 1}}})
		}
		off := minutely("")
		off.Disabled = true
		d.putJob("b", 2, off)
		rows, more, err := s.Upcoming(ctx, "ns", noon+10, 5)
		wantVerdict(tb, "Upcoming", err, "ok")
		for _, r := range rows {
			names = append(names, r.Definition.Name)
		}
		equal(tb, "in order, without the disabled one", []any{names, more}, []any{[]string{"c", "a"}, false})
		rows, more, _ = s.Upcoming(ctx, "ns", noon+10, 1)
		equal(tb, "the first", []any{len(rows), more}, []any{1, true})
		rows, _, _ = s.Upcoming(ctx, "ns", noon+8, 5)
		equal(tb, "up to an instant", len(rows), 1)
		rows, _, _ = s.Upcoming(ctx, "other", noon+10, 5)
		equal(tb, "of another namespace", len(rows), 0)
		d.insert(job.ExecutionRunning, job.ShardLeased)
		d.insert(job.ExecutionQueued, job.ShardQueued)
		got, err := s.Counts(ctx)
		wantVerdict(tb, "Counts", err, "ok")
		equal(tb, "counts", got, store.Counts{Jobs: 3, Live: map[job.ExecutionState]int{job.ExecutionRunning: 1, job.ExecutionQueued: 1}})
	}},
	{"Instants/another time zone database", func(tb TB, s store.Store) {
		d := sit(tb, s)
		zoned, _ := d.putJob("zoned", 1, minutely("Europe/Berlin"))
		_, _ = d.putJob("utc", 2, minutely(""))
		tell := func(mark int64, want int) {
			tb.Helper()
			n, err := s.ZonesChanged(ctx, mark, noon)
			wantVerdict(tb, "ZonesChanged", err, "ok")
			equal(tb, "told", n, want)
		}
		tell(1<<62, 1)
		tell(1<<62, 0)
		tell(5, 1)
		page, _ := s.InboxPage(ctx, 0, 10)
		last := page.Entries[len(page.Entries)-1]
		equal(tb, "entry", []any{len(page.Entries), last.Kind, last.Job}, []any{4, engine.EntryJobChanged, zoned.UID})
	}},
}
