package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

func rightTime() time.Duration { return 0 }

// Case C29: the owner dies, is stopped, and is cut off from the database alone, again and again, while thirty jobs come due
// each second. Three rounds in place of ten minutes. (The death of real processes is in internal/drill/pg.)
func TestC29ChangeOfOwner(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).Empty(t)
	names := []string{"a", "b", "c"}
	var die [3]atomic.Bool
	var all [3]*member
	var stores [3]*skewed
	begin := func(i int) {
		die[i].Store(false)
		all[i], stores[i] = skew(t, dsn, names[i], rightTime, func(c *app.Config) {
			c.Tune = func(p *partition.Config) {
				p.Crash = func(string) {
					if die[i].Load() {
						panic("the process is dead")
					}
				}
			}
		})
		all[i].until("/readyz", ready)
	}
	for i := range all {
		begin(i)
	}
	c := people(t, all[:]...)
	made := map[string]takt.Job{}
	for i := range 30 {
		name := fmt.Sprintf("j%d", i)
		made[name] = putJob(t, c, name, takt.JobSpec{Schedule: &takt.ScheduleSpec{Every: takt.Duration(time.Second)}})
	}
	owner := func() int {
		own := -1
		until(t, "somebody owns the pool", func() bool {
			for i, m := range all {
				if h, ok := m.Node().Owner(partition.Of("default", "p", 4)); ok && h.Local {
					own = i
				}
			}
			return own >= 0
		})
		return own
	}
	for round, end := range []func(i int){
		func(i int) { die[i].Store(true); stores[i].mute.Store(true) },
		func(i int) { all[i].stop() },
		func(i int) { stores[i].mute.Store(true) },
	} {
		i := owner()
		end(i)
		for other, m := range all {
			if other == i {
				continue
			}
			status, body := m.ask("POST", "/api/v1/namespaces/default/jobs/j0/trigger", "")
			if status != http.StatusOK && status != http.StatusServiceUnavailable {
				t.Errorf("round %d: %s answers %d %s", round, names[other], status, body)
			}
		}
		time.Sleep(12 * time.Second)
		if h, ok := all[i].Node().Owner(partition.Of("default", "p", 4)); ok && h.Local {
			t.Errorf("round %d: %s owns the pool still", round, names[i])
		}
		stores[i].mute.Store(false)
		if round < 2 {
			begin(i)
		}
	}
	until := job.InstantOf(time.Now().Add(-10 * time.Second))
	for name, j := range made {
		fates := once(t, executions(t, stores[0], name))
		rows, _, err := stores[0].Decisions(t.Context(), "default", name, store.Page{Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		for at := job.InstantOf(*j.Metadata.CreatedAt).Add(2 * time.Second); at < until; at = at.Add(time.Second) {
			n := 0
			if fates[at] {
				n++
			}
			for _, d := range rows {
				if d.From <= at && at <= d.To {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s has %d fates for %s", name, n, at)
			}
		}
	}
	for _, s := range stores {
		s.check(t)
	}
}

// Case C31: a worker with a lasting name is killed and started again at once, and what the dead one sent comes late.
func TestC31SameNameNewProcess(t *testing.T) {
	t.Parallel()
	m, st := skew(t, pgtest.Start(t).Empty(t), "a", rightTime)
	m.until("/readyz", ready)
	c := people(t, m)
	putJob(t, c, "j", takt.JobSpec{})
	var w witness
	free, over := make(chan struct{}), make(chan struct{})
	old := &wires{}
	stopOld := hire(t, takt.WorkerConfig{Server: m.base, Name: "w1", Incarnation: "1", Slots: 1, HTTPClient: &http.Client{Transport: old}},
		func(_ context.Context, task *takt.Task) error {
			w.see("old", task)
			<-free
			return task.SetResult("of the old one")
		})
	asked, err := c.Trigger(t.Context(), "j", takt.TriggerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the old one runs and has beaten", func() bool {
		old.mu.Lock()
		defer old.mu.Unlock()
		return len(w.sights()) == 1 && len(old.sent["heartbeat"]) > 0
	})
	killed := time.Now()
	old.set(true, true)
	close(free) // its result is written down here, and reaches nobody
	hire(t, takt.WorkerConfig{Server: m.base, Name: "w1", Incarnation: "2", Slots: 1}, func(_ context.Context, task *takt.Task) error {
		w.see("new", task)
		<-over
		return task.SetResult("of the new one")
	})
	until(t, "the new one has the shard", func() bool { return len(w.sights()) == 2 })
	if took := time.Since(killed); took > 25*time.Second { // L + 2P
		t.Errorf("it was leased again after %v", took)
	}
	go stopOld() // its close is sent into the cut network
	until(t, "the old one has tried to close", func() bool {
		old.mu.Lock()
		defer old.mu.Unlock()
		return len(old.sent["close"]) > 0
	})
	sights := w.sights()
	if sights[1].token <= sights[0].token {
		t.Errorf("the new token %d is not above %d", sights[1].token, sights[0].token)
	}
	if status, body := old.again(t, "heartbeat", fmt.Sprint(sights[0].token)); status == http.StatusOK && !strings.Contains(body, `"lost":[`) {
		t.Errorf("the old beat is answered %d %s", status, body)
	}
	if status, body := old.again(t, "report", "of the old one"); status == http.StatusOK && !strings.Contains(body, "stale") {
		t.Errorf("the old result is answered %d %s", status, body)
	}
	status, body := old.again(t, "close", "")
	t.Logf("the old close is answered %d %s", status, body)
	if list, err := c.Workers(t.Context(), "p"); err != nil || len(list.Items) != 1 || list.Items[0].Busy != 1 {
		t.Errorf("workers after the late close: %+v, %v", list.Items, err)
	}
	close(over)
	got, err := c.Wait(t.Context(), asked.Execution)
	if err != nil || got.State != "succeeded" {
		t.Fatalf("%+v, %v", got, err)
	}
	shards, err := c.Shards(t.Context(), asked.Execution, takt.Page{})
	if err != nil || len(shards.Items) != 1 || !strings.Contains(string(shards.Items[0].Result), "of the new one") {
		t.Errorf("the result is %+v, %v", shards.Items, err)
	}
	st.check(t)
}

// Case C35: orphans behind more healthy runs than a page holds, which is 20 here.
func TestC35TheOrphanBehindAFullPage(t *testing.T) {
	t.Parallel()
	const page = 20
	tune := func(c *app.Config) {
		c.Tune = func(p *partition.Config) { p.Engine = engine.Default(); p.Engine.PageSize = page }
	}
	m, st := skew(t, pgtest.Start(t).Empty(t), "a", rightTime, tune)
	m.until("/readyz", ready)
	c := people(t, m)
	var w witness
	end := make(chan struct{})
	work := func(name string) takt.Handler {
		return func(ctx context.Context, task *takt.Task) error {
			w.see(name, task)
			select {
			case <-end:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	putJob(t, c, "healthy", takt.JobSpec{Shards: &takt.ShardsSpec{Count: page + 1}})
	putJob(t, c, "one", takt.JobSpec{})
	putJob(t, c, "many", takt.JobSpec{Shards: &takt.ShardsSpec{Count: 5 * page}})
	begin := func(name string) string {
		r, err := c.Trigger(t.Context(), name, takt.TriggerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Execution
	}
	held := func(worker, job string) (n int) {
		for _, s := range w.sights() {
			if s.worker == worker && s.job == job {
				n++
			}
		}
		return n
	}
	hire(t, takt.WorkerConfig{Server: m.base, Name: "good", Slots: page + 1}, work("good"))
	healthy := begin("healthy")
	until(t, "the healthy ones run", func() bool { return held("good", "healthy") == page+1 })
	for _, orphan := range []struct {
		job string
		n   int
	}{{"one", 1}, {"many", 5 * page}} {
		line := &wires{}
		name := "dies of " + orphan.job
		hire(t, takt.WorkerConfig{Server: m.base, Name: name, Slots: orphan.n, HTTPClient: &http.Client{Transport: line}}, work(name))
		id := begin(orphan.job)
		until(t, "the orphans-to-be run", func() bool { return held(name, orphan.job) == orphan.n })
		line.set(true, true)
		killed := time.Now()
		heir := "heir of " + orphan.job
		hire(t, takt.WorkerConfig{Server: m.base, Name: heir, Slots: orphan.n}, work(heir))
		until(t, "all orphans have an heir", func() bool { return held(heir, orphan.job) == orphan.n })
		took := time.Since(killed)
		t.Logf("%d orphans were leased again after %v", orphan.n, took)
		if took > 15*time.Second+2*5*time.Second { // L + 2P
			t.Errorf("%d orphans waited %v", orphan.n, took)
		}
		_ = id
	}
	close(end)
	if x, err := c.Wait(t.Context(), healthy); err != nil || x.State != "succeeded" {
		t.Errorf("%+v, %v", x, err)
	}
	if n := held("good", "healthy"); n != page+1 {
		t.Errorf("healthy shards were begun %d times", n)
	}
	st.check(t)
}

// Case C37: a worker is cut off from the servers both ways, then of the answers alone. It stops by itself before anybody else
// begins, and takes new work when it is back. Cut for a lease and a half in place of three.
func TestC37PartitionHeals(t *testing.T) {
	t.Parallel()
	for _, replies := range []bool{false, true} {
		t.Run(map[bool]string{false: "both ways", true: "replies only"}[replies], func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Start(t).Empty(t)
			a, st := skew(t, dsn, "a", rightTime)
			a.until("/readyz", ready)
			b, _ := skew(t, dsn, "b", rightTime)
			b.until("/readyz", ready)
			c := people(t, a, b)
			putJob(t, c, "j", takt.JobSpec{})
			var w witness
			var enough atomic.Bool
			work := func(name string) takt.Handler {
				return func(ctx context.Context, task *takt.Task) error {
					for !enough.Load() {
						if task.LeaseLeft() <= 0 { // the look before each effect
							return errors.New("the lease is over")
						}
						w.see(name, task)
						select {
						case <-ctx.Done():
							return context.Cause(ctx)
						case <-time.After(200 * time.Millisecond):
						}
					}
					return nil
				}
			}
			line := &wires{}
			servers := []string{a.base, b.base}
			hire(t, takt.WorkerConfig{Servers: servers, Name: "w1", Slots: 1, HTTPClient: &http.Client{Transport: line}}, work("w1"))
			x, err := c.Trigger(t.Context(), "j", takt.TriggerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			of := func(name string) (all []sighting) {
				for _, s := range w.sights() {
					if s.worker == name {
						all = append(all, s)
					}
				}
				return all
			}
			until(t, "w1 works", func() bool { return len(of("w1")) > 3 })
			line.set(!replies, true)
			cut := time.Now()
			hire(t, takt.WorkerConfig{Servers: servers, Name: "w2", Slots: 1}, work("w2"))
			time.Sleep(time.Until(cut.Add(22 * time.Second)))
			until(t, "w2 works", func() bool { return len(of("w2")) > 0 })
			first, last := of("w2")[0], of("w1")[len(of("w1"))-1]
			if last.at.After(cut.Add(13500 * time.Millisecond)) {
				t.Errorf("w1 made its last effect %v after the cut, its lease ended after at most 13.5s", last.at.Sub(cut))
			}
			if !first.at.After(last.at) || first.token <= last.token {
				t.Errorf("w2 began at %s with token %d, w1 ended at %s with %d", first.at, first.token, last.at, last.token)
			}
			line.set(false, false)
			enough.Store(true)
			if got, err := c.Wait(t.Context(), x.Execution); err != nil || got.State != "succeeded" {
				t.Errorf("%+v, %v", got, err)
			}
			enough.Store(false)
			before := len(of("w1"))
			for range 2 { // one for each
				if _, err := c.Trigger(t.Context(), "j", takt.TriggerOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			until(t, "w1 takes new work", func() bool { return len(of("w1")) > before })
			enough.Store(true)
			st.check(t)
		})
	}
}
