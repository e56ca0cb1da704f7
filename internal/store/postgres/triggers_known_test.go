package postgres_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
)

// What is known of a job makes its requests cheaper, and decides nothing: once the job is another one the request is judged by that.
func TestTriggersOfKnown(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	s, n := both[0], byte(0)
	next := func() store.Trigger {
		n++
		return store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{0, n})}
	}
	quick := func(key string) bool {
		t.Helper()
		one := next()
		one.Key.Key = key
		out, done, err := postgres.TriggersOfKnown(t.Context(), s, []store.Trigger{one}, toFirst)
		if err != nil || done && (out[0].Execution != one.Execution || out[0].Entry == 0) {
			t.Fatalf("request %d: %+v, %v", n, out, err)
		}
		page, err := s.InboxPage(t.Context(), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		there := false
		for i := range page.Entries {
			there = there || page.Entries[i].Execution == one.Execution
		}
		if there != done {
			t.Errorf("request %d: done %t, and its entry is there: %t", n, done, there)
		}
		return done
	}
	ask := func(want error, revision int64) {
		t.Helper()
		one := next()
		var of int64 // the last one that it is asked of
		one.Merge = func(d job.Definition) (json.RawMessage, error) { of = d.Revision; return nil, nil }
		if _, err := s.Trigger(t.Context(), one, toFirst); job.KindOf(err) != job.KindOf(want) {
			t.Errorf("request %d: %v, want %v", n, err, want)
		}
		if of != revision {
			t.Errorf("request %d: of revision %d, want %d", n, of, revision)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	edit := func(handler string, uid byte) {
		t.Helper()
		_, _, err := both[1].PutJob(t.Context(), put("j", handler, uid, 0))
		must(err)
	}

	edit("h1", 1)
	if quick("") {
		t.Error("nothing was known")
	}
	for i, change := range []func(){
		func() {}, func() { edit("h2", 1) },
		func() {
			_, _, err := both[1].PauseJob(t.Context(), store.PauseJob{Namespace: "ns", Name: "j", Pause: &job.Pause{At: noon}, At: noon})
			must(err)
		},
		func() {
			_, _, err := both[1].PauseJob(t.Context(), store.PauseJob{Namespace: "ns", Name: "j", At: noon})
			must(err)
		},
	} {
		change()
		if i > 0 && quick("") {
			t.Errorf("change %d was not seen", i)
		}
		ask(nil, int64(min(i+1, 2)))
		if !quick("") || quick("key") {
			t.Errorf("change %d: a request of a known job goes in one write, one with a key does not", i)
		}
	}
	_, err := both[1].DeleteJob(t.Context(), store.DeleteJob{Namespace: "ns", Name: "j", Deletion: job.Deletion{At: noon}})
	must(err)
	if quick("") {
		t.Error("a deleted job was triggered")
	}
	ask(job.Errorf(job.KindNotFound, "", ""), 0)
	edit("h1", 2)
	if quick("") {
		t.Error("a job of another life was triggered by what was known of the first")
	}
}

// A request that waits for an edit under way is judged by what that made of the job.
func TestTriggersOfKnownAwaitsEdit(t *testing.T) {
	t.Parallel()
	both, dsn := servers(t)
	s := both[0]
	putOne(t, s)
	if _, err := s.Trigger(t.Context(), trigger(1), toFirst); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for i, edit := range []string{`UPDATE jobs SET revision = revision`, `UPDATE jobs SET revision = revision + 1`} {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), edit); err != nil {
			t.Fatal(err)
		}
		got := make(chan bool, 1)
		go func() {
			_, done, err := postgres.TriggersOfKnown(context.Background(), s, []store.Trigger{trigger(byte(2 + i))}, toFirst)
			if err != nil {
				t.Error(err)
			}
			got <- done
		}()
		for waits := false; !waits; {
			if err := tx.QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)`).Scan(&waits); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if done := <-got; done != (i == 0) {
			t.Errorf("behind %s: done %t", edit, done)
		}
	}
}
