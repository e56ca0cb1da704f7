package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// makeJobs writes the definitions of a history: with and without retries, bounds and schedules.
func (d *driver) makeJobs() {
	for i := range 5 {
		def := &job.Definition{UID: job.UID{15: byte(i + 1)}, Namespace: "default", Name: string(rune('a' + i)), Revision: 1,
			CreatedAt: d.wall(), UpdatedAt: d.wall()}
		s := &def.Spec
		s.Pool, s.Handler, s.Shards = "files", "index", 1+d.r.IntN(4)
		s.Params = json.RawMessage(`"a value of some bytes"`)
		if i == 2 {
			s.Pool = "empty" // nobody works there before all faults are over
		}
		s.Retry = job.Retry{MaxAttempts: 1 + d.r.IntN(4), Initial: 200 * time.Millisecond}
		if i%2 == 1 {
			s.Timeout = job.Timeout{Attempt: 4 * time.Second, Stall: 2 * time.Second, Grace: time.Second}
		}
		if i == 4 {
			s.Schedules = []job.Schedule{{ID: "x", Spec: schedule.Spec{Every: 3 * time.Second}}, {ID: "y", Spec: schedule.Spec{Every: 6 * time.Second}}}
		}
		d.jobs = append(d.jobs, def)
		d.put(def)
	}
}

func (d *driver) put(def *job.Definition) {
	d.db.revisions[def.UID] = append(d.db.revisions[def.UID], def)
	d.db.post(engine.Entry{Kind: engine.EntryJobChanged, Job: def.UID})
}

// people trigger, cancel, rerun and edit.
func (d *driver) people() {
	if d.healed {
		return
	}
	if d.chance(2.5) && len(d.db.live) < 25 {
		def := d.jobs[d.r.IntN(len(d.jobs))]
		d.peopleN++
		id := job.RequestedID(d.wall(), [10]byte{0, 0, byte(d.peopleN >> 8), byte(d.peopleN)})
		d.ids = append(d.ids, id)
		req := engine.Request{At: d.wall()}
		if d.chance(50) {
			req.At, req.Delayed = req.At.Add(d.between(-time.Second, 8*time.Second)), true
		}
		d.db.post(engine.Entry{Kind: req.TriggerKind(), Job: def.UID, Execution: id, Request: &req})
		if d.chance(5) {
			d.db.post(engine.Entry{Kind: engine.EntryCancel, Execution: id})
		}
	}
	if n := len(d.ids); n > 0 && d.chance(1) {
		kind := engine.EntryCancel
		if d.chance(60) {
			kind = engine.EntryRerun
		}
		d.db.post(engine.Entry{Kind: kind, Execution: d.ids[d.r.IntN(n)]})
	}
	if n := len(d.ids); n > 0 && d.chance(2) {
		d.db.post(engine.Entry{Kind: engine.EntryReschedule, Execution: d.ids[max(0, n-1-d.r.IntN(6))], Request: &engine.Request{At: d.wall().Add(d.between(0, 6*time.Second))}})
	}
	if d.chance(0.5) {
		d.edit(d.jobs[4], d.chance(30))
	}
	if d.chance(0.5) {
		d.pause(d.jobs[4].UID)
	}
	if d.chance(0.2) {
		d.skew += d.between(-10*time.Second, 10*time.Second)
	}
}

func (d *driver) edit(old *job.Definition, disabled bool) {
	def := *d.db.newest(old.UID)
	def.Revision++
	def.UpdatedAt = d.wall()
	def.Spec.Disabled = disabled
	if d.chance(50) {
		def.Spec.Schedules = []job.Schedule{{ID: "x", Spec: schedule.Spec{Every: 2 * time.Second}}, {ID: "z", Spec: schedule.Spec{Every: 4 * time.Second}}}
	} else {
		def.Spec.Schedules = []job.Schedule{{ID: "x", Spec: schedule.Spec{Every: 3 * time.Second}}, {ID: "y", Spec: schedule.Spec{Cron: "*/6 * * * * *"}}}
	}
	d.put(&def)
}

// pause pauses a job, with or without an end, or resumes it.
func (d *driver) pause(u job.UID) {
	all := slices.Clone(d.db.revisions[u])
	def := *all[len(all)-1]
	switch d.r.IntN(3) {
	case 0:
		def.Pause = &job.Pause{At: d.wall(), Until: d.wall().Add(d.between(0, 20*time.Second))}
	case 1:
		def.Pause = &job.Pause{At: d.wall()}
	default:
		def.Pause = nil
	}
	all[len(all)-1] = &def
	d.db.revisions[u] = all
	d.db.post(engine.Entry{Kind: engine.EntryJobChanged, Job: u})
}

// heal ends all faults: no more requests, schedules off, every worker lives and ends what it runs.
func (d *driver) heal() {
	d.healed = true
	d.edit(d.jobs[4], true)
	d.fleet = append(d.fleet, &rider{d: d, name: "E", pool: "empty"})
	for _, k := range d.fleet {
		k.frozenTo = min(k.frozenTo, d.mono)
		k.deadTo = min(k.deadTo, d.mono)
	}
}

// rider is a worker process under random faults; each life is a session of its own.
type rider struct {
	*worker
	d        *driver
	name     string
	pool     string
	lives    int
	deadTo   time.Duration
	frozenTo time.Duration
	beatAt   time.Duration
	openAt   time.Duration
	opened   bool
	pollAt   time.Duration // it gives its poll up
	retryAt  time.Duration // of unanswered reports
}

// act is what a worker does at an instant.
func (k *rider) act() {
	d := k.d
	switch {
	case d.mono < k.deadTo || d.mono < k.frozenTo:
		return
	case k.worker == nil:
		k.begin()
	case k.unknown:
		k.die()
		k.begin()
	case d.fault(0.15):
		k.die()
		k.worker, k.deadTo = nil, d.mono+d.between(0, 8*time.Second)
		return
	case d.fault(0.25):
		k.frozenTo = d.mono + d.between(0, 7*time.Second)
		return
	case d.fault(0.1):
		d.post(k.close())
		k.worker, k.deadTo = nil, d.mono+d.between(0, time.Second)
		return
	}
	if !k.opened {
		if d.mono >= k.openAt {
			k.openAt = d.mono + 500*time.Millisecond
			r := k.open()
			me, answer := k.worker, r.answer
			r.answer = func(v any) {
				answer(v)
				if me == k.worker {
					k.opened = true
				}
			}
			d.post(r)
		}
		return
	}
	k.talk()
}

func (k *rider) begin() {
	k.lives++
	k.worker = newWorker(k.d.world, k.name, k.lives, 3, "index")
	if k.pool != "" {
		k.session.Pool = k.pool
		k.session.ID = job.SessionIDOf(0, "default", k.pool, k.name, fmt.Sprint(k.lives))
	}
	k.opened, k.openAt, k.beatAt, k.pollAt, k.retryAt = false, 0, 0, 0, 0
}

// talk sends reports, beats and polls. A result may be sent after the worker's own end, never an effect.
func (k *rider) talk() {
	d := k.d
	if items := k.items(); len(items) > 0 {
		d.post(k.report(items...))
	}
	k.fence()
	if d.mono >= k.beatAt {
		k.beatAt = d.mono + d.cfg.Beat
		named := k.tokens()
		if len(named) > 0 && d.fault(3) {
			k.drop(named[0]) // its task is gone, although the worker lives
			named = named[1:]
		}
		var p *job.Progress
		if d.chance(60) {
			p = &job.Progress{Done: int64(d.mono)}
		}
		d.post(k.beat(named, p))
	}
	if !k.polling || d.mono >= k.pollAt {
		k.pollAt = d.mono + 3*time.Second
		d.post(k.poll(k.session.Slots-k.busy(), 2*time.Second))
	}
	if n := k.busy(); n > k.session.Slots && d.err == nil {
		d.err = fmt.Errorf("worker %s runs %d handlers in %d slots", k.name, n, k.session.Slots)
	}
}

// items is what the handlers have to say now. What was not answered is said again.
func (k *rider) items() (items []engine.ReportItem) {
	d := k.d
	again := d.mono >= k.retryAt
	if again {
		k.retryAt = d.mono + 300*time.Millisecond
	}
	for _, token := range k.tokens() {
		t := k.held[token]
		switch {
		case t.done:
			if again {
				items = append(items, *t.last)
			}
		case t.told && d.chance(20):
			outcome := engine.OutcomeCancelled
			if d.fault(30) {
				outcome = engine.OutcomeSuccess
			}
			items = append(items, k.done(t, outcome, 0))
		case t.seq == 0 && d.chance(50):
			items = append(items, k.item(t, engine.ItemStarted))
		case d.chance(5):
			it := k.item(t, engine.ItemCheckpoint)
			it.Checkpoint = []byte(`{"at":1}`)
			items = append(items, it)
		case d.chance(4):
			items = append(items, k.done(t, k.outcome(), d.between(0, time.Second)))
		}
	}
	return items
}

func (k *rider) outcome() engine.Outcome {
	if k.d.healed {
		return engine.OutcomeSuccess
	}
	all := []engine.Outcome{engine.OutcomeError, engine.OutcomeError, engine.OutcomeFatal, engine.OutcomeSnooze, engine.OutcomeReleased,
		engine.OutcomeLeaseLost, engine.OutcomeCancelled}
	if n := k.d.r.IntN(3 * len(all)); n < len(all) {
		return all[n]
	}
	return engine.OutcomeSuccess
}
