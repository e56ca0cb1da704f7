package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// member is a server on PostgreSQL.
type member struct {
	*app.App
	t    *testing.T
	base string
	log  *syncBuffer
	stop func() time.Duration // how long it took; again does nothing
}

// syncBuffer is a log that many write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func join(t *testing.T, dsn string, change ...func(*app.Config)) *member {
	t.Helper()
	m := &member{t: t, log: &syncBuffer{}}
	cfg := app.Config{Database: dsn, Listen: "127.0.0.1:0", Version: "v0-test", Logger: slog.New(slog.NewTextHandler(m.log, nil))}
	for _, f := range change {
		f(&cfg)
	}
	a, err := app.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	m.App, m.base = a, "http://"+a.Addr()
	m.stop = sync.OnceValue(func() time.Duration {
		began := time.Now()
		cancel()
		if err := <-done; err != nil && !errors.Is(err, partition.ErrCrashed) {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		return time.Since(began)
	})
	t.Cleanup(func() { m.stop() })
	return m
}

// ask sends a request; status 0: no answer.
func (m *member) ask(method, path, body string) (int, string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, m.base+path, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// until asks again and again until the answer is as wanted.
func (m *member) until(path string, want func(status int, body string) bool) time.Duration {
	m.t.Helper()
	began := time.Now()
	for {
		status, body := m.ask("GET", path, "")
		if want(status, body) {
			return time.Since(began)
		}
		if time.Since(began) > time.Minute {
			m.t.Fatalf("GET %s: still %d %s", path, status, body)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func ready(status int, _ string) bool { return status == http.StatusOK }

// Three servers share the partitions; one that stops hands over what it had at once.
func TestServersOnPostgreSQL(t *testing.T) {
	dsn := pgtest.Start(t).Database(t)
	all := []*member{join(t, dsn), join(t, dsn), join(t, dsn)}
	for _, m := range all {
		m.until("/readyz", ready)
		m.until("/api/v1/servers", func(_ int, body string) bool {
			return strings.Count(body, `"live":true`) == 3 && strings.Contains(body, `"unowned":[]`)
		})
	}
	all[0].until("/metrics", func(_ int, page string) bool { return !strings.Contains(page, "takt_partitions_owned 32\n") })
	spec := `{"apiVersion":"takt/v1","kind":"Job","metadata":{"name":"%s"},"spec":{"pool":"%s","handler":"h"}}`
	for i := range 12 {
		name := fmt.Sprintf("j%d", i)
		m := all[i%3]
		if status, b := m.ask("PUT", "/api/v1/namespaces/default/jobs/"+name, fmt.Sprintf(spec, name, "pool-"+name)); status != http.StatusCreated {
			t.Fatalf("%d %s", status, b)
		}
		if status, b := all[(i+1)%3].ask("POST", "/api/v1/namespaces/default/jobs/"+name+"/trigger", ""); status != http.StatusOK {
			t.Fatalf("%d %s", status, b)
		}
	}
	for _, m := range all {
		m.until("/api/v1/namespaces/default/pools", func(_ int, body string) bool { return strings.Count(body, `"queued":1`) == 12 })
	}
	took := all[1].stop()
	t.Logf("stopped in %s", took)
	if took > slack*5*time.Second {
		t.Errorf("a graceful stop took %s", took)
	}
	for _, m := range []*member{all[0], all[2]} {
		m.until("/api/v1/servers", func(_ int, body string) bool { return strings.Contains(body, `"unowned":[]`) })
		m.until("/api/v1/namespaces/default/pools", func(_ int, body string) bool { return strings.Count(body, `"queued":1`) == 12 })
	}
}

// A database that hangs is told at /readyz and by quick refusals; when it goes on, so does the server, by itself.
func TestDatabaseThatHangs(t *testing.T) {
	pg := pgtest.New(t, pgtest.Options{})
	m := join(t, pg.Database(t))
	m.until("/readyz", ready)
	if err := pg.Pause(); err != nil {
		t.Fatal(err)
	}
	m.until("/readyz", func(status int, body string) bool {
		return status == http.StatusServiceUnavailable && strings.Contains(body, "store_unavailable")
	})
	for range 20 {
		began := time.Now()
		status, b := m.ask("GET", "/api/v1/namespaces/default/jobs", "")
		if took := time.Since(began); status != http.StatusServiceUnavailable || !strings.Contains(b, "store_unavailable") || took > 5*time.Second {
			t.Fatalf("answered %d after %s: %s", status, took, b)
		}
	}
	if status, b := m.ask("GET", "/healthz", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, b)
	}
	if err := pg.Resume(); err != nil {
		t.Fatal(err)
	}
	took := m.until("/readyz", ready)
	t.Logf("ready %s after the database", took)
	m.until("/api/v1/namespaces/default/jobs", ready)
}

// The database's password is nowhere to be read.
func TestNoSecretIsTold(t *testing.T) {
	const secret = "hunter2-hunter2"
	u, err := url.Parse("postgres://takt:" + secret + "@127.0.0.1:1/takt?sslmode=disable&connect_timeout=2")
	if err != nil {
		t.Fatal(err)
	}
	var log syncBuffer
	for _, dsn := range []string{u.String(), "host=127.0.0.1 port=1 user=takt password=" + secret + " dbname=takt", "postgres://takt:" + secret + "@[::1/takt",
		"host=127.0.0.1 password=" + secret + " sslmode=nonsense"} {
		_, err := app.New(t.Context(), app.Config{Database: dsn, Listen: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err == nil {
			t.Fatalf("%s: a server", dsn)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%v %+v", e, e), secret) {
				t.Errorf("the error tells the password: %v", e)
			}
		}
		if e, ok := errors.AsType[*job.Error](err); !ok || strings.Contains(e.Hint, secret) {
			t.Errorf("%v", err)
		}
	}
	if strings.Contains(log.String(), secret) {
		t.Errorf("the log tells the password: %s", &log)
	}
}

// Tables that are behind are refused when they must not be changed, and what to do is said.
func TestTablesAreLeftAlone(t *testing.T) {
	dsn := pgtest.Start(t).Empty(t)
	_, err := app.New(t.Context(), app.Config{Database: dsn, Listen: "127.0.0.1:0", NoMigrate: true})
	if e, ok := errors.AsType[*job.Error](err); !ok || e.Kind != job.KindConflict || e.Code != "database_behind" || !strings.Contains(e.Hint, "takt migrate up") {
		t.Fatalf("an empty database: %v", err)
	}
	where, done, form, err := app.Migrate(t.Context(), app.Config{Database: dsn})
	if err != nil || len(done) < 5 || form.Version != form.Known || strings.Contains(where, "@") {
		t.Fatalf("%s: %+v %+v, %v", where, done, form, err)
	}
	if _, again, _, err := app.Migrate(t.Context(), app.Config{Database: dsn}); err != nil || len(again) != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	join(t, dsn, func(c *app.Config) { c.NoMigrate = true }).until("/readyz", ready)
}
