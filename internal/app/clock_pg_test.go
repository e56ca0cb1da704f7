package app_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// skewed is a database whose clock a test sets. The clock of a real PostgreSQL is that of its machine, which no test can set;
// but the server reads it by DatabaseTime alone (R9), so the offset is added there: everything behind it is real.
type skewed struct {
	*postgres.Store
	off   func() time.Duration
	mute  atomic.Bool // the server is cut off from the database
	mu    sync.Mutex
	early []string // what was planned before its instant, by the database's clock when the commit was sent
}

func (s *skewed) DatabaseTime(ctx context.Context) (time.Time, error) {
	at, err := s.Store.DatabaseTime(ctx)
	return at.Add(s.off()), err
}

// Commit looks at the clock by itself: the database runs on this machine.
func (s *skewed) Commit(ctx context.Context, f store.Fence, b *engine.Batch) error {
	now := job.InstantOf(time.Now().Add(s.off()))
	for _, x := range b.Facts {
		if x.Kind == engine.FactPlanned && (x.PlannedAt > now || x.Until != 0 && x.Until <= x.PlannedAt) {
			s.mu.Lock()
			s.early = append(s.early, fmt.Sprintf("%s planned for %s at %s, goes on at %s", x.Job, x.PlannedAt, now, x.Until))
			s.mu.Unlock()
		}
	}
	if s.mute.Load() {
		<-ctx.Done()
		return job.Errorf(job.KindUnknown, "cut", "the database does not answer")
	}
	return s.Store.Commit(ctx, f, b)
}

func (s *skewed) hangs(ctx context.Context) error {
	if !s.mute.Load() {
		return nil
	}
	<-ctx.Done()
	return job.Errorf(job.KindUnavailable, "cut", "the database does not answer")
}

func (s *skewed) RenewPartition(ctx context.Context, f store.Fence) (int64, error) {
	if err := s.hangs(ctx); err != nil {
		return 0, err
	}
	return s.Store.RenewPartition(ctx, f)
}

func (s *skewed) PartitionRows(ctx context.Context) ([]store.PartitionRow, error) {
	if err := s.hangs(ctx); err != nil {
		return nil, err
	}
	return s.Store.PartitionRows(ctx)
}

func (s *skewed) PutServer(ctx context.Context, row store.Server) (int64, error) {
	if err := s.hangs(ctx); err != nil {
		return 0, err
	}
	return s.Store.PutServer(ctx, row)
}

// skew joins a server whose database clock is off.
func skew(t *testing.T, dsn, name string, off func() time.Duration, change ...func(*app.Config)) (*member, *skewed) {
	t.Helper()
	st, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, Partitions: 4, OwnerTTL: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &skewed{Store: st, off: off}
	return join(t, dsn, append(change, func(c *app.Config) { c.Database, c.Store, c.Server = "", s, name })...), s
}

func (s *skewed) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.early {
		t.Error(e)
	}
}

// sighting is what a handler witnessed.
type sighting struct {
	worker, job, key string
	planned, at      time.Time
	token            int64
	shard, attempt   int
}

// witness collects sightings.
type witness struct {
	mu  sync.Mutex
	all []sighting
}

func (w *witness) see(worker string, t *takt.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, sighting{worker, t.Job(), t.Key(), t.PlannedAt(), time.Now(), t.Token(), t.Shard(), t.Attempt()})
}

func (w *witness) sights() []sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]sighting(nil), w.all...)
}

// hire starts a worker that serves the pool "p" until the test ends, or the returned function is called.
func hire(t *testing.T, cfg takt.WorkerConfig, handler takt.Handler) (stop func()) {
	t.Helper()
	cfg.Pool, cfg.Grace = "p", -1
	cfg.Logger = slog.New(slog.DiscardHandler)
	w, err := takt.NewWorker(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.Handle("h", handler)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Run(ctx) // workers of these tests are cut off; what became of their work is looked at
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

func people(t *testing.T, m ...*member) *takt.Client {
	t.Helper()
	var all []string
	for _, x := range m {
		all = append(all, x.base)
	}
	c, err := takt.NewClient(takt.ClientConfig{Servers: all, RetryFor: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func putJob(t *testing.T, c *takt.Client, name string, spec takt.JobSpec) takt.Job {
	t.Helper()
	spec.Pool, spec.Handler = "p", "h"
	if spec.Schedule != nil {
		spec.Overlap = &takt.OverlapSpec{Policy: "allow"} // each instant is judged alone, however slow the machine that runs it
	}
	j, err := c.PutJob(t.Context(), takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: name}, Spec: spec}, takt.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// executions are all of a job's, from the store.
func executions(t *testing.T, st store.Reader, name string) (all []job.Execution) {
	t.Helper()
	for after := ""; ; {
		rows, next, err := st.Executions(context.Background(), store.ExecutionFilter{Namespace: "default", Job: name, Page: store.Page{After: after, Limit: 500}})
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, rows...); next == "" {
			return all
		}
		after = next
	}
}

// once checks that no instant has two executions, and gives the instants.
func once(t *testing.T, all []job.Execution) map[job.Instant]bool {
	t.Helper()
	seen := map[job.Instant]bool{}
	for _, x := range all {
		if seen[x.PlannedAt] {
			t.Errorf("%s has two executions for %s", x.Job, x.PlannedAt)
		}
		seen[x.PlannedAt] = true
	}
	return seen
}

// Case C23: the database's clock jumps an hour forward, and back. Jobs as in the case; the three minutes in between are
// shortened to what the server needs to see the jump, for no instant of either job lies in them. What follows the return
// is not waited for an hour: the clock is moved on.
func TestC23TheDatabasesClockJumps(t *testing.T) {
	t.Parallel()
	var off atomic.Int64
	m, st := skew(t, pgtest.Start(t).Empty(t), "a", func() time.Duration { return time.Duration(off.Load()) })
	m.until("/readyz", ready)
	c := people(t, m)
	begun := time.Now()
	putJob(t, c, "cron", takt.JobSpec{Schedule: &takt.ScheduleSpec{Cron: "*/5 * * * *"}})
	putJob(t, c, "rate", takt.JobSpec{Schedule: &takt.ScheduleSpec{Every: takt.Duration(time.Minute)}})
	var w witness
	hire(t, takt.WorkerConfig{Server: m.base, Slots: 8}, func(_ context.Context, task *takt.Task) error { w.see("w", task); return nil })

	off.Store(int64(time.Hour))
	until(t, "the jump has been seen and caught up", func() bool { return len(executions(t, st, "rate")) > 0 })
	time.Sleep(2 * time.Second)
	forward := map[string]map[job.Instant]bool{}
	for name, period := range map[string]time.Duration{"cron": 5 * time.Minute, "rate": time.Minute} {
		all := executions(t, st, name)
		most := 2 + int((time.Minute+time.Since(begun))/period) // the newest missed one, what the grace of a minute holds, and what came due meanwhile
		if forward[name] = once(t, all); len(all) > most {
			t.Errorf("%s fired %d times after a jump by an hour", name, len(all))
		}
		rows, _, err := st.Decisions(t.Context(), "default", name, store.Page{Limit: 100})
		if err != nil || len(rows) == 0 {
			t.Errorf("nothing says what became of the hour's instants of %s: %v, %v", name, rows, err)
		}
	}
	off.Store(0)
	until(t, "the way back has been seen", func() bool { return strings.Contains(m.log.String(), "was set back") }) // the clock is measured each ten seconds
	time.Sleep(2 * time.Second)
	for name, before := range forward {
		if after := once(t, executions(t, st, name)); len(after) > len(before)+1 {
			t.Errorf("%s fired on the way back: %v, before it %v", name, after, before)
		}
	}
	for _, says := range []string{"was set forward", "differ by more than 5 s"} {
		if !strings.Contains(m.log.String(), says) {
			t.Errorf("the log does not say that the clock %q", says)
		}
	}
	off.Store(int64(time.Hour + 3*time.Minute)) // true time reaches the next instants
	until(t, "it fires again", func() bool { return len(executions(t, st, "rate")) > len(forward["rate"])+1 })
	once(t, executions(t, st, "rate"))
	st.check(t)
}

// Case C25: two servers whose clocks lag the database's, and lead it. One instant each second in place of each minute, a
// dozen in place of twenty.
func TestC25TheServersClocksAreOff(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{30 * time.Second, -30 * time.Second} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Start(t).Empty(t)
			off := func() time.Duration { return ahead }
			a, st := skew(t, dsn, "a", off)
			a.until("/readyz", ready)
			b, other := skew(t, dsn, "b", off)
			b.until("/readyz", ready)
			var w witness
			hire(t, takt.WorkerConfig{Servers: []string{a.base, b.base}, Slots: 8}, func(_ context.Context, task *takt.Task) error { w.see("w", task); return nil })
			putJob(t, people(t, a, b), "j", takt.JobSpec{Schedule: &takt.ScheduleSpec{Cron: "* * * * * *"}})
			until(t, "a dozen have run", func() bool { return len(w.sights()) >= 12 })
			planned := map[time.Time]int{}
			var first, last time.Time
			for _, s := range w.sights() {
				planned[s.planned]++
				if planned[s.planned] > 1 {
					t.Errorf("%s ran twice", s.planned)
				}
				if first.IsZero() || s.planned.Before(first) {
					first = s.planned
				}
				if s.planned.After(last) {
					last = s.planned
				}
				if s.at.Add(ahead).Before(s.planned) {
					t.Errorf("what was planned for %s began at %s by the database's clock", s.planned, s.at.Add(ahead))
				}
			}
			made := once(t, executions(t, st, "j"))
			for at := first; !at.After(last); at = at.Add(time.Second) {
				if !made[job.InstantOf(at)] {
					t.Errorf("no execution for %s", at)
				}
			}
			for _, x := range executions(t, st, "j") {
				if late := x.CreatedAt.Sub(x.PlannedAt); late < 0 || late > 5500*time.Millisecond {
					t.Errorf("%s was planned %s late by the database's clock", x.PlannedAt, late)
				}
			}
			st.check(t)
			other.check(t)
		})
	}
}

// Case C27: 200 jobs each second on a clock that is slewed by 500 ppm either way and read with an error of up to 2 ms, under
// load, for ten seconds in place of ten minutes.
func TestC27TheTimerThatRingsEarly(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	m, st := skew(t, pgtest.Start(t).Empty(t), "a", func() time.Duration {
		s := time.Since(begun).Seconds()
		return time.Duration(500e-6 * 5 * math.Sin(s/5) * float64(time.Second)) // its derivative is within 500 ppm
	})
	m.until("/readyz", ready)
	c := people(t, m)
	putJob(t, c, "daily", takt.JobSpec{Schedule: &takt.ScheduleSpec{Cron: "17 12 * * *"}})
	for i := range 200 {
		putJob(t, c, fmt.Sprintf("j%d", i), takt.JobSpec{Schedule: &takt.ScheduleSpec{Cron: "* * * * * *"}})
	}
	end := make(chan struct{})
	defer close(end)
	go func() { // load
		for x := 1.0; ; x = math.Sqrt(x + 1) {
			select {
			case <-end:
				return
			default:
			}
		}
	}()
	time.Sleep(10 * time.Second)
	until(t, "enough has run to prove something", func() bool {
		rows, _, err := st.Executions(t.Context(), store.ExecutionFilter{Namespace: "default", Page: store.Page{Limit: 1000}})
		return err == nil && len(rows) == 1000
	})
	for i := range 200 {
		all := executions(t, st, fmt.Sprintf("j%d", i))
		once(t, all)
		for _, x := range all {
			if x.CreatedAt < x.PlannedAt {
				t.Errorf("%s was made at %s for %s", x.Job, x.CreatedAt, x.PlannedAt)
			}
		}
	}
	st.check(t)
}
