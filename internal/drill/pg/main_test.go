//go:build linux

package pg_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/partition"
)

// envRole makes the test binary a server or a worker process, as its value says.
const envRole = "TAKT_PG_DRILL_ROLE"

// role is what such a process is.
type role struct {
	Server *serverRole
	Worker *workerRole
	Stalls string // file for what the machine kept this process from
}

type serverRole struct {
	DSN, Listen, Name, Incarnation, Loss string
	Lease                                partition.Lease
}

type workerRole struct {
	Servers []string
	Name    string
	Pools   []string
	Slots   int
	Witness string
	Table   string // address of a database of the users' own with the table effects; "": none
}

func TestMain(m *testing.M) {
	text := os.Getenv(envRole)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := play(text); err != nil {
		fmt.Fprintln(os.Stderr, "ended:", err)
		os.Exit(1)
	}
}

func play(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if r.Stalls != "" {
		go stalls(r.Stalls)
	}
	if r.Server != nil {
		return serve(ctx, r.Server)
	}
	return work(ctx, r.Worker)
}

// serve is what `takt server --db` does.
func serve(ctx context.Context, r *serverRole) error {
	a, err := app.New(ctx, app.Config{Database: r.DSN, Listen: r.Listen, Server: r.Name, Incarnation: r.Incarnation, DatabaseLoss: r.Loss,
		Lease: r.Lease, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Version: "drill"})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// sight is a line of a witness: what a handler did. Every line is on disk before the handler goes on.
type sight struct {
	What      string // began, effect, stopped; refused: the users' table had a newer token
	Key       string
	Job       string
	Pool      string
	Execution string
	Shard     int
	Token     int64
	Attempt   int
	Worker    string
	Planned   time.Time
	At        time.Time
	From      int // step that a long one began with
}

// errand is the params of the handlers.
type errand struct {
	Steps int `json:"steps"`
	Ms    int `json:"ms"` // of a step
}

// worker is a process with a worker in each pool.
type worker struct {
	*workerRole
	mu      sync.Mutex
	witness *os.File
	table   *pgx.Conn
}

func work(ctx context.Context, r *workerRole) error {
	w := &worker{workerRole: r}
	var err error
	if w.witness, err = os.OpenFile(r.Witness, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	if r.Table != "" {
		if w.table, err = pgx.Connect(ctx, r.Table); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	ended := make([]error, len(r.Pools))
	for i, pool := range r.Pools {
		one, err := takt.NewWorker(takt.WorkerConfig{Servers: r.Servers, Pool: pool, Name: r.Name, Slots: r.Slots,
			Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		if err != nil {
			return err
		}
		one.Handle("run", func(ctx context.Context, t *takt.Task) error { return w.run(ctx, t, pool) })
		wg.Go(func() { ended[i] = one.Run(ctx) })
	}
	wg.Wait()
	return errors.Join(errors.Join(ended...), w.witness.Close())
}

// run goes its steps, a checkpoint behind each but the last, and then makes one effect.
func (w *worker) run(ctx context.Context, t *takt.Task, pool string) error {
	var e errand
	if err := json.Unmarshal(t.Params(), &e); err != nil {
		return err
	}
	done := 0
	if _, err := t.LastCheckpoint(&done); err != nil {
		return err
	}
	s := sight{Key: t.Key(), Job: t.Job(), Pool: pool, Execution: t.Execution(), Shard: t.Shard(), Token: t.Token(), Attempt: t.Attempt(), Worker: w.Name,
		Planned: t.PlannedAt(), From: done}
	if err := w.see("began", s); err != nil {
		return err
	}
	for ; done < e.Steps; done++ {
		timer := time.NewTimer(time.Duration(e.Ms) * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(context.Cause(ctx), w.see("stopped", s))
		}
		if done < e.Steps-1 {
			if err := t.Checkpoint(ctx, done+1); err != nil {
				return errors.Join(err, w.see("stopped", s))
			}
		}
	}
	if t.LeaseLeft() <= 0 { // the handler's own look before its effect
		return errors.Join(errors.New("the lease is over"), w.see("stopped", s))
	}
	return w.effect(s)
}

// effect is the side effect, guarded by the token where the users have a table.
func (w *worker) effect(s sight) error {
	what := "effect"
	if w.table != nil {
		w.mu.Lock()
		tag, err := w.table.Exec(context.Background(), `INSERT INTO effects AS e (key, token, times) VALUES ($1, $2, 1)
ON CONFLICT (key) DO UPDATE SET token = excluded.token, times = e.times + 1 WHERE e.token < excluded.token`, s.Key, s.Token)
		w.mu.Unlock()
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			what = "refused"
		}
	}
	return w.see(what, s)
}

func (w *worker) see(what string, s sight) error {
	s.What, s.At = what, time.Now()
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.witness.Write(append(line, '\n')); err != nil {
		return err
	}
	return w.witness.Sync()
}

const (
	pulse     = 20 * time.Millisecond
	worthy    = 100 * time.Millisecond // shorter stalls are no news
	stallForm = "%d %d\n"              // Unix ms of its end, length in ms
)

// stalls writes down, as long as the process lives, for how long the machine kept it from running: how much later than
// asked a timer came. Time for which the process itself was stopped counts, too.
func stalls(name string) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stalls are not written:", err)
		return
	}
	for {
		before := time.Now()
		time.Sleep(pulse)
		if late := time.Since(before) - pulse; late >= worthy {
			fmt.Fprintf(f, stallForm, time.Now().UnixMilli(), late.Milliseconds())
		}
	}
}
