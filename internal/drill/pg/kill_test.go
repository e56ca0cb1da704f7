//go:build linux

package pg_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// upheaval is a change of owner that a drill brought about.
type upheaval struct {
	at          time.Time
	server      string
	incarnation string
	epochs      map[int]int64 // of the partitions that it had
}

// owned are the partitions of a server, with their epochs.
func owned(t *testing.T, dsn, incarnation string) map[int]int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }() // only read
	rows, err := conn.Query(ctx, `SELECT id, epoch FROM partitions WHERE owner = $1`, incarnation)
	if err != nil {
		t.Fatal(err)
	}
	all := map[int]int64{}
	var id int
	var epoch int64
	if _, err := pgx.ForEachRow(rows, []any{&id, &epoch}, func() error { all[id] = epoch; return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func (f *fleet) upheaval(s *server) upheaval {
	f.t.Helper()
	epochs := owned(f.t, f.dsn, s.incarnation)
	return upheaval{time.Now(), s.name, s.incarnation, epochs}
}

// decided tells for every partition with work, of a server that was killed or stopped, how long it took until the first
// commit of its next owner. One without work commits nothing; a next owner that was killed, too, before it did is left out.
func (v *evidence) decided(rows *owners, all []upheaval) (spans []takeover) {
	ended := map[string]time.Time{}
	for _, u := range all {
		ended[u.incarnation] = u.at
	}
	for _, u := range all {
		for p, epoch := range u.epochs {
			next, _ := rows.after(p, epoch)
			for _, e := range v.events {
				if e.Partition != p || int64(e.Epoch) <= epoch {
					continue
				}
				if end, too := ended[next.owner]; !too || end.After(e.At.Time()) {
					spans = append(spans, takeover{span{u.at, e.At.Time(), u.server}, u, next.at})
				}
				break
			}
		}
	}
	return spans
}

// standing is the usual work of a fleet: jobs that are planned each second, jobs that are asked for, one at a time and many at
// once, which are granted together, sharded long ones.
func (f *fleet) standing() (planned []takt.Job) {
	f.t.Helper()
	for i, pool := range f.pools {
		planned = append(planned, f.put("each-second-"+pool, pool, errand{Steps: 1, Ms: 20}, func(s *takt.JobSpec) {
			s.Schedule = &takt.ScheduleSpec{Every: takt.Duration(time.Second)}
		}))
		f.put("asked-"+pool, pool, errand{Steps: 1, Ms: 10}, nil)
		f.put("many-"+pool, pool, errand{Steps: 1 + i%2, Ms: 400}, nil)
		f.put("long-"+pool, pool, errand{Steps: 5 + i/2, Ms: 400}, func(s *takt.JobSpec) { s.Shards = &takt.ShardsSpec{Count: 4} })
	}
	return planned
}

// each names the jobs of a kind.
func (f *fleet) each(kind string) (jobs []string) {
	for _, pool := range f.pools {
		jobs = append(jobs, kind+pool)
	}
	return jobs
}

// people ask for work until the drill is over.
func (f *fleet) people(fault func(key string, err error)) {
	f.ask("asked", 100*time.Millisecond, time.Minute, fault, f.each("asked-")...)
	f.waves("many", 12, time.Second, time.Minute, fault, f.each("many-")...)
	f.ask("long", 1500*time.Millisecond, time.Minute, fault, f.each("long-")...)
}

// underLoad starts servers, workers and people, and waits until handlers have run in every pool.
func (f *fleet) underLoad() (planned []takt.Job) {
	f.t.Helper()
	f.startAll()
	planned = f.standing()
	f.startWorker("w1", 16)
	f.startWorker("w2", 16)
	until(f.t, "work is done in every pool", func() error {
		seen := map[string]bool{}
		for _, s := range f.sights() {
			seen[s.Pool] = true
		}
		return yes(len(seen) == len(f.pools))
	})
	f.people(f.mustAsk)
	return planned
}

func (f *fleet) mustAsk(key string, err error) { f.t.Errorf("trigger %s: %v", key, err) }

// TestKill kills a random server again and again under load with executions of four kinds. Every planned instant has one
// execution or a decision, what was acknowledged is there, each key had its effect once.
func TestKill(t *testing.T) {
	drilled(t)
	pg := pgtest.Start(t)
	f := newFleet(t, pg.Empty(t), 3, drillLease())
	planned := f.underLoad()
	f.waves("again", 12, 100*time.Millisecond, time.Minute, f.mustAsk, f.each("many-")...) // so that kills meet lots, which last for moments
	rows := watch(t, f.dsn)
	var kills []upheaval
	for end := time.Now().Add(length(t, 10*time.Second)); time.Now().Before(end); {
		time.Sleep(time.Second + rand.N(3*time.Second))
		s := f.servers[rand.IntN(len(f.servers))]
		u := f.upheaval(s)
		s.kill()
		u.at = time.Now()
		kills = append(kills, u)
		f.start(s)
	}
	f.calm(planned)
	v := f.collect(f.dsn)
	v.sound(f.leases())
	v.judge(f, planned)
	rows.rise(t)
	v.replaced("the next owner's row", rows, rows.taken(t, kills), kills, takeoverLimit(f))
	v.replaced("the next owner's first decision", rows, v.decided(rows, kills), kills, takeoverLimit(f))
	rows.sawLots(t)
	t.Logf("%d kills, %d leases again", len(kills), len(v.again()))
}

// replaced says how long it took from kills on, and checks how long from when there was somebody to judge that.
func (v *evidence) replaced(what string, rows *owners, all []takeover, kills []upheaval, limit time.Duration) {
	v.t.Helper()
	v.within("from the kill to "+what, spansOf(all), 0, 1)
	watched, later := rows.watched(all, kills, limit)
	v.within("the same from when a server that lived on had begun to watch", watched, limit, 0.99)
	v.t.Logf("in %d of %d cases every server that had watched from the kill on was killed before it could judge", later, len(all))
}

// takeoverLimit is 8 s at the default lease of a partition, 5 s.
func takeoverLimit(f *fleet) time.Duration { return f.lease.OwnerTTL + 3*time.Second }

// calm lets people stop and the work end.
func (f *fleet) calm(planned []takt.Job) {
	f.t.Helper()
	f.over.Store(true)
	f.load.Wait()
	f.settled(planned, time.Now())
}

// judge checks what every drill must show, and prints figures.
func (v *evidence) judge(f *fleet, planned []takt.Job) {
	v.t.Helper()
	v.complete(f.acked)
	keys, again := v.effects()
	n, decided := 0, 0
	for _, j := range planned {
		a, b := v.instants(j, v.lastPlanned(j))
		n, decided = n+a, decided+b
		if a == 0 {
			v.t.Errorf("%s was never planned", j.Metadata.Name)
		}
	}
	v.t.Logf("%d executions, %d planned instants (%d as decisions), %d acknowledged triggers, %d keys with effects, %d effects again under a higher token",
		len(v.executions), n, decided, len(f.acked), keys, again)
	late, began := v.lateness()
	v.within("planned instant to its decision", late, 0, 1)
	v.within("planned instant to its handler", began, 0, 1)
	v.tell(began, 3)
}

// lastPlanned is the newest instant of a job.
func (v *evidence) lastPlanned(j takt.Job) (last time.Time) {
	for _, x := range v.executions {
		if at := x.PlannedAt.Time(); x.Job == j.Metadata.Name && at.After(last) {
			last = at
		}
	}
	return last
}
