package app_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

const jobOfPool = `{"apiVersion":"takt/v1","kind":"Job","metadata":{"name":"j"},"spec":{"pool":"p","handler":"h"}}`

// People whose calls hang at the database, on every connection that is for them, keep neither workers nor the ownership
// of partitions waiting; when the database goes on, so do they.
func TestStarvedPeople(t *testing.T) {
	pg := pgtest.Start(t)
	dsn := pg.Database(t)
	m := join(t, dsn)
	m.until("/readyz", ready)
	if status, b := m.ask("PUT", "/api/v1/namespaces/default/jobs/j", jobOfPool); status != http.StatusCreated {
		t.Fatalf("%d %s", status, b)
	}
	admin, err := pgx.Connect(t.Context(), pg.AdminDSN(pgtest.Name(dsn)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }() // with what it holds
	tx, err := admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	var people sync.WaitGroup
	for range 40 { // each is answered or refused in its time
		people.Go(func() { m.ask("GET", "/api/v1/namespaces/default/jobs/j", "") })
		people.Go(func() { m.ask("POST", "/api/v1/namespaces/default/jobs/j/trigger", "") })
	}
	awaitStarved(t, pg.AdminDSN(pgtest.Name(dsn)))
	for i := range 5 {
		body := fmt.Sprintf(`{"namespace":"default","pool":"p","worker":"w%d","incarnation":"i%d","handlers":["h"],"slots":1,"call":1}`, i, i)
		if status, b := m.ask("POST", "/api/v1/worker/open", body); status != http.StatusOK {
			t.Errorf("a worker came while people hang: %d %s", status, b)
		}
	}
	if _, page := m.ask("GET", "/metrics", ""); !strings.Contains(page, "takt_partitions_owned 32\n") {
		t.Errorf("while people hang:\n%s", page)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	people.Wait()
	m.until("/api/v1/namespaces/default/jobs/j", ready)
}

// awaitStarved waits until every connection of a pool of people's waits for a lock. It asks on a connection of its own, outside
// of any transaction: within one PostgreSQL shows the same activity for ever.
func awaitStarved(t *testing.T, dsn string) {
	t.Helper()
	watcher, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watcher.Close(t.Context()) }() // it only read
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for full := false; !full; {
		if err := watcher.QueryRow(ctx, `SELECT count(*) FILTER (WHERE application_name LIKE '% people') >= 8 OR
				count(*) FILTER (WHERE application_name LIKE '% lists') >= 4
			FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&full); err != nil {
			t.Fatalf("no pool was ever full: %v", err)
		}
	}
}

// A database that gives no connections any more is told at /readyz and in the log; when it gives some again the server goes on by
// itself, and what was asked before is still there.
func TestDatabaseWithoutConnections(t *testing.T) {
	pg := pgtest.New(t, pgtest.Options{})
	dsn := pg.Database(t)
	m := join(t, dsn)
	m.until("/readyz", ready)
	if status, b := m.ask("PUT", "/api/v1/namespaces/default/jobs/j", jobOfPool); status != http.StatusCreated {
		t.Fatalf("%d %s", status, b)
	}
	if status, b := m.ask("POST", "/api/v1/namespaces/default/jobs/j/trigger", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, b)
	}
	name := pgtest.Name(dsn)
	if _, err := pg.Exec("ALTER DATABASE " + name + " CONNECTION LIMIT 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name); err != nil {
		t.Fatal(err)
	}
	m.until("/readyz", func(status int, body string) bool {
		return status == http.StatusServiceUnavailable && strings.Contains(body, "store_unavailable")
	})
	if status, b := m.ask("POST", "/api/v1/namespaces/default/jobs/j/trigger", ""); status != http.StatusServiceUnavailable {
		t.Errorf("a request without a database: %d %s", status, b)
	}
	until(t, "a look that failed for that", func() bool {
		return strings.Contains(m.log.String(), "the database takes no more connections")
	})
	if _, err := pg.Exec("ALTER DATABASE " + name + " CONNECTION LIMIT -1"); err != nil {
		t.Fatal(err)
	}
	m.until("/readyz", ready)
	m.until("/api/v1/namespaces/default/pools", func(_ int, body string) bool { return strings.Contains(body, `"queued":1`) })
}
