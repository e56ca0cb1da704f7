//go:build linux

package pg_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

const (
	answerLimit   = 6 * time.Second  // of a call of people's while the database is away
	recoveryLimit = 10 * time.Second // from the database's return
)

// trouble is a way for the database to fail.
type trouble struct {
	name   string
	hold   time.Duration
	begin  func() error
	end    func() error
	reason string // in /readyz
	reads  bool   // lists are still answered
	mixed  bool   // some writes find room
}

// TestDatabaseTrouble lets one database fail in several ways, one after the other, under load. Each time the servers say
// so, refuse people's calls in bounded time, and go on by themselves; nothing is lost, and nothing happens twice.
func TestDatabaseTrouble(t *testing.T) {
	drilled(t)
	waits(t)
	pg := pgtest.New(t, pgtest.Options{Settings: map[string]string{"max_connections": "100"}})
	f := newFleet(t, pg.Empty(t), 2, drillLease())
	planned := f.underLoad()
	var hogs []*pgx.Conn
	lease := f.lease.TTL + 2*time.Second
	for _, x := range []trouble{
		{name: "killed and restarted", hold: 3 * time.Second, reason: "store_unavailable",
			begin: func() error { return pg.Stop(pgtest.Kill) }, end: pg.Start},
		{name: "read-only", hold: 2 * time.Second, reason: "cannot be written", reads: true,
			begin: func() error { return errors.Join(pg.SetReadOnly(true), cutOff(pg)) },
			end:   func() error { return errors.Join(pg.SetReadOnly(false), cutOff(pg)) }},
		{name: "out of connections", hold: 2 * time.Second, reason: "store_unavailable",
			begin: func() (err error) { hogs, err = hog(pg); return err },
			end: func() error {
				for _, c := range hogs {
					_ = c.Close(context.Background()) // its end is all that is wanted
				}
				return nil
			}},
		{name: "paused for longer than a worker's lease", hold: lease, reason: "store_unavailable", begin: pg.Pause, end: pg.Resume},
	} {
		if !t.Run(x.name, func(t *testing.T) { f.suffer(t, x) }) {
			break
		}
	}
	f.calm(planned)
	v := f.collect(f.dsn)
	v.sound(f.leases())
	v.judge(f, planned)
	t.Logf("%d leases again", len(v.again()))
}

// suffer brings one trouble about, looks at what people see, ends it, and waits for the recovery of every server.
func (f *fleet) suffer(t *testing.T, x trouble) {
	before := len(f.sights())
	began := time.Now()
	if err := x.begin(); err != nil {
		t.Fatal(err)
	}
	for _, s := range f.servers {
		took := until(t, s.name+" is not ready", func() error {
			code, body := get(s.addr, "/readyz")
			if code == http.StatusServiceUnavailable && strings.Contains(body, x.reason) {
				return nil
			}
			return fmt.Errorf("%d %s", code, body)
		})
		t.Logf("%s says so after %v", s.name, took.Round(10*time.Millisecond))
	}
	for time.Since(began) < x.hold {
		for _, s := range f.servers {
			f.refused(t, s, x.reads, x.mixed)
		}
		time.Sleep(200 * time.Millisecond)
	}
	ended := time.Now()
	if err := x.end(); err != nil {
		t.Fatal(err)
	}
	returned := time.Now() // a start takes a while
	for _, s := range f.servers {
		f.ready(s)
	}
	allReady := time.Since(returned)
	n := len(f.sights())
	until(t, "handlers run in every pool", func() error {
		pools := map[string]bool{}
		for _, s := range f.sights() {
			if s.At.After(ended) && s.What == "began" {
				pools[s.Pool] = true
			}
		}
		return yes(len(pools) == len(f.pools))
	})
	took, now := time.Since(returned), time.Now()
	v := &evidence{t: t, stalls: f.stalls()}
	t.Logf("ready %v and working %v after its return (stalls %v); %d sights meanwhile", allReady.Round(10*time.Millisecond), took.Round(10*time.Millisecond),
		v.stalled(returned, now).Round(10*time.Millisecond), n-before)
	if took > recoveryLimit+v.stalled(returned, now) {
		t.Errorf("recovery took %v", took)
	}
}

// refused checks that a server refuses people's calls in bounded time.
func (f *fleet) refused(t *testing.T, s *server, reads, mixed bool) {
	t.Helper()
	for _, c := range []struct{ method, path, body string }{
		{http.MethodGet, "/api/v1/namespaces/default/jobs", ""},
		{http.MethodPost, "/api/v1/namespaces/default/jobs/asked-pool-0/trigger", "{}"},
	} {
		began := time.Now()
		code, body := call(s.addr, c.method, c.path, c.body)
		took := time.Since(began)
		v := &evidence{t: t, stalls: f.stalls()}
		if took > answerLimit+v.stalled(began, time.Now()) {
			t.Errorf("%s %s of %s was answered after %v", c.method, c.path, s.name, took)
		}
		if code != http.StatusServiceUnavailable && !(reads && c.method == http.MethodGet && code == http.StatusOK) && !(mixed && code == http.StatusOK) {
			t.Errorf("%s %s of %s was answered %d %s", c.method, c.path, s.name, code, body)
		}
	}
}

// cutOff ends the connections of servers: those that begin afterwards see the settings of now.
func cutOff(pg *pgtest.Cluster) error {
	time.Sleep(300 * time.Millisecond) // the settings are read by signal
	_, err := pg.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'takt'`)
	return err
}

// hog takes all connections and cuts the servers off: what they had is taken, too.
func hog(pg *pgtest.Cluster) (all []*pgx.Conn, err error) {
	ctx := context.Background()
	killer, err := pgx.Connect(ctx, pg.AdminDSN("postgres"))
	if err != nil {
		return nil, err
	}
	all = append(all, killer)
	for full := 0; full < 20; { // refused so often in a row: nothing comes free any more
		c, err := pgx.Connect(ctx, pg.AdminDSN("postgres"))
		if err == nil {
			all, full = append(all, c), 0
			continue
		}
		if full++; full == 1 {
			if _, err := killer.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'takt'`); err != nil {
				return all, err
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return all, nil
}

// forgive forgets of what was acknowledged what a database that went back has forgotten.
func (f *fleet) forgive(gone func(id string) bool) (n int) {
	for key, id := range f.acked {
		if gone(id) {
			delete(f.acked, key)
			n++
		}
	}
	return n
}
