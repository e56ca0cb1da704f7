package storetest

import (
	"fmt"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// What a trigger tells is what a page of the inbox would say: who hands it to the owner saves a read.
var toldCases = []examCase{
	{"Control/what a trigger tells", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h", Params: []byte(`{"job":1}`)})
		d.putJob("serial", 2, job.Spec{Pool: "p", Handler: "h", Overlap: &job.Overlap{Policy: job.OverlapQueue}})
		d.commit(engine.Batch{Consumed: ids(d.waiting())})
		var page engine.InboxPage
		ask := func(n byte, at job.Instant, params string) store.Trigger {
			return store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(at, [10]byte{n}), Bulk: true,
				Request: engine.Request{At: at, Params: []byte(params)},
				Told: func(partition int, seq int64, e *engine.Entry) {
					equal(tb, "partition", partition, 0)
					page.Seq, page.Entries = seq, append(page.Entries, *e)
				}}
		}
		told := func(what string, want int, all ...store.Trigger) {
			tb.Helper()
			page = engine.InboxPage{}
			got, err := s.Triggers(ctx, all, toFirst)
			wantVerdict(tb, what, err, "ok")
			equal(tb, what+": are told", len(page.Entries), want)
			for i := range page.Entries {
				equal(tb, what+": entry", page.Entries[i].ID, got[i].Entry)
			}
			read, err := s.InboxPage(ctx, 0, 100)
			wantVerdict(tb, "InboxPage", err, "ok")
			for i := range read.Entries {
				read.Entries[i].Cursors, read.Entries[i].Planner, read.Entries[i].Place = nil, 0, 0
			}
			if want > 0 {
				equal(tb, what, page, read)
			}
			d.commit(engine.Batch{Consumed: ids(read.Entries)})
		}
		keyed, later, serial := ask(1, noon, `{"a": [1, "b c"]}`), ask(2, noon, ``), ask(3, noon, ``)
		keyed.Key, keyed.Request.Key = store.RequestKey{Namespace: "ns", Operation: "trigger/j", Key: "k"}, "k"
		later.Request.Delayed, serial.Job = true, "serial"
		told("one", 1, ask(4, noon, `{"x":1}`))
		told("with a key and blanks", 1, keyed)
		told("for later", 1, later)
		told("a few", 5, ask(5, noon, `{"x":5}`), ask(6, noon, ``), ask(7, noon+1, `{"x": 7}`), ask(8, noon+2, ``), ask(9, noon+2, ``))
		told("the key again", 0, keyed)
		told("of a job that obeys its policy", 0, serial)
		unasked := ask(10, noon, ``)
		unasked.Told = nil
		told("unasked", 0, unasked)

		missing := ask(11, noon, ``)
		missing.Job = "none"
		page = engine.InboxPage{}
		_, err := s.Triggers(ctx, []store.Trigger{ask(12, noon, ``), missing}, toFirst)
		wantVerdict(tb, "a refused list", err, "not_found/job_not_found")
		equal(tb, "told of a refused list", fmt.Sprint(page.Entries), "[]")
	}},
}
