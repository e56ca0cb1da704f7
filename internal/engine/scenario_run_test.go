package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// scenario is a world that is led by command lines.
type scenario struct {
	*world
	names   *names
	out     strings.Builder
	quiet   bool // steps without a commit are not shown
	workers map[string]*worker
	lives   map[string]*living
	jobs    map[string]*job.Definition

	calendars map[string]*job.Calendar

	requests int
	together []engine.Event // of a step that is being put together; nil outside
	gathers  bool
	pages    map[string]engine.Event // read and not given yet
	pending  []request               // what living workers do next
	begun    bool
	backup   *database
	worlds   map[int]*world // of other partitions
}

// living is a worker that lives by itself: it beats, asks for work again after each answer, tells
// `started`, and ends its shards after a while.
type living struct {
	*worker
	beatAt time.Duration
	work   time.Duration // 0: for ever
	ckpt   time.Duration // 0: none
	ckptAt map[job.Token]time.Duration
}

func newScenario() *scenario {
	s := &scenario{workers: map[string]*worker{}, lives: map[string]*living{}, jobs: map[string]*job.Definition{},
		pages: map[string]engine.Event{}, worlds: map[int]*world{}}
	s.names = &names{execs: map[job.ExecutionID]string{}, sessions: map[job.SessionID]string{}, jobs: map[job.UID]string{}}
	cfg := engine.Default()
	cfg.LeaseTTL, cfg.Beat, cfg.Margin, cfg.OwnerTTL = 3*time.Second, time.Second, 600*time.Millisecond, 2*time.Second
	s.world = newWorld(cfg)
	s.show = func(w *world, r *engine.Result) {
		if !s.quiet || !r.Batch.Empty() {
			s.out.WriteString(s.names.result(w, r))
		}
	}
	return s
}

// run carries one command line out and gives what the engine did.
func (s *scenario) run(line string) (string, error) {
	s.out.Reset()
	c := parseCommand(line)
	do, known := commands[c.name]
	if !known {
		return "", fmt.Errorf("no such command: %s", c.name)
	}
	if !s.begun && c.name != "config" {
		s.begun = true
		if err := cmpErr(s.load(false), s.after()); err != nil {
			return "", err
		}
		s.out.Reset() // the first load of an empty partition is the same everywhere
	}
	err := do(s, c)
	if err == nil && !s.gathers {
		err = s.after()
	}
	for key := range c.opts {
		if !c.used[key] {
			err = cmpErr(err, fmt.Errorf("%s knows no %q", c.name, key))
		}
	}
	return s.out.String(), err
}

// send takes a call in: at once, or with the others of the step that is being put together.
func (s *scenario) send(r request) error {
	return s.take(r.event(s.ask(r)))
}

func (s *scenario) take(ev engine.Event) error {
	if s.gathers {
		s.together = append(s.together, ev)
		return nil
	}
	return s.step(ev)
}

// after lets pages, timers that are due, and living workers have their turn.
func (s *scenario) after() error {
	for {
		if s.e == nil {
			return nil
		}
		if err := s.settle(); err != nil {
			return err
		}
		s.followUp()
		if len(s.pending) == 0 {
			return nil
		}
		requests := s.pending
		s.pending = nil
		if err := s.deliver(requests...); err != nil {
			return err
		}
	}
}

func (s *scenario) living() []*living {
	return slices.SortedFunc(maps.Values(s.lives), func(a, b *living) int { return cmp.Compare(a.name, b.name) })
}

// followUp lets living workers react to the answers they got.
func (s *scenario) followUp() {
	for _, k := range s.living() {
		var items []engine.ReportItem
		for _, token := range slices.Sorted(maps.Keys(k.held)) {
			task := k.held[token]
			switch {
			case task.seq == 0:
				items = append(items, k.item(task, engine.ItemStarted))
				task.ends = s.mono + k.work
				k.ckptAt[token] = s.mono + k.ckpt
			case task.told && !task.done:
				items = append(items, k.done(task, engine.OutcomeCancelled, 0))
			}
		}
		if len(items) > 0 {
			s.pending = append(s.pending, k.report(items...))
		}
		if !k.polling {
			s.pending = append(s.pending, k.poll(k.session.Slots-k.busy(), 20*time.Second))
		}
	}
}

// advance moves time on to the given instant, from one thing that happens to the next.
func (s *scenario) advance(to time.Duration) error {
	for range 1_000_000 {
		at := to
		if wake, ok := s.nextWake(); ok {
			at = min(at, max(wake, s.mono))
		}
		for _, k := range s.living() {
			at = min(at, k.next(s.mono))
		}
		s.mono = at
		var requests []request
		for _, k := range s.living() {
			requests = append(requests, k.turn()...)
		}
		if err := s.deliver(requests...); err != nil {
			return err
		}
		if err := s.after(); err != nil {
			return err
		}
		if s.mono >= to {
			return nil
		}
	}
	return fmt.Errorf("time does not move on")
}

func (k *living) next(now time.Duration) time.Duration {
	at := k.beatAt
	for token, t := range k.held {
		if !t.done && t.seq > 0 {
			at = min(at, t.until)
			if k.work > 0 {
				at = min(at, t.ends)
			}
			if k.ckpt > 0 {
				at = min(at, k.ckptAt[token])
			}
		}
	}
	return max(at, now)
}

// turn is what a living worker does now.
func (k *living) turn() []request {
	var out []request
	k.fence()
	var items []engine.ReportItem
	for _, token := range slices.Sorted(maps.Keys(k.held)) {
		t := k.held[token]
		if t.done || t.seq == 0 {
			continue
		}
		if k.ckpt > 0 && k.w.mono >= k.ckptAt[token] {
			k.ckptAt[token] += k.ckpt
			it := k.item(t, engine.ItemCheckpoint)
			it.Checkpoint = fmt.Appendf(nil, "%d", t.seq)
			items = append(items, it)
		}
		if k.work > 0 && k.w.mono >= t.ends {
			items = append(items, k.done(t, engine.OutcomeSuccess, 0))
		}
	}
	if len(items) > 0 {
		out = append(out, k.report(items...))
	}
	if k.w.mono >= k.beatAt {
		k.beatAt += k.w.cfg.Beat
		out = append(out, k.beat(k.tokens(), nil))
	}
	return out
}
