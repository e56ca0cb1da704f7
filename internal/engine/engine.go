package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// Engine is the memory of one partition. It is not safe for concurrent use: its runner alone calls it.
// Step changes this memory at once; when the commit of the step's batch fails, the whole engine is
// thrown away and built anew from rows (R3), so nothing here needs to be undone.
type Engine struct {
	cfg    Config
	loaded bool
	first  bool // the next commit is the first one of this engine
	seq    int64
	token  job.Token // newest token granted
	behind int       // see LevelOfAll

	now       Now           // of the step that runs, or of the newest one
	wallMoved time.Duration // monotonic instant at which the wall clock last moved
	answered  time.Duration // monotonic instant of the newest step: blindness is counted from it

	executions map[job.ExecutionID]*execution
	upstream   map[job.ExecutionID]*wait // for their parents
	watched    map[string]int            // for so many jobs the ends of this one are told to this partition, as far as is known: see watch
	watchers   map[job.UID][]string      // whom each of them watches
	sessions   map[job.SessionID]*session
	waiting    map[ReplyID]*session // whose poll hangs
	pools      map[poolKey]*pool
	ready      int // bytes of all lines
	timers     timerHeap
	due        dueBook
	soon       soonBook
	pages      pageBook
	turns      turnBook
	counters   Counters
	audits     int            // instants that audits have looked at
	facts      int            // of the newest commit
	woken      time.Duration  // monotonic instant at which the newest step wanted the next one; 0: it did not mind
	leftOut    map[About]bool // can not be decided
	backfills  map[job.ExecutionID]*backfill
	about      About // what is being decided

	step stepState
}

// stepState is what one step gathers; it is empty between steps.
type stepState struct {
	batch      Batch
	answers    []Answer
	trace      []Fact
	executions []*execution
	shards     []*shard
	sessions   []*session
	cursors    map[dueKey]job.Cursor
	dropped    map[dueKey]job.Cursor
	created    map[job.ExecutionID]bool
	left       map[job.ExecutionID]*execution // that wait for their instant in the database
	handed     map[job.UID]bool               // to another partition
	taken      map[job.UID]bool               // jobs whose newest revision was taken in
	away       map[job.ExecutionID]bool       // sent to other partitions
	sent       []int                          // partitions that executions or backfills were sent to
	audit      map[dueKey]*dueEntry           // whose cursors are written
	inbox      bool                           // an entry has to be read again with newer rows
	polls      []*session                     // may have something to tell a hanging poll
	pools      []*pool                        // something changed that may allow a grant
	finishing  []*execution                   // the last open shard has ended
	walked     int                            // instants that were missed
	compared   int                            // instants of old and new versions of jobs
}

// execution is a live execution with all its shards.
type execution struct {
	row    job.Execution
	stored job.ExecutionState // what the database will hold once every batch so far is committed
	def    *job.Definition
	shards []*shard
	open   int   // shards that have not ended
	home   *Home // where it belongs when its wait is over; nil: here, in its pool
	sent   bool  // to its home, in this step
	parked int   // bytes that it counts for while it waits for its turn
	dirty  bool
	timer  schedule.Timer // while it waits for its instant
	ripe   bool           // its instant has come, and it was not admitted yet
}

// shard is one part of a live execution and, while sess is set, its lease.
type shard struct {
	job.Shard
	exec   *execution
	stored job.ShardState
	dirty  bool

	sess      *session      // holder of the open lease; nil when the lease is over
	deadline  time.Duration // the judge's end of the lease
	leaseCall int64         // the call that set deadline; 0 after a load, until a call sets it
	timeoutAt time.Duration
	stallAt   time.Duration
	retryAt   time.Duration
	stopBy    time.Duration
	told      bool // its stop was sent with a poll answer; beats repeat it
	place     int  // in its line, from 1; 0: it is in none
	bytes     int  // that it counts for there
	bare      bool // it has ended, and its values are in the database only
	alarm     alarm
}

// New makes an engine that knows nothing yet; its first step must hold Loaded.
func New(cfg Config) *Engine {
	return &Engine{
		cfg:        cfg,
		first:      true,
		behind:     cfg.Behind,
		executions: map[job.ExecutionID]*execution{},
		upstream:   map[job.ExecutionID]*wait{},
		watched:    map[string]int{},
		watchers:   map[job.UID][]string{},
		sessions:   map[job.SessionID]*session{},
		waiting:    map[ReplyID]*session{},
		pools:      map[poolKey]*pool{},
		due:        newDueBook(),
		soon:       soonBook{held: map[job.ExecutionID]*execution{}},
		pages:      newPageBook(),
		turns:      newTurnBook(),
		leftOut:    map[About]bool{},
	}
}

// Step takes what arrived and says what to write, what to answer and what to read. now must not run
// backwards on Mono; a Wall that does is taken as standing still.
//
// Order: what arrived first (control entries, reports, beats, polls), then timers, then planning, then
// dispatch: what arrived beats expiry (DESIGN §10.1). A panic means an event that the engine can not
// decide: the runner drops the engine and sets the event aside.
func (e *Engine) Step(now Now, events []Event) Result {
	e.begin(now)
	ordered := slices.Clone(events)
	slices.SortStableFunc(ordered, func(a, b Event) int { return cmp.Compare(a.rank(), b.rank()) })
	late := len(ordered)
	for i, ev := range ordered {
		if ev.rank() >= (Tick{}).rank() {
			late = i
			break
		}
		e.take(ev)
	}
	e.about = About{}
	e.runTimers()
	e.admitRipe()
	e.plan()
	e.catchUp()
	e.runBackfills()
	e.finish()
	e.about = About{}
	e.dispatch()
	e.answerPolls()
	for _, ev := range ordered[late:] {
		e.take(ev)
	}
	return e.end()
}

func (e *Engine) begin(now Now) {
	if now.Wall > e.now.Wall {
		e.wallMoved = now.Mono
	} else {
		now.Wall = e.now.Wall
	}
	blind := e.loaded && now.Mono-e.answered > e.cfg.OwnerTTL
	stalled := e.woken > 0 && now.Mono > e.woken+stallAfter
	e.now, e.answered = now, now.Mono
	e.step = stepState{batch: Batch{At: now.Wall}}
	if stalled {
		e.soon.stalled(e)
	}
	if blind {
		e.deferVerdicts(0)
	}
}

// take handles one event.
func (e *Engine) take(ev Event) {
	e.about = About{}
	switch ev := ev.(type) {
	case Loaded:
		e.load(ev)
	case SetAside:
		e.setAside(ev)
	case ClockStepped:
		e.fact(Fact{Kind: FactClockStepped, Note: ev.Clock + " " + ev.By.String()})
	case LevelOfAll:
		e.levels(ev)
	case ExecutionPage:
		e.executionPage(ev)
	case ShardPage:
		e.shardPage(ev)
	case UpstreamPage:
		e.upstreamPage(ev)
	case AwaitingPage:
		e.awaitingPage(ev)
	case InboxPage:
		e.inboxPage(ev)
	case SessionOpen:
		e.open(ev)
	case Report:
		e.report(ev)
	case Heartbeat:
		e.heartbeat(ev)
	case SessionClose:
		e.close(ev)
	case PollGone:
		e.pollGone(ev)
	case Poll:
		e.poll(ev)
	case BacklogPage:
		e.backlogPage(ev)
	case DuePage:
		e.duePage(ev)
	case ScheduledPage:
		e.scheduledPage(ev)
	case Inspect:
		e.answer(ev.Reply, e.inspect(ev.Query))
	case Tick:
	}
}

// end turns what the step gathered into a Result.
func (e *Engine) end() Result {
	st := &e.step
	b := &st.batch
	st.rows(e)
	e.writeBackfills()
	e.audit()
	b.Cursors, b.DropCursors = sortedCursors(st.cursors), sortedCursors(st.dropped)
	b.LastToken = e.token
	if b.Empty() {
		st.trace, b.Facts = append(st.trace, b.Facts...), nil
	} else {
		if e.first {
			e.first = false
			b.Facts = append([]Fact{{Kind: FactOwned, Token: job.Token(e.cfg.Epoch)}}, b.Facts...)
		}
		e.seq++
		b.Seq, b.Level = e.seq, Level-e.behind
		e.facts = len(b.Facts)
		e.pages.commit(b)
	}
	r := Result{Batch: *b, Answers: st.answers, Trace: st.trace, Want: e.want()}
	for _, f := range b.Forwarded {
		r.Wakes = append(r.Wakes, f.Partition)
	}
	r.Wakes = append(r.Wakes, st.sent...)
	for _, x := range st.executions {
		if x.row.State.Ended() {
			e.forget(x)
		}
	}
	for _, x := range st.left {
		e.forget(x)
	}
	e.step = stepState{}
	e.woken, _ = e.NextWake()
	return r
}

// rows puts what the step touched into its batch, each row once.
func (st *stepState) rows(e *Engine) {
	b := &st.batch
	for _, x := range st.executions {
		if x.dirty {
			b.Executions = append(b.Executions, ExecutionWrite{From: x.stored, Sent: x.sent, Row: x.row})
			x.stored, x.dirty = x.row.State, false
		}
	}
	b.Shards = slices.Grow(b.Shards, len(st.shards)) // they are large, and may be thousands
	for _, s := range st.shards {
		if s.dirty {
			row := s.Shard
			if !s.State.Ended() { // those that go on are changed in place later, while this batch is in flight
				row.Attempts = slices.Clone(s.Attempts)
			}
			b.Shards = append(b.Shards, ShardWrite{From: s.stored, Total: s.exec.row.ShardTotal, Row: row})
			s.stored, s.dirty = s.State, false
			if s.State.Ended() {
				s.strip()
			}
		}
	}
	for _, s := range st.sessions {
		if _, live := e.sessions[s.ID]; live && s.dirty {
			b.Sessions = append(b.Sessions, s.Session)
			s.dirty = false
		}
	}
}

// NextWake is the monotonic instant at which the engine wants its next tick; false when only an event
// can change anything.
func (e *Engine) NextWake() (time.Duration, bool) {
	if !e.loaded {
		return 0, false
	}
	at, ok := e.due.wake(e)
	earlier := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if t, has := e.soon.wake(e); has {
		earlier(t)
	}
	if t, has := e.timers.next(); has {
		earlier(t)
		// A judge that has leases looks often enough never to seem blind to itself.
		earlier(e.answered + e.cfg.OwnerTTL/4)
	}
	if t, has := e.pages.retry(); has {
		earlier(t)
	}
	if e.backfillsWait() {
		earlier(e.now.Mono)
	}
	return at, ok
}

// Seq is the number of the newest batch: the fence of the next one.
func (e *Engine) Seq() int64 { return e.seq }

func (e *Engine) answer(r ReplyID, v any) {
	e.step.answers = append(e.step.answers, Answer{Reply: r, Value: v})
}

// fact notes what a commit does. Facts are large, and there may be thousands: room is made for as many as the last commit had.
func (e *Engine) fact(f Fact) {
	if e.step.batch.Facts == nil {
		e.step.batch.Facts = make([]Fact, 0, e.facts)
	}
	e.step.batch.Facts = append(e.step.batch.Facts, f)
}

func (e *Engine) traceFact(f Fact) { e.step.trace = append(e.step.trace, f) }

// mono turns a stored wall instant into a monotonic one: remaining time, at most full (DESIGN §10.7).
func (e *Engine) mono(at job.Instant, full time.Duration) time.Duration {
	left := min(max(at.Sub(e.now.Wall), 0), full)
	return e.now.Mono + left
}
