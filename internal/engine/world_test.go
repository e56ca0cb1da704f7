package engine_test

import (
	"fmt"
	"reflect"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// epochStart is wall and monotonic zero of every world: readings count from it.
const (
	monoStart = 1000 * time.Second
	wallStart = job.Instant(1_767_225_600_000) // 2026-01-01T00:00:00Z
)

// world is one partition: an engine, its database, and the time. It plays the runner: every step is
// committed before its answers are given, and what the invariants forbid is an error.
type world struct {
	cfg       engine.Config
	e         *engine.Engine
	db        *database
	check     *checker
	mono      time.Duration // since the start
	skew      time.Duration // of the wall clock against mono
	replies   map[engine.ReplyID]*caller
	reply     engine.ReplyID
	want      engine.Want // not read yet
	show      func(w *world, r *engine.Result)
	leftOut   []engine.About
	inboxRead bool // it was the last page
	deaf      bool // pages are read and given by command only
	doubled   bool // a second engine takes every step, too, and must come to the same
	second    *engine.Engine
}

// caller is who waits for an answer.
type caller struct {
	what   string // "A poll 3"
	answer func(v any)
	items  []engine.ReportItem // of a report
}

func newWorld(cfg engine.Config) *world {
	w := &world{cfg: cfg, db: newDatabase(), replies: map[engine.ReplyID]*caller{}}
	w.check = newChecker(w)
	return w
}

func (w *world) now() engine.Now {
	return engine.Now{Mono: monoStart + w.mono, Wall: w.wall()}
}

func (w *world) wall() job.Instant { return wallStart.Add(w.mono + w.skew) }

// load begins a new epoch: an engine made of the committed rows. Whoever waited gets no answer.
func (w *world) load(takeover bool) error {
	w.cfg.Epoch = job.Epoch((int64(max(job.Token(w.cfg.Epoch), w.db.lastToken))/100 + 1) * 100)
	w.e = engine.New(w.cfg)
	if w.doubled {
		w.second = engine.New(w.cfg)
	}
	w.replies, w.want = map[engine.ReplyID]*caller{}, engine.Want{}
	loaded := w.db.loaded(takeover)
	loaded.LeftOut = w.leftOut
	return w.step(loaded)
}

// call registers a caller and gives the reply id for its event.
func (w *world) call(what string, answer func(v any)) engine.ReplyID {
	w.reply++
	w.replies[w.reply] = &caller{what: what, answer: answer}
	return w.reply
}

// step runs one step, commits it, shows it, checks it and gives the answers.
func (w *world) step(events ...engine.Event) error {
	r, err := w.think(append(events, engine.Tick{}))
	if err != nil {
		return err
	}
	if !r.Batch.Empty() {
		if err := w.db.commit(&r.Batch); err != nil {
			return fmt.Errorf("commit refused: %w", err)
		}
	}
	w.wanted(r.Want)
	if err := w.check.step(&r); err != nil {
		return err
	}
	if w.show != nil {
		w.show(w, &r)
	}
	for _, a := range r.Answers {
		c := w.replies[a.Reply]
		if c == nil {
			return fmt.Errorf("answer to %d, whom nobody waits for (or twice): %T", a.Reply, a.Value)
		}
		delete(w.replies, a.Reply)
		if err := w.check.reported(c.items, a.Value); err != nil {
			return err
		}
		c.answer(a.Value)
	}
	return nil
}

// think lets the engine take events. What a step comes to is a function of what came before and of its events: a second
// engine that saw the same, and walks its maps in another order, comes to the same.
func (w *world) think(events []engine.Event) (engine.Result, error) {
	if w.second == nil {
		return w.e.Step(w.now(), events), nil
	}
	own := apart(reflect.ValueOf(events)).Interface().([]engine.Event) // an engine changes the rows that it was given
	r := w.e.Step(w.now(), events)
	other := w.second.Step(w.now(), own)
	if !reflect.DeepEqual(r, other) {
		return r, fmt.Errorf("two engines that saw the same come to different ends by %T\n%+v\n%+v", events, r, other)
	}
	at, ok := w.e.NextWake()
	if next, is := w.second.NextWake(); next != at || is != ok {
		return r, fmt.Errorf("two engines that saw the same want to be woken at %v and %v", at-monoStart, next-monoStart)
	}
	return r, nil
}

// apart copies what is given by value, slices with what they hold; maps and what pointers point to stay.
func apart(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(apart(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			out.Index(i).Set(apart(v.Index(i)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := out.Field(i); f.CanSet() {
				f.Set(apart(v.Field(i)))
			}
		}
	}
	return out
}

func (w *world) wanted(n engine.Want) {
	w.want.Inbox = w.want.Inbox || n.Inbox
	if n.Due != nil {
		w.want.Due = n.Due
	}
	if n.Backlog != nil {
		w.want.Backlog = n.Backlog
	}
	if n.Scheduled != nil {
		w.want.Scheduled = n.Scheduled
	}
	w.want.Upstream = append(w.want.Upstream, n.Upstream...)
	if n.Awaiting != nil {
		w.want.Awaiting = n.Awaiting
	}
	w.want.Executions = append(w.want.Executions, n.Executions...)
	w.want.Shards = append(w.want.Shards, n.Shards...)
}

// settle answers what the core wants, and what timers want at once, until it wants no more.
func (w *world) settle() error {
	for range 1000 {
		if page := w.read(); page != nil && !w.deaf {
			if err := w.step(page); err != nil {
				return err
			}
			continue
		}
		at, ok := w.e.NextWake()
		if !ok || at > w.now().Mono {
			return nil
		}
		if err := w.step(); err != nil {
			return err
		}
	}
	return fmt.Errorf("the engine spins at %v: it wants the next tick or page at once, for ever", w.mono)
}

// read takes one wanted page from the database; nil when none is wanted. An entry that waits for something else of them makes the
// inbox wanted again and again: it takes turns with the others, which a runner reads beside it.
func (w *world) read() engine.Event {
	if w.deaf {
		return nil
	}
	if w.want.Inbox && !w.inboxRead {
		w.want.Inbox, w.inboxRead = false, true
		return w.db.inboxPage(inboxLimit)
	}
	w.inboxRead = false
	if p := w.readRows(); p != nil || !w.want.Inbox {
		return p
	}
	w.want.Inbox = false
	return w.db.inboxPage(inboxLimit)
}

func (w *world) readRows() engine.Event {
	switch n := &w.want; {
	case n.Due != nil:
		p := w.db.duePage(*n.Due)
		n.Due = nil
		return p
	case n.Backlog != nil:
		p := w.db.backlogPage(*n.Backlog)
		n.Backlog = nil
		return p
	case n.Scheduled != nil:
		p := w.db.scheduledPage(*n.Scheduled)
		n.Scheduled = nil
		return p
	case len(n.Executions) > 0:
		p := w.db.executionPage(n.Executions)
		n.Executions = nil
		return p
	}
	return w.readMore()
}

func (w *world) readMore() engine.Event {
	switch n := &w.want; {
	case len(n.Shards) > 0:
		p := w.db.shardPage(n.Shards)
		n.Shards = nil
		return p
	case len(n.Upstream) > 0:
		p := w.db.upstreamPage(n.Upstream)
		n.Upstream = nil
		return p
	case n.Awaiting != nil:
		p := w.db.awaitingPage(*n.Awaiting)
		n.Awaiting = nil
		return p
	}
	return nil
}

const inboxLimit = 100

// nextWake is when the engine wants its next tick, since the start.
func (w *world) nextWake() (time.Duration, bool) {
	at, ok := w.e.NextWake()
	return at - monoStart, ok
}
