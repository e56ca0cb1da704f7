package storetest

import (
	"context"
	"encoding/json"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Spoiler is a store whose rows a case may spoil by SQL, as hands and other programs do.
type Spoiler interface {
	Spoil(ctx context.Context, sql string) error
}

// unfitRows: what cannot be used is read and marked, and hides nothing else (case C73).
func unfitRows(tb TB, s store.Store) {
	spoiler, ok := s.(Spoiler)
	if !ok {
		tb.Fatalf("%T cannot be spoilt: the case needs that", s)
	}
	spoil := func(sql string) {
		tb.Helper()
		if err := spoiler.Spoil(ctx, sql); err != nil {
			tb.Fatalf("%s: %v", sql, err)
		}
	}
	d := sit(tb, s)
	var cursors []job.Cursor
	for i, name := range []string{"broken", "count", "good"} {
		def, _ := d.putJob(name, byte(i+1), job.Spec{Pool: "p", Handler: "h"})
		cursors = append(cursors, job.Cursor{Job: def.UID, Schedule: "main", Revision: 1, Next: noon, Last: 1})
	}
	d.commit(engine.Batch{Cursors: cursors})
	var ids [7]job.ExecutionID
	for i := range ids {
		if d.level = engine.Level; i == 2 || i == 3 { // their shards lie apart
			d.level = 0
		}
		e, b := d.execution(job.ExecutionRunning, job.ShardRunning)
		row := &b.Executions[0].Row
		row.JobUID, row.ID = job.UID{3}, job.PlannedID(job.UID{3}, e.PlannedAt)
		row.Params = json.RawMessage(`{"n":1}`)
		row.RequestKey = string('a' + rune(i))
		b.Shards[0].Row.Execution, ids[i] = row.ID, row.ID
		b.Shards[0].Row.Worker = row.RequestKey
		d.commit(b)
	}
	d.commit(engine.Batch{Sessions: []job.Session{{ID: "s1", Namespace: "ns", Pool: "p", Worker: "w1", Handlers: []string{"h"}},
		{ID: "s2", Namespace: "ns", Pool: "p", Worker: "w2", Handlers: []string{"h"}}}})
	asked := d.trigger("good", store.RequestKey{})
	other := d.trigger("good", store.RequestKey{})

	for name, spec := range map[string]string{"broken": `{"pool": `, "count": `{"pool":"p","handler":"h","shards":-3}`} {
		spoil(`UPDATE job_revisions SET spec = '` + spec + `' WHERE uid = (SELECT uid FROM jobs WHERE name = '` + name + `')`)
	}
	spoil(`UPDATE executions SET state = 'bogus' WHERE request_key = 'a'`)
	spoil(`UPDATE executions SET params = '{' WHERE request_key = 'b'`)
	spoil(`UPDATE shards SET state = '' WHERE worker = 'c'`)
	spoil(`UPDATE shards SET attempts = '[{]', checkpoint = 'x' WHERE worker = 'd'`)
	spoil(`UPDATE executions SET shard_state = '' WHERE request_key = 'f'`)
	spoil(`UPDATE executions SET shard = '{"checkpoint":' WHERE request_key = 'g'`)
	spoil(`UPDATE sessions SET handlers = 'h' WHERE id = 's1'`)
	spoil(`UPDATE inbox SET payload = '' WHERE id = (SELECT max(id) FROM inbox)`)

	due, err := s.DuePage(ctx, 0, engine.WantDue{Until: noon, Limit: 10})
	wantVerdict(tb, "DuePage", err, "ok")
	fit := map[string]bool{}
	for _, it := range due.Items {
		fit[it.Definition.Name] = it.Definition.Unfit == ""
	}
	equal(tb, "what is due and fit", fit, map[string]bool{"broken": false, "count": false, "good": true})

	loaded, err := s.LoadPartition(ctx, 0)
	wantVerdict(tb, "LoadPartition", err, "ok")
	live := map[job.ExecutionID]bool{}
	for _, row := range loaded.Executions {
		live[row.Execution.ID] = row.Execution.Unfit == "" && row.Shards[0].Unfit == ""
	}
	equal(tb, "what is under way and fit", live, map[job.ExecutionID]bool{ids[0]: false, ids[1]: false, ids[2]: false, ids[3]: false, ids[4]: true, ids[5]: false, ids[6]: false})
	sessions := map[job.SessionID]bool{}
	for _, row := range loaded.Sessions {
		sessions[row.ID] = row.Unfit == ""
	}
	equal(tb, "sessions", sessions, map[job.SessionID]bool{"s1": false, "s2": true})

	inbox, err := s.InboxPage(ctx, 0, 100)
	wantVerdict(tb, "InboxPage", err, "ok")
	kinds := map[job.ExecutionID]engine.EntryKind{}
	for _, e := range inbox.Entries {
		if e.Kind != engine.EntryJobChanged {
			kinds[e.Execution] = e.Kind
		}
	}
	equal(tb, "entries", kinds, map[job.ExecutionID]engine.EntryKind{asked.Execution: engine.EntryTrigger, other.Execution: store.UnfitEntry(engine.EntryTrigger)})

	unfitSeen(tb, s, d, ids)
}

// unfitSeen: people see what is left, as JSON, and a new revision mends a job.
func unfitSeen(tb TB, s store.Store, d *desk, ids [7]job.ExecutionID) {
	jobs, _, err := s.Jobs(ctx, "ns", store.Page{Limit: 10})
	wantVerdict(tb, "Jobs", err, "ok")
	equal(tb, "jobs listed", len(jobs), 3)
	executions, _, err := s.Executions(ctx, store.ExecutionFilter{Namespace: "ns", Page: store.Page{Limit: 10}})
	wantVerdict(tb, "Executions", err, "ok")
	equal(tb, "executions listed", len(executions), len(ids))
	for _, id := range ids {
		shards, _, err := s.Shards(ctx, "ns", id, store.Page{Limit: 10})
		wantVerdict(tb, "Shards", err, "ok")
		if _, err := json.Marshal([]any{executions, shards}); err != nil {
			tb.Errorf("what people are shown is no JSON: %v", err)
		}
	}
	d.putJob("broken", 9, job.Spec{Pool: "p", Handler: "h2"})
	row, err := s.Job(ctx, "ns", "broken")
	wantVerdict(tb, "Job", err, "ok")
	equal(tb, "mended", [2]string{row.Definition.Unfit, row.Definition.Spec.Handler}, [2]string{"", "h2"})
}
