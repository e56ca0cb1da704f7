package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run the random driver with this seed alone")
	traceFlag = flag.Bool("steps", false, "print every step of the random driver")
	seedsFlag = flag.Int("seeds", 60, "how many seeds the random driver runs")
)

// TestRandomHistories drives engines with workers that poll, beat, die, freeze, report late or twice,
// with calls that are lost, doubled and delayed, with commits that fail, reloads, cancels, reruns, edits
// and pages that are old when they come. The checker watches every step; when the faults end, every
// execution must end too.
func TestRandomHistories(t *testing.T) {
	from, to := uint64(1), uint64(*seedsFlag)
	if *seedFlag != 0 {
		from, to = *seedFlag, *seedFlag
	}
	total := 0
	for seed := from; seed <= to; seed++ {
		d := newDriver(seed, engine.Switches{})
		if err := d.play(40*time.Second, 4*time.Minute); err != nil {
			t.Fatalf("seed %d (go test ./internal/engine -run RandomHistories -seed %d): %v", seed, seed, err)
		}
		total += d.steps
	}
	t.Logf("%d seeds, %d steps", to-from+1, total)
}

// TestStepIsAFunction runs two engines side by side through the same random histories.
func TestStepIsAFunction(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		d := newDriver(seed, engine.Switches{})
		d.doubled = true
		if err := d.play(40*time.Second, 4*time.Minute); err != nil {
			t.Fatalf("seed %d: %.4000v", seed, err)
		}
	}
}

// driver is a world under random load and faults.
type driver struct {
	*world
	r       *rand.Rand
	steps   int
	mail    []letter
	fleet   []*rider
	jobs    []*job.Definition
	healed  bool
	inboxAt time.Duration
	peopleN int
	ids     []job.ExecutionID
	err     error
	log     func(format string, args ...any)
}

// letter is something on its way.
type letter struct {
	at  time.Duration
	n   int
	req *request // arrives at the engine
	do  func()   // or happens at a worker
	ev  engine.Event
}

func newDriver(seed uint64, sw engine.Switches) *driver {
	cfg := engine.Default()
	cfg.LeaseTTL, cfg.Beat, cfg.Margin, cfg.OwnerTTL = 3*time.Second, 700*time.Millisecond, 500*time.Millisecond, 1500*time.Millisecond
	cfg.MisfireGrace, cfg.Horizon, cfg.SessionKeep, cfg.LossMax = 4*time.Second, 3*time.Second, 6*time.Second, 4
	cfg.ReadyMax, cfg.PageSize, cfg.CatchUpMax, cfg.SoonMax, cfg.Switches = 6, 3, 5, 4, sw
	cfg.ReadyBytes, cfg.AnswerMax = 100, 40
	nm := &names{execs: map[job.ExecutionID]string{}, sessions: map[job.SessionID]string{}, jobs: map[job.UID]string{}}
	d := &driver{world: newWorld(cfg), r: rand.New(rand.NewPCG(seed, 7)), log: func(string, ...any) {}}
	if *traceFlag {
		d.show = func(w *world, r *engine.Result) { fmt.Print(nm.result(w, r)) }
		d.log = func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	}
	for i := range 3 {
		d.fleet = append(d.fleet, &rider{d: d, name: string(rune('A' + i))})
	}
	return d
}

func (d *driver) chance(percent float64) bool { return d.r.Float64()*100 < percent }

func (d *driver) between(a, b time.Duration) time.Duration {
	return a + time.Duration(d.r.Int64N(int64(b-a)))
}

func (d *driver) fault(percent float64) bool { return !d.healed && d.chance(percent) }

// delay is how long a message takes.
func (d *driver) delay() time.Duration {
	if d.fault(3) {
		return d.between(0, 5*time.Second)
	}
	return d.between(0, 150*time.Millisecond)
}

func (d *driver) later(in time.Duration, l letter) {
	l.at, l.n = d.mono+in, len(d.mail)
	d.mail = append(d.mail, l)
}

// post sends a call: it may be lost, doubled, late, and so may its answer.
func (d *driver) post(r request) {
	d.log("t=%v sent: %s %+v", d.mono, r.what, r.event(0))
	if d.fault(3) {
		return
	}
	copies := 1
	if d.fault(4) {
		copies = 2
	}
	answer := r.answer
	r.answer = func(v any) {
		if !d.fault(4) {
			d.later(d.delay(), letter{do: func() { answer(v) }})
		}
	}
	for range copies {
		d.later(d.delay(), letter{req: &r})
	}
}

// play runs for a while with faults, then heals, and everything must end.
func (d *driver) play(faulty, healing time.Duration) error {
	if err := d.load(false); err != nil {
		return err
	}
	d.makeJobs()
	for d.mono < faulty {
		if err := d.tick(); err != nil {
			return fmt.Errorf("t=%v: %w", d.mono, err)
		}
	}
	d.heal()
	for d.mono < faulty+healing {
		if err := d.tick(); err != nil {
			return fmt.Errorf("t=%v, healed: %w", d.mono, err)
		}
		if len(d.db.live) == 0 && len(d.db.inbox) == 0 && d.mono > faulty+10*time.Second {
			return nil
		}
	}
	for _, r := range d.db.ordered() {
		return fmt.Errorf("execution %s is %s for ever, its shards: %+v", r.row.ID, r.row.State, r.shards)
	}
	return fmt.Errorf("entries stay in the inbox: %+v", d.db.inbox)
}

// tick moves on to the next thing that happens and lets it happen.
func (d *driver) tick() error {
	next := d.mono + 50*time.Millisecond
	if wake, ok := d.nextWake(); ok {
		next = min(next, max(wake, d.mono))
	}
	for _, l := range d.mail {
		next = min(next, l.at)
	}
	if d.fault(0.1) {
		next += d.between(0, 3*time.Second) // the judge itself was paused
	}
	d.mono = max(d.mono, next)
	var events []engine.Event
	slices.SortStableFunc(d.mail, func(a, b letter) int { return int(a.at - b.at) })
	for len(d.mail) > 0 && d.mail[0].at <= d.mono {
		l := d.mail[0]
		d.mail = d.mail[1:]
		switch {
		case l.do != nil:
			l.do()
		case l.req != nil:
			events = append(events, l.req.event(d.ask(*l.req)))
		case l.ev != nil:
			d.log("t=%v given: %T%+v", d.mono, l.ev, l.ev)
			events = append(events, l.ev)
		}
		if len(events) > 0 && d.chance(30) {
			break // the rest comes with the next step
		}
	}
	for _, k := range d.fleet {
		k.act()
	}
	d.people()
	if d.mono >= d.inboxAt {
		d.inboxAt = d.mono + d.between(100*time.Millisecond, 600*time.Millisecond)
		d.want.Inbox = true
	}
	d.readPages()
	if err := d.once(events); err != nil {
		return err
	}
	return d.err
}

// readPages takes snapshots of what is wanted; they come later.
func (d *driver) readPages() {
	for {
		ev := d.read()
		if ev == nil {
			return
		}
		in := d.between(0, 20*time.Millisecond)
		if d.fault(20) {
			in = d.between(0, time.Second)
		}
		if d.fault(2) {
			continue // it never comes
		}
		d.later(in, letter{ev: ev})
	}
}

// once takes events in, or lets the owner fail at it; then nothing may be wanted at once for ever.
func (d *driver) once(events []engine.Event) error {
	d.steps++
	if d.fault(0.3) {
		return d.crash(events)
	}
	if err := d.step(events...); err != nil {
		return err
	}
	for n := 0; ; n++ {
		at, ok := d.e.NextWake()
		if !ok || at > d.now().Mono {
			break
		}
		if n > 40 {
			return fmt.Errorf("spins: NextWake stays at %v", at-monoStart)
		}
		d.steps++
		if err := d.step(); err != nil {
			return err
		}
	}
	if d.chance(5) {
		r, err := d.think(nil)
		if err != nil {
			return err
		}
		if !r.Batch.Empty() || len(r.Answers)+len(r.Trace) > 0 || r.Want.Due != nil || r.Want.Backlog != nil || r.Want.Scheduled != nil {
			return fmt.Errorf("a step without events at the same instant does something: %+v", r)
		}
		d.wanted(r.Want)
	}
	return nil
}

// crash: the outcome of the step's commit is unknown; it landed or not. A new epoch begins.
func (d *driver) crash(events []engine.Event) error {
	r := d.e.Step(d.now(), events)
	landed := d.chance(50)
	d.log("t=%v crash of the owner, its commit landed: %t", d.mono, landed && !r.Batch.Empty())
	if landed && !r.Batch.Empty() {
		if d.show != nil {
			d.show(d.world, &r)
		}
		if err := d.db.commit(&r.Batch); err != nil {
			return err
		}
		if err := d.check.step(&r); err != nil {
			return err
		}
	}
	times := 1
	if d.chance(30) {
		times = 4
	}
	for range times {
		d.mono += d.between(0, 100*time.Millisecond)
		if err := d.load(d.chance(50)); err != nil {
			return err
		}
		d.mail = slices.DeleteFunc(d.mail, func(l letter) bool { return l.ev != nil }) // pages of the former owner
	}
	return nil
}
