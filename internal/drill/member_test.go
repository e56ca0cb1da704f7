package drill_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/job"
)

// member is an SDK worker of a cluster.
type member struct {
	c    *cluster
	name string
	link *drill.Link
	stop context.CancelFunc
	done chan struct{}
	dead atomic.Bool // its process was killed: nothing it does leaves a trace any more
}

// work is the parameters of the test handler: steps of a length, a checkpoint after each n-th one, and
// how often in a thousand attempts it fails at a step.
type work struct {
	Steps      int    `json:"steps"`
	StepMs     int    `json:"stepMs"`
	Checkpoint int    `json:"checkpoint"` // 0: none
	FailIn1000 int    `json:"failIn1000"`
	Deaf       bool   `json:"deaf"` // does not watch its context while it works
	Say        string `json:"say"`  // saved as a checkpoint first

	Gives int  `json:"gives,omitempty"` // bytes of its result at some instants; 0: none
	Sees  bool `json:"sees,omitempty"`  // notes what its parents gave; see family
}

// join starts a worker.
func (c *cluster) join(name string, slots int) *member { return c.joinWith(name, slots, nil) }

// joinWith starts a worker whose calls the rule judges from the first one on.
func (c *cluster) joinWith(name string, slots int, rule func(drill.Call) drill.Verdict) *member {
	c.t.Helper()
	c.joined++
	m := &member{c: c, name: name, done: make(chan struct{})}
	m.link = drill.NewLink(name, c.seed, c.transport(name), c.tape)
	m.link.Rule(rule)
	w, err := takt.NewWorker(takt.WorkerConfig{Server: c.where, Pool: c.pools(name), Name: name, Slots: slots, Grace: 5 * time.Second,
		HTTPClient: &http.Client{Transport: m.link}, Logger: slog.New(slog.DiscardHandler), Jitter: c.jitter(name),
		Incarnation: fmt.Sprintf("%s-%d", name, c.joined)})
	if err != nil {
		c.t.Fatal(err)
	}
	w.Handle("work", m.work)
	var ctx context.Context
	ctx, m.stop = context.WithCancel(context.Background())
	c.mu.Lock()
	c.workers[name] = m
	c.mu.Unlock()
	c.wg.Go(func() {
		defer close(m.done)
		if err := w.Run(ctx); err != nil && !m.dead.Load() && !m.link.WasCut() {
			c.t.Errorf("worker %s ended with %v", name, err)
		}
	})
	return m
}

// members lists the workers by name.
func (c *cluster) members() []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.workers), func(a, b *member) int { return cmp.Compare(a.name, b.name) })
}

// kill ends the worker as kill -9 does: its connections break, and nothing it still does counts.
func (m *member) kill() {
	m.dead.Store(true)
	m.link.Close()
	m.stop()
	m.c.forget(m)
}

// leave stops the worker gracefully and waits for it.
func (m *member) leave() {
	m.stop()
	<-m.done
	m.link.Close()
	m.c.forget(m)
}

func (c *cluster) forget(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.workers[m.name] == m {
		delete(c.workers, m.name)
	}
}

var errUnlucky = errors.New("the dice say no")

// work is the handler. It returns some nanoseconds after its end, so that handlers whose answers came
// together do not end at one instant.
func (m *member) work(ctx context.Context, t *takt.Task) error {
	r := &drill.Run{Job: t.Job(), Shard: t.Shard(), Planned: t.PlannedAt(), Token: t.Token(), Start: time.Now()}
	err := m.steps(ctx, t)
	if err == nil && !m.dead.Load() {
		r.End = time.Now()
	}
	m.c.witness(r)
	time.Sleep(100 * m.crumbs(t, -2)) // the pauses before were of single nanoseconds: their sums are equal now and then, these are not
	return err
}

// steps asks its task before every step, saves checkpoints, and makes one effect at the end, under the
// shard's key.
func (m *member) steps(ctx context.Context, t *takt.Task) error {
	var p work
	if err := t.BindParams(&p); err != nil {
		return err
	}
	step := 0
	if _, err := t.LastCheckpoint(&step); err != nil {
		return err
	}
	if p.Say != "" {
		if err := t.Checkpoint(ctx, p.Say); err != nil {
			return err
		}
	}
	if p.Sees {
		if err := m.see(ctx, t); err != nil {
			return err
		}
	}
	draw := drill.Draw(m.c.seed, "handler", t.Key(), strconv.Itoa(t.Attempt()))
	failAt := -1
	if p.FailIn1000 > 0 && draw%1000 < uint64(p.FailIn1000) {
		failAt = step + int(draw/1000)%max(p.Steps-step, 1)
	}
	// Nothing happens at the instant of the start, so that its report leaves before another comes.
	if err := m.pace(ctx, time.Millisecond+m.crumbs(t, -1), false); err != nil {
		return err
	}
	for ; step < p.Steps; step++ {
		if err := m.pace(ctx, time.Duration(p.StepMs)*time.Millisecond+m.crumbs(t, step), p.Deaf); err != nil {
			return err
		}
		if step == failAt {
			return errUnlucky
		}
		if err := t.Progress(int64(step+1), int64(p.Steps), ""); err != nil {
			return err
		}
		if p.Checkpoint > 0 && (step+1)%p.Checkpoint == 0 {
			if err := t.Checkpoint(ctx, step+1); err != nil {
				return err
			}
			time.Sleep(m.crumbs(t, -3-step))
		}
	}
	if err := t.Progress(int64(p.Steps), int64(p.Steps), "effect"); err != nil {
		return err
	}
	if err := m.give(t, p.Gives); err != nil {
		return err
	}
	if m.dead.Load() {
		return errUnlucky
	}
	m.c.tape.Effect(drill.Effect{At: time.Now(), Worker: m.name, Execution: t.Execution(), Shard: t.Shard(), Token: job.Token(t.Token()),
		Attempt: t.Attempt(), Key: t.Key()})
	return nil
}

// crumbs are some nanoseconds that keep handlers from waking at one instant.
func (m *member) crumbs(t *takt.Task, step int) time.Duration {
	return time.Duration(drill.Draw(m.c.seed, "crumbs", t.Key(), strconv.Itoa(t.Attempt()), strconv.Itoa(step)) % 10_000)
}

func (m *member) pace(ctx context.Context, d time.Duration, deaf bool) error {
	if deaf {
		time.Sleep(d)
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
