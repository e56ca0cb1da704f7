package postgres_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
)

// A database that forgot its tail (a failover that loses something, a restored backup) gives the number of a lost revision to another
// one. What is known of the lost one judges no request.
func TestTriggersOfKnownAfterForgottenTail(t *testing.T) {
	t.Parallel()
	both, dsn := servers(t)
	s := both[0]
	at := noon
	edit := func(handler string) {
		t.Helper()
		p := put("j", handler, 1, 0)
		at++
		p.At = at
		if _, _, err := both[1].PutJob(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(n byte) (handler string) {
		t.Helper()
		one := trigger(n)
		one.Merge = func(d job.Definition) (json.RawMessage, error) { handler = d.Spec.Handler; return nil, nil }
		if _, done, err := postgres.TriggersOfKnown(t.Context(), s, []store.Trigger{one}, toFirst); err != nil || done {
			return handler
		}
		if _, err := s.Trigger(t.Context(), one, toFirst); err != nil {
			t.Fatal(err)
		}
		return handler
	}
	edit("first")
	edit("lost")
	if got := ask(1); got != "lost" {
		t.Fatalf("judged by %q", got)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, text := range []string{`DELETE FROM inbox`, `UPDATE jobs SET revision = 1`, `DELETE FROM job_revisions WHERE revision = 2`} { // the tail
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	edit("second")
	if got := ask(2); got != "second" {
		t.Errorf("a request of a job with the handler %q is judged by the revision with the handler %q, which the database forgot", "second", got)
	}
}

// What is known of jobs is bounded in bytes (R14), as all that memory holds.
func TestKnownJobsAreBounded(t *testing.T) {
	unwatched(t)
	t.Parallel()
	both, _ := servers(t)
	s := both[0]
	for n := range 160 {
		name := fmt.Sprint("large-", n)
		p := put(name, "h", byte(n+1), 0)
		p.Definition.Spec.Params = json.RawMessage(`"` + strings.Repeat("x", job.MaxParams-2) + `"`)
		if _, _, err := s.PutJob(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		one := trigger(byte(n))
		one.Job = name
		if _, err := s.Trigger(t.Context(), one, toFirst); err != nil {
			t.Fatal(err)
		}
	}
	if n := postgres.KnownBytes(s); n > 32<<20 {
		t.Errorf("%d MiB are kept of 160 jobs; of the 1,024 that may be known it would be %d MiB", n>>20, n>>20*1024/160)
	}
}
