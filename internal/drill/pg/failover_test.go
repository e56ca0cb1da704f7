//go:build linux

package pg_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// usersTable makes a table of the users' own, in a database that nothing happens to.
func usersTable(t *testing.T) string {
	t.Helper()
	dsn := pgtest.Start(t).Empty(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `CREATE TABLE effects (key text PRIMARY KEY, token bigint NOT NULL, times integer NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// both is an address of two hosts.
func both(dsn string, primary, standby *pgtest.Cluster) string {
	return strings.Replace(dsn, primary.HostPort(), primary.HostPort()+","+standby.HostPort(), 1) + "&target_session_attrs=read-write"
}

// TestFailover kills a primary that its asynchronous standby is behind, and promotes the standby: commits are forgotten. No
// epoch and no token that anybody has seen comes again, nothing is granted until leases that were forgotten have ended,
// and what was forgotten happens again under higher tokens only.
func TestFailover(t *testing.T) {
	drilled(t)
	waits(t)
	primary := pgtest.New(t, pgtest.Options{})
	dsn := primary.Empty(t)
	f := newFleet(t, dsn, 2, drillLease())
	f.table = usersTable(t)
	standby, err := primary.Standby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Close)
	f.dsn = both(dsn, primary, standby)
	planned := f.underLoad()
	until(t, "the standby has the jobs", func() error {
		conn, err := pgx.Connect(context.Background(), standby.AdminDSN(pgtest.Name(dsn)))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.Background()) }() // only read
		var n int
		if err := conn.QueryRow(context.Background(), `SELECT count(*) FROM history_executions`).Scan(&n); err != nil {
			return err
		}
		return yes(n > 0)
	})
	for _, step := range []func() error{
		func() error { _, err := standby.Exec(`ALTER SYSTEM SET primary_conninfo = ''`); return err }, standby.Reload, // falls behind from here on
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(5 * time.Second)
	f.failover(primary, standby)
	promoted := time.Now()
	f.over.Store(true)
	f.load.Wait()
	f.again(promoted)
	f.settled(planned, time.Now())
	v := f.collect(f.dsn)
	lost := f.forgive(func(id string) bool { _, there := v.executions[id]; return !there })
	v.judge(f, planned)
	v.epochsRise(promoted)
	v.held(promoted, f.lease.TTL+f.lease.OwnerTTL)
	t.Logf("%d acknowledged triggers went with the tail", lost)
	if lost == 0 {
		t.Error("the standby was not behind: nothing was tried")
	}
}

// failover kills the primary and promotes the standby.
func (f *fleet) failover(primary, standby *pgtest.Cluster) {
	f.t.Helper()
	if err := primary.Stop(pgtest.Kill); err != nil {
		f.t.Fatal(err)
	}
	if err := standby.Promote(); err != nil {
		f.t.Fatal(err)
	}
}

// again waits until handlers run again, and says after how long.
func (f *fleet) again(since time.Time) time.Duration {
	f.t.Helper()
	until(f.t, "handlers run again in every pool", func() error {
		pools := map[string]bool{}
		for _, s := range f.sights() {
			if s.What == "began" && s.At.After(since) {
				pools[s.Pool] = true
			}
		}
		return yes(len(pools) == len(f.pools))
	})
	return time.Since(since)
}

// epochsRise checks that every token that was granted after the given instant is above all that handlers of its pool had
// seen before, and that the users' table refused nobody.
func (v *evidence) epochsRise(since time.Time) {
	v.t.Helper()
	highest := map[string]int64{}
	n := 0
	for _, s := range v.sights {
		switch {
		case s.What == "refused":
			v.t.Errorf("the users' table has seen a newer token than %d of %s", s.Token, s.Key)
		case s.What == "began" && s.At.Before(since):
			highest[s.Pool] = max(highest[s.Pool], s.Token)
		case s.What == "began":
			if n++; s.Token <= highest[s.Pool] {
				v.t.Errorf("%s was granted token %d; %d had been seen before", s.Key, s.Token, highest[s.Pool])
			}
		}
	}
	if n == 0 || len(highest) == 0 {
		v.t.Error("no tokens to compare")
	}
}

// held checks that nothing began for a time.
func (v *evidence) held(since time.Time, d time.Duration) {
	v.t.Helper()
	for _, s := range v.sights {
		if s.What == "began" && s.At.After(since) {
			v.t.Logf("the first handler began %v after", s.At.Sub(since).Round(10*time.Millisecond))
			if s.At.Sub(since) < d {
				v.t.Errorf("%s began %v after, leases that were forgotten may last %v", s.Key, s.At.Sub(since), d)
			}
			return
		}
	}
}

// TestFailoverWithoutLoss is the same with a synchronous standby and --db-loss none: nothing is forgotten, and nobody waits.
func TestFailoverWithoutLoss(t *testing.T) {
	drilled(t)
	waits(t)
	primary := pgtest.New(t, pgtest.Options{})
	dsn := primary.Empty(t)
	f := newFleet(t, dsn, 2, drillLease())
	f.table, f.loss = usersTable(t), "none"
	standby, err := primary.Standby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Close)
	for _, step := range []func() error{
		func() error { return primary.Configure(map[string]string{"synchronous_standby_names": "*"}) }, primary.Reload,
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	f.dsn = both(dsn, primary, standby)
	planned := f.underLoad()
	time.Sleep(3 * time.Second)
	f.failover(primary, standby)
	promoted := time.Now()
	took := f.again(promoted)
	v := &evidence{t: t, stalls: f.stalls()}
	t.Logf("all pools work %v after the promotion (stalls %v)", took, v.stalled(promoted, time.Now()))
	if took > recoveryLimit+v.stalled(promoted, time.Now()) {
		t.Errorf("recovery took %v", took)
	}
	f.calm(planned)
	v = f.collect(f.dsn)
	v.sound(f.leases())
	v.judge(f, planned)
	v.epochsRise(promoted)
}

// TestRestoredDump restores an old dump beside what runs, under workers that go on: the same cluster, another database.
func TestRestoredDump(t *testing.T) {
	drilled(t)
	waits(t)
	pg := pgtest.New(t, pgtest.Options{})
	f := newFleet(t, pg.Empty(t), 2, drillLease())
	f.table = usersTable(t)
	planned := f.underLoad()
	time.Sleep(2 * time.Second) // so that there is something that the dump knows
	dump := filepath.Join(f.dir, "dump")
	f.tool("pg_dump", "-Fc", "-f", dump, pg.AdminDSN(pgtest.Name(f.dsn)))
	time.Sleep(5 * time.Second) // what follows is forgotten
	f.over.Store(true)
	f.load.Wait()
	for _, s := range f.servers {
		s.kill()
	}
	stopped := time.Now()
	if _, err := pg.Exec(`ALTER DATABASE ` + pgtest.Name(f.dsn) + ` RENAME TO lost`); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(`CREATE DATABASE ` + pgtest.Name(f.dsn) + ` OWNER takt TEMPLATE template0`); err != nil {
		t.Fatal(err)
	}
	f.tool("pg_restore", "-d", pg.AdminDSN(pgtest.Name(f.dsn)), dump)
	began := time.Now()
	for _, s := range f.servers {
		f.start(s)
	}
	f.again(stopped)
	f.settled(planned, time.Now())
	v := f.collect(f.dsn)
	lost := f.forgive(func(id string) bool { _, there := v.executions[id]; return !there })
	v.judge(f, planned)
	v.epochsRise(stopped)
	v.held(began, f.lease.TTL+f.lease.OwnerTTL)
	t.Logf("%d acknowledged triggers are younger than the backup", lost)
	if lost == 0 {
		t.Error("nothing is younger than the backup: nothing was tried")
	}
}

// tool runs a program of PostgreSQL.
func (f *fleet) tool(name string, args ...string) {
	f.t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		name = found[len(found)-1]
	}
	out, err := exec.CommandContext(f.t.Context(), name, args...).CombinedOutput()
	if err != nil {
		f.t.Fatalf("%s: %v: %s", name, err, out)
	}
}
