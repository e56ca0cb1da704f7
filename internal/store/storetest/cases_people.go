package storetest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

var controlCases = []examCase{
	{"Control/put job", func(tb TB, s store.Store) {
		d := sit(tb, s)
		spec := job.Spec{Pool: "p", Handler: "h", Params: []byte(`{"b":"<x>","a":1}`), Shards: 8, Disabled: true,
			Schedules: []job.Schedule{{ID: "main", Spec: schedule.Spec{Cron: "*/5 * * * *", TimeZone: "Europe/Berlin"}},
				{ID: "once", Spec: schedule.Spec{At: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}}},
			Retry: job.Retry{MaxAttempts: 3, Initial: time.Second, Factor: 1.5, Max: time.Minute, Jitter: "none"}, Timeout: job.Timeout{Attempt: time.Hour, Stall: time.Minute, Grace: time.Second}}
		put := store.PutJob{At: noon, Definition: job.Definition{UID: job.UID{1}, Namespace: "ns", Name: "j", Labels: map[string]string{"t": "x"}, Spec: spec}}
		want := put.Definition
		want.Revision, want.CreatedAt, want.UpdatedAt = 1, noon, noon
		got, w, err := s.PutJob(ctx, put)
		wantVerdict(tb, "new", err, "ok")
		equal(tb, "definition", got, want)
		row, err := s.Job(ctx, "ns", "j")
		wantVerdict(tb, "Job", err, "ok")
		equal(tb, "row", row, store.JobRow{Definition: want})
		pending, _ := s.EntryPending(ctx, w.Entry)
		equal(tb, "entry pending", pending, true)

		put.At, put.Definition.UID = noon+9, job.UID{2}
		d.unchanged("the same document", "ok", func() error {
			got, w, err := s.PutJob(ctx, put)
			equal(tb, "definition", got, want)
			equal(tb, "receipt", w, store.Written{})
			return err
		})
		put.Definition.Labels = nil
		got, w2, err := s.PutJob(ctx, put)
		wantVerdict(tb, "other labels", err, "ok")
		want.Labels, want.Revision, want.UpdatedAt = nil, 2, noon+9
		equal(tb, "second revision keeps uid and creation", got, want)
		if w2.Entry <= w.Entry {
			tb.Errorf("entry %d after %d", w2.Entry, w.Entry)
		}
	}},
	{"Control/put job, conflicts", func(tb TB, s store.Store) {
		d := sit(tb, s)
		put := func(ifRevision int64, partition int, handler string) error {
			_, _, err := s.PutJob(ctx, store.PutJob{IfRevision: ifRevision, Partition: partition, At: noon,
				Definition: job.Definition{UID: job.UID{1}, Namespace: "ns", Name: "j", Spec: job.Spec{Pool: "p", Handler: handler}}})
			return err
		}
		d.unchanged("a revision of a job that is not there", "conflict/revision_changed", func() error { return put(1, 0, "a") })
		wantVerdict(tb, "only if new", put(-1, 0, "a"), "ok")
		d.unchanged("only if new, and it is not", "conflict/revision_changed", func() error { return put(-1, 0, "a") })
		wantVerdict(tb, "from revision 1", put(1, 0, "b"), "ok")
		d.unchanged("from revision 1 again", "conflict/revision_changed", func() error { return put(1, 0, "c") })
		wantVerdict(tb, "to another partition", put(2, 1, "c"), "ok")
		d.unchanged("bad text", "rejected/bad_text", func() error { return put(0, 0, "c\x00") })
	}},
	{"Control/put job keeps cursors", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		c := []job.Cursor{{Job: job.UID{1}, Schedule: "a", Revision: 1, Next: noon, Last: noon - 1}, {Job: job.UID{1}, Schedule: "b"}}
		d.commit(engine.Batch{Cursors: c})
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "other"})
		row, _ := s.Job(ctx, "ns", "j")
		equal(tb, "cursors", row.Cursors, c)
	}},
	{"Control/trigger and its key", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		key := store.RequestKey{Namespace: "ns", Operation: "trigger/j", Key: "k", Hash: "1"}
		first := d.trigger("j", key)
		equal(tb, "first is no repeat", first.Repeated, false)
		again := d.trigger("j", key)
		want := first
		want.Repeated = true
		equal(tb, "repeat while pending", again, want)
		d.commit(engine.Batch{Consumed: []int64{first.Entry}})
		want.Entry = 0
		equal(tb, "repeat after it was taken", d.trigger("j", key), want)
		other := key
		other.Operation = "trigger/x"
		if got := d.trigger("j", other); got.Repeated || got.Execution == first.Execution {
			tb.Errorf("the same key for another operation: %v", got)
		}
		key.Hash = "2"
		trigger := func(t store.Trigger) func() error {
			return func() error { _, err := s.Trigger(ctx, t, toFirst); return err }
		}
		d.unchanged("another request under the key", "conflict/idempotency_key_reused", trigger(store.Trigger{Namespace: "ns", Job: "j", Key: key}))
		d.unchanged("no such job", "not_found/job_not_found", trigger(store.Trigger{Namespace: "ns", Job: "x", Key: key}))
		d.unchanged("no such namespace", "not_found/job_not_found", trigger(store.Trigger{Namespace: "x", Job: "j"}))
		d.unchanged("bad text", "rejected/bad_text", trigger(store.Trigger{Namespace: "ns", Job: "j", Request: engine.Request{Key: "\xff"}}))
		d.unchanged("bad parameters", "rejected/bad_json", trigger(store.Trigger{Namespace: "ns", Job: "j", Request: engine.Request{Params: []byte("{")}}))
	}},
	{"Control/key of a trigger that is set aside", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		key := func(k string) store.RequestKey {
			return store.RequestKey{Namespace: "ns", Operation: "trigger/j", Key: k, Hash: "1"}
		}
		bad, good := d.trigger("j", key("bad")), d.trigger("j", key("good"))
		keyless := d.trigger("j", store.RequestKey{})
		// a call, and an entry that is not there
		d.commit(engine.Batch{Poison: []engine.Poison{{Kind: "Report"}, {Entry: good.Entry + 100, Kind: "InboxPage"}}})
		equal(tb, "nothing was set aside yet", d.trigger("j", key("bad")).Repeated, true)
		d.commit(engine.Batch{Consumed: []int64{bad.Entry, keyless.Entry}, Poison: []engine.Poison{{Entry: bad.Entry, Kind: "InboxPage"}, {Entry: keyless.Entry}}})
		again := d.trigger("j", key("bad"))
		equal(tb, "repeated after it was set aside", again.Repeated, false)
		if again.Execution == bad.Execution || again.Entry == 0 {
			tb.Errorf("asked again: %v, was %v", again, bad)
		}
		equal(tb, "the other key", d.trigger("j", key("good")).Execution, good.Execution)
		_, err := s.Execution(ctx, "ns", again.Execution)
		wantVerdict(tb, "its execution", err, "ok")
	}},
	{"Control/trigger pins revision and params", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "old", Shards: 1})
		first, _ := d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h", Params: []byte(`{"a":1}`), Shards: 3})
		merges := 0
		t := store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{1}), Request: engine.Request{At: noon, Params: []byte(`{"b":2}`)},
			Key: store.RequestKey{Namespace: "ns", Operation: "o", Key: "k"}, Merge: func(got job.Definition) (json.RawMessage, error) {
				merges++
				equal(tb, "merged with", got, first)
				return json.RawMessage(`{"a":1,"b":2}`), nil
			}}
		w, err := s.Trigger(ctx, t, toFirst)
		wantVerdict(tb, "Trigger", err, "ok")
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "new", Params: []byte(`{"a":9}`), Shards: 5})
		page, err := s.InboxPage(ctx, 0, 9)
		wantVerdict(tb, "InboxPage", err, "ok")
		for _, e := range page.Entries {
			if e.ID == w.Entry {
				equal(tb, "definition of the entry", e.Definition, &first)
				equal(tb, "its params", string(e.Request.Params), `{"a":1,"b":2}`)
			}
		}
		e, err := s.Execution(ctx, "ns", w.Execution)
		wantVerdict(tb, "Execution", err, "ok")
		equal(tb, "shown", []any{e.Revision, e.Handler, e.ShardTotal, string(e.Params)}, []any{first.Revision, "h", 3, `{"a":1,"b":2}`})
		t.Merge = func(job.Definition) (json.RawMessage, error) {
			return nil, job.Errorf(job.KindTooLarge, "params_too_large", "together")
		}
		_, err = s.Trigger(ctx, t, toFirst)
		wantVerdict(tb, "a repeat merges nothing", err, "ok")
		t.Key.Key = "other"
		d.unchanged("refused by the merge", "too_large/params_too_large", func() error { _, err := s.Trigger(ctx, t, toFirst); return err })
		equal(tb, "merges", merges, 1)
		t.Merge, t.Request.Params = nil, nil
		got, err := s.Trigger(ctx, t, toFirst)
		wantVerdict(tb, "the key was not kept", err, "ok")
		equal(tb, "repeated", got.Repeated, false)
	}},
	{"Control/triggers, all of them or none", func(tb TB, s store.Store) {
		d := sit(tb, s)
		first, _ := d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h", Params: []byte(`{"a":1}`)})
		d.putJob("other", 2, job.Spec{Pool: "p", Handler: "h"})
		ask := func(n byte, name, key, params string) store.Trigger {
			return store.Trigger{Namespace: "ns", Job: name, Execution: job.RequestedID(noon, [10]byte{n}), Key: store.RequestKey{Namespace: "ns", Operation: "trigger/" + name, Key: key},
				Request: engine.Request{At: noon, Key: key, Params: []byte(params)}}
		}
		all := []store.Trigger{ask(1, "j", "k", `1`), ask(2, "other", "k", `2`), ask(3, "j", "k", `3`), ask(4, "j", "", `4`)}
		got, err := s.Triggers(ctx, all, toFirst)
		wantVerdict(tb, "Triggers", err, "ok")
		if len(got) != len(all) || got[1].Entry <= got[0].Entry || got[3].Entry <= got[1].Entry {
			tb.Fatalf("answers %v", got)
		}
		repeat := got[0]
		repeat.Repeated = true
		equal(tb, "the key that comes twice", got[2], repeat)
		page, err := s.InboxPage(ctx, 0, 9)
		wantVerdict(tb, "InboxPage", err, "ok")
		var found []string
		for _, e := range page.Entries {
			if e.Kind == engine.EntryTrigger {
				found = append(found, fmt.Sprint(e.ID-got[0].Entry, hex.EncodeToString(e.Execution[7:9]), e.Definition.Name, string(e.Request.Params)))
			}
		}
		equal(tb, "entries", found, []string{fmt.Sprint(0, hex.EncodeToString(all[0].Execution[7:9]), "j", "1"), fmt.Sprint(got[1].Entry-got[0].Entry, hex.EncodeToString(all[1].Execution[7:9]), "other", "2"),
			fmt.Sprint(got[3].Entry-got[0].Entry, hex.EncodeToString(all[3].Execution[7:9]), "j", "4")})
		again, err := s.Triggers(ctx, all[:2], toFirst)
		wantVerdict(tb, "again", err, "ok")
		equal(tb, "again", []bool{again[0].Repeated, again[1].Repeated}, []bool{true, true})
		none, err := s.Triggers(ctx, nil, toFirst)
		wantVerdict(tb, "none", err, "ok")
		equal(tb, "none", len(none), 0)
		refused := func(want string, index int, bad store.Trigger) {
			d.unchanged(want, want, func() error {
				list := []store.Trigger{ask(5, "j", "new", `5`), bad, ask(6, "j", "", `6`)}
				_, err := s.Triggers(ctx, list, toFirst)
				var set *job.SetError
				if !errors.As(err, &set) || len(set.Items) != 1 || set.Items[0].Index != index {
					tb.Errorf("%s: refused with %v", want, err)
				}
				return err
			})
		}
		refused("not_found/job_not_found", 1, ask(7, "nobody", "", `1`))
		refused("rejected/bad_text", 1, ask(7, "j", "a\x00", `1`))
		other := ask(7, "j", "k", `1`)
		other.Key.Hash = "other"
		refused("conflict/idempotency_key_reused", 1, other)
		merge := ask(7, "j", "", `1`)
		merge.Merge = func(got job.Definition) (json.RawMessage, error) {
			equal(tb, "merged with", got, first)
			return nil, job.Errorf(job.KindTooLarge, "params_too_large", "together")
		}
		refused("too_large/params_too_large", 1, merge)
		last, err := s.Triggers(ctx, []store.Trigger{ask(8, "j", "new", `8`)}, toFirst)
		wantVerdict(tb, "the key of a refused list", err, "ok")
		equal(tb, "was not kept", last[0].Repeated, false)
	}},
	{"Control/sweep", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		key := func(n int) store.RequestKey {
			return store.RequestKey{Namespace: "ns", Operation: "o", Key: fmt.Sprint(n)}
		}
		for n := range 5 { // made at noon + 1 … noon + 5
			d.trigger("j", key(n))
		}
		for _, want := range []int{2, 1, 0} {
			n, err := s.SweepRequestKeys(ctx, noon+4, 2)
			wantVerdict(tb, "SweepRequestKeys", err, "ok")
			equal(tb, "swept", n, want)
		}
		equal(tb, "swept key is new", d.trigger("j", key(2)).Repeated, false)
		equal(tb, "younger key is kept", d.trigger("j", key(3)).Repeated, true)
	}},
	{"Control/ask", func(tb TB, s store.Store) {
		d := sit(tb, s)
		d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h"})
		live, ended := d.insert(job.ExecutionRunning, job.ShardLeased), d.insert(job.ExecutionRunning, job.ShardLeased)
		d.commit(finish(ended, job.ExecutionFailed))
		waiting := d.trigger("j", store.RequestKey{}).Execution
		ask := func(namespace string, kind engine.EntryKind, id job.ExecutionID) error {
			w, err := s.Ask(ctx, store.Ask{Kind: kind, Namespace: namespace, Execution: id, Note: "n", At: noon})
			if err == nil && (w.Entry == 0 || w.Partition != 0) {
				tb.Errorf("receipt %v", w)
			}
			return err
		}
		for _, id := range []job.ExecutionID{live.ID, ended.ID, waiting} {
			wantVerdict(tb, "ask", ask("ns", engine.EntryCancel, id), "ok")
			wantVerdict(tb, "ask", ask("ns", engine.EntryRerun, id), "ok")
			d.unchanged("in another namespace", "not_found/execution_not_found", func() error { return ask("x", engine.EntryCancel, id) })
		}
		d.unchanged("nowhere", "not_found/execution_not_found", func() error { return ask("ns", engine.EntryCancel, job.ExecutionID{1}) })
		d.unchanged("nothing to ask", "invalid/bad_kind", func() error { return ask("ns", engine.EntryTrigger, live.ID) })
	}},
}

var readerCases = []examCase{
	{"Reader/executions", func(tb TB, s store.Store) {
		d := sit(tb, s)
		var want []job.ExecutionID // newest first
		for n := range 9 {
			e := d.insert(job.ExecutionRunning, job.ShardLeased)
			if n%3 != 0 {
				d.commit(finish(e, []job.ExecutionState{job.ExecutionSucceeded, job.ExecutionFailed}[n%2]))
			}
			want = append([]job.ExecutionID{e.ID}, want...)
		}
		list := func(f store.ExecutionFilter) (ids []job.ExecutionID) {
			f.Namespace, f.Limit = "ns", 2
			for {
				rows, next, err := s.Executions(ctx, f)
				if err != nil || len(rows) > 2 || next != "" && len(rows) != 2 {
					tb.Fatalf("Executions: %d rows, next %q, %v", len(rows), next, err)
				}
				for _, e := range rows {
					ids = append(ids, e.ID)
				}
				if f.After = next; next == "" {
					return ids
				}
			}
		}
		equal(tb, "all", list(store.ExecutionFilter{}), want)
		equal(tb, "of the job", list(store.ExecutionFilter{Job: "j", Pool: "p"}), want)
		equal(tb, "of no job", list(store.ExecutionFilter{Job: "x"}), nil)
		equal(tb, "of no pool", list(store.ExecutionFilter{Pool: "x"}), nil)
		for state, n := range map[job.ExecutionState]int{job.ExecutionRunning: 3, job.ExecutionSucceeded: 3, job.ExecutionFailed: 3, job.ExecutionCancelled: 0} {
			equal(tb, string(state), len(list(store.ExecutionFilter{State: state})), n)
			equal(tb, string(state)+" of the job", len(list(store.ExecutionFilter{State: state, Job: "j"})), n)
		}
	}},
	{"Reader/execution", func(tb TB, s store.Store) {
		d := sit(tb, s)
		def, _ := d.putJob("j", 1, job.Spec{Pool: "p", Handler: "h", Shards: 3, Params: []byte(`{"d":1}`)})
		w := d.trigger("j", store.RequestKey{Namespace: "ns", Operation: "o", Key: "k"})
		e, err := s.Execution(ctx, "ns", w.Execution)
		wantVerdict(tb, "waiting in the inbox", err, "ok")
		at := w.Execution.PlannedAt()
		equal(tb, "waiting", e, job.Execution{ID: w.Execution, Namespace: "ns", Job: "j", JobUID: def.UID, Revision: 1, Pool: "p", Handler: "h", Trigger: job.TriggerRequest,
			PlannedAt: at, RequestKey: "k", Params: []byte(`{"x":1}`), ShardTotal: 3, State: job.ExecutionScheduled, CreatedAt: at})
		shards, next, err := s.Shards(ctx, "ns", w.Execution, store.Page{})
		wantVerdict(tb, "its shards", err, "ok")
		equal(tb, "its shards", []any{len(shards), next}, []any{0, ""})
		x := d.insert(job.ExecutionRunning, job.ShardLeased)
		for _, step := range []func(){func() {}, func() { d.commit(finish(x, job.ExecutionFailed)) }} {
			step()
			_, err = s.Execution(ctx, "ns", x.ID)
			wantVerdict(tb, "live, then ended", err, "ok")
			_, err = s.Execution(ctx, "other", x.ID)
			wantVerdict(tb, "in another namespace", err, "not_found/execution_not_found")
			_, _, err = s.Shards(ctx, "other", x.ID, store.Page{})
			wantVerdict(tb, "shards in another namespace", err, "not_found/execution_not_found")
		}
		_, err = s.Execution(ctx, "ns", job.ExecutionID{1})
		wantVerdict(tb, "nowhere", err, "not_found/execution_not_found")
		_, err = s.Job(ctx, "ns", "x")
		wantVerdict(tb, "no job", err, "not_found/job_not_found")
	}},
	{"Reader/pages", func(tb TB, s store.Store) {
		d := sit(tb, s)
		for n := range byte(5) {
			d.putJob(fmt.Sprintf("j%d", n), n+1, job.Spec{Pool: "p", Handler: "h"})
			d.commit(engine.Batch{Decisions: []job.Decision{{Namespace: "ns", Name: fmt.Sprintf("j%d", n%2), Count: int64(n)}}})
		}
		e := d.insert(job.ExecutionRunning, job.ShardLeased, job.ShardLeased, job.ShardLeased, job.ShardLeased, job.ShardLeased)
		equal(tb, "jobs", all(tb, func(p store.Page) ([]store.JobRow, string, error) { return s.Jobs(ctx, "ns", p) },
			func(r store.JobRow) string { return r.Definition.Name }), "j0 j1 j2 j3 j4 ")
		equal(tb, "shards", all(tb, func(p store.Page) ([]job.Shard, string, error) { return s.Shards(ctx, "ns", e.ID, p) },
			func(s job.Shard) int { return s.Index }), "0 1 2 3 4 ")
		equal(tb, "decisions", all(tb, func(p store.Page) ([]job.Decision, string, error) { return s.Decisions(ctx, "ns", "", p) },
			func(d job.Decision) int64 { return d.Count }), "4 3 2 1 0 ")
		equal(tb, "decisions of a job", all(tb, func(p store.Page) ([]job.Decision, string, error) { return s.Decisions(ctx, "ns", "j0", p) },
			func(d job.Decision) int64 { return d.Count }), "4 2 0 ")
	}},
	{"Reader/bad places", func(tb TB, s store.Store) {
		d := sit(tb, s)
		e := d.insert(job.ExecutionRunning, job.ShardLeased, job.ShardLeased)
		d.putJob("a", 1, job.Spec{})
		d.putJob("b", 2, job.Spec{})
		_, foreign, err := s.Jobs(ctx, "ns", store.Page{Limit: 1})
		if err != nil || foreign == "" {
			tb.Fatalf("Jobs: next %q, %v", foreign, err)
		}
		_, own, _ := s.Shards(ctx, "ns", e.ID, store.Page{Limit: 1})
		for _, bad := range []string{"x", "!!", foreign + "A", base64.RawURLEncoding.EncodeToString([]byte(`["shards"]`)),
			base64.RawURLEncoding.EncodeToString([]byte(`["shards","x"]`)), base64.RawURLEncoding.EncodeToString([]byte(`["executions",null]`)), foreign, own} {
			p := store.Page{After: bad, Limit: 1}
			for list, f := range map[string]func() error{
				"executions": func() error {
					_, _, err := s.Executions(ctx, store.ExecutionFilter{Namespace: "ns", Page: p})
					return err
				},
				"shards":    func() error { _, _, err := s.Shards(ctx, "ns", e.ID, p); return err },
				"jobs":      func() error { _, _, err := s.Jobs(ctx, "ns", p); return err },
				"decisions": func() error { _, _, err := s.Decisions(ctx, "ns", "", p); return err },
			} {
				if bad == foreign && list == "jobs" || bad == own && list == "shards" {
					continue
				}
				err := f()
				wantVerdict(tb, list+" behind "+bad, err, "invalid/bad_after")
				if e, ok := errors.AsType[*job.Error](err); ok {
					equal(tb, "field", e.Field, "after")
				}
			}
		}
	}},
	{"Reader/ping", func(tb TB, s store.Store) { wantVerdict(tb, "Ping", s.Ping(ctx), "ok") }},
}

// all walks a list in pages of two and joins the keys of its rows.
func all[T any, K any](tb TB, list func(store.Page) ([]T, string, error), key func(T) K) string {
	tb.Helper()
	var joined string
	p := store.Page{Limit: 2}
	for {
		rows, next, err := list(p)
		if err != nil || len(rows) > 2 {
			tb.Fatalf("list: %d rows, %v", len(rows), err)
		}
		for _, r := range rows {
			joined += fmt.Sprint(key(r)) + " "
		}
		if p.After = next; next == "" {
			return joined
		}
	}
}
