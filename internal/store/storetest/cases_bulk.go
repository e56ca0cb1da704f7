package storetest

import (
	"fmt"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Triggers that lie in one row are entries of their own: each is found, cancelled, taken or set aside without the others.
var bulkCases = []examCase{
	{"Control/triggers that lie in one row", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h", Params: []byte(`{"job":1}`)})
		d.commit(engine.Batch{Consumed: ids(d.waiting())})
		key := store.RequestKey{Namespace: "ns", Operation: "trigger/j", Key: "k"}
		all := make([]store.Trigger, store.BulkItems+9)
		for i := range all {
			all[i] = store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{byte(i >> 8), byte(i)}), Bulk: true, Request: engine.Request{At: noon}}
		}
		all[3].Key, all[3].Request.Key, all[4].Request.Params = key, "k", []byte(`{"n":4}`)
		got, err := s.Triggers(ctx, all, toFirst)
		wantVerdict(tb, "Triggers", err, "ok")
		equal(tb, "entries", [2]int{len(d.waiting()), int(got[8].Entry - got[0].Entry)}, [2]int{len(all), 8})
		bulkFound(tb, d, all, got)

		take := func(what string, want string, b engine.Batch) {
			if want != "ok" {
				d.refused(what, want, b)
				return
			}
			d.commit(b)
		}
		take("some of them", "ok", engine.Batch{Consumed: []int64{got[7].Entry, got[2].Entry}})
		take("one that was taken", "fenced/entry_guard", engine.Batch{Consumed: []int64{got[0].Entry, got[2].Entry}})
		take("one twice", "fenced/entry_guard", engine.Batch{Consumed: []int64{got[0].Entry, got[0].Entry}})
		take("one that is set aside", "ok", engine.Batch{Consumed: []int64{got[3].Entry}, Poison: []engine.Poison{{Entry: got[3].Entry, Kind: "InboxPage"}}})
		again, err := s.Triggers(ctx, all[3:4], toFirst)
		wantVerdict(tb, "the key of what was set aside", err, "ok")
		equal(tb, "is a new request", again[0].Repeated, false)
		page, err := s.InboxPage(ctx, 0, 4)
		wantVerdict(tb, "InboxPage", err, "ok")
		equal(tb, "the first that wait", fmt.Sprint(ids(page.Entries), page.Partial), fmt.Sprint([]int64{got[0].Entry, got[1].Entry, got[4].Entry, got[5].Entry}, true))
		d.commit(engine.Batch{Consumed: ids(d.waiting())})
		equal(tb, "left in the inbox", len(d.waiting()), 0)
		pending, err := s.EntryPending(ctx, got[0].Entry)
		wantVerdict(tb, "EntryPending", err, "ok")
		equal(tb, "pending", pending, false)
	}},
}

// bulkFound: what waits is shown, can be cancelled behind its trigger, and a key that comes again leads to it.
func bulkFound(tb TB, d *desk, all []store.Trigger, got []store.Triggered) {
	for _, i := range []int{0, 3, 4, store.BulkItems - 1, store.BulkItems, len(all) - 1} {
		e, err := d.s.Execution(ctx, "ns", all[i].Execution)
		wantVerdict(tb, "Execution", err, "ok")
		params := `{"job":1}`
		if i == 4 {
			params = `{"n":4}`
		}
		equal(tb, "shown", fmt.Sprint(e.State, e.RequestKey, string(e.Params)), fmt.Sprint(job.ExecutionScheduled, all[i].Request.Key, params))
		pending, err := d.s.EntryPending(ctx, got[i].Entry)
		wantVerdict(tb, "EntryPending", err, "ok")
		equal(tb, "pending", pending, true)
	}
	_, err := d.s.Execution(ctx, "ns", job.RequestedID(noon, [10]byte{99}))
	wantVerdict(tb, "Execution that nobody asked for", err, "not_found/execution_not_found")
	asked, err := d.s.Ask(ctx, store.Ask{Kind: engine.EntryCancel, Namespace: "ns", Execution: all[5].Execution, At: noon})
	wantVerdict(tb, "Ask", err, "ok")
	inbox := d.waiting()
	equal(tb, "the cancel comes behind its trigger", inbox[len(inbox)-1].ID, asked.Entry)
	d.commit(engine.Batch{Consumed: []int64{asked.Entry}})
	again, err := d.s.Triggers(ctx, all[3:4], toFirst)
	wantVerdict(tb, "the same key", err, "ok")
	repeat := got[3]
	repeat.Repeated = true
	equal(tb, "leads to what waits", again[0], repeat)
}

func ids(all []engine.Entry) (ids []int64) {
	for i := range all {
		ids = append(ids, all[i].ID)
	}
	return ids
}

// waiting is the whole inbox.
func (d *desk) waiting() []engine.Entry {
	d.tb.Helper()
	page, err := d.s.InboxPage(ctx, 0, 10_000)
	wantVerdict(d.tb, "InboxPage", err, "ok")
	return page.Entries
}
