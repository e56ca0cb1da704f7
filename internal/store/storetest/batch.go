package storetest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// Values of random rows. The texts are those that quoting, escaping and collations get wrong.
var (
	someTexts = []string{"", "plain", "it's \"quoted\"; --", "ünï 漢字 🙂", "line\nbreak\t", "%_?:1"}
	someJSON  = []json.RawMessage{nil, json.RawMessage(`{}`), json.RawMessage(`{"a":[1,2.5,null],"b":"<&>\u0000"}`), json.RawMessage(`"ü"`), json.RawMessage(`9007199254740993`)}

	largeJSON = json.RawMessage(`"` + strings.Repeat("long ", 400) + `"`) // it lies in a row of its own

	executionStates = []job.ExecutionState{job.ExecutionScheduled, job.ExecutionQueued, job.ExecutionRunning, job.ExecutionCancelling,
		job.ExecutionSucceeded, job.ExecutionPartiallySucceeded, job.ExecutionFailed, job.ExecutionTimedOut, job.ExecutionCancelled}
	shardStates = []job.ShardState{job.ShardQueued, job.ShardLeased, job.ShardRunning, job.ShardRetryWait, job.ShardStopping,
		job.ShardSucceeded, job.ShardFailed, job.ShardTimedOut, job.ShardCancelled}
)

func (h *history) text() string          { return pick(h, someTexts) }
func (h *history) json() json.RawMessage { return pick(h, someJSON) }
func (h *history) instant() job.Instant  { return 1_800_000_000_000 + job.Instant(h.rng.IntN(5000)) }

// newID is an id for an instant that many share.
func (h *history) newID(at job.Instant) job.ExecutionID {
	h.number++
	var rest [10]byte
	binary.BigEndian.PutUint64(rest[2:], h.number*0x9e3779b97f4a7c15)
	return job.RequestedID(at, rest)
}

// batch is a step that the twin would accept.
func (h *history) batch(p int) *engine.Batch {
	row := h.twin.parts[p]
	h.clock += job.Instant(h.rng.IntN(1000))
	b := &engine.Batch{Seq: row.Seq + 1, LastToken: row.LastToken + job.Token(h.rng.IntN(5)), At: h.clock,
		Level: pick(h, []int{0, engine.Level})} // old forms of rows and new ones lie beside each other
	h.takeEntries(b, p)
	h.planOne(b, p)
	h.planAlike(b, p)
	h.advance(b, p)
	h.rerun(b, p)
	h.grantAlike(b, p)
	h.bookkeeping(b, p)
	return b
}

// takeEntries consumes some of the inbox; triggers become executions.
func (h *history) takeEntries(b *engine.Batch, p int) {
	for _, e := range h.twin.inbox {
		if e.partition != p || h.rng.IntN(3) == 0 || len(b.Consumed) > 2 {
			continue
		}
		if h.rng.IntN(6) == 0 && !h.bulk[e.Execution] {
			b.Forwarded = append(b.Forwarded, engine.Forward{Entry: e.ID, Partition: h.rng.IntN(partitions)})
			continue
		}
		b.Consumed = append(b.Consumed, e.ID)
		if h.rng.IntN(8) == 0 {
			b.Poison = append(b.Poison, engine.Poison{Entry: e.ID, Kind: "InboxPage"})
		}
		if e.Kind.Triggers() {
			d := h.twin.definition(e.Job, 0)
			h.insert(b, p, d, job.Execution{ID: e.Execution, Trigger: job.TriggerRequest, PlannedAt: e.Request.At, RequestKey: e.Request.Key, Params: e.Request.Params})
		}
	}
}

// planOne makes an execution of a job for an instant, unless it is there.
func (h *history) planOne(b *engine.Batch, p int) {
	jobs := h.jobsOf(p)
	if len(jobs) == 0 || h.rng.IntN(3) > 0 {
		return
	}
	d := pick(h, jobs)
	at := h.instant()
	id := job.PlannedID(d.UID, at)
	if _, there := h.twin.find(id); there {
		return
	}
	h.insert(b, p, &d, job.Execution{ID: id, Trigger: job.TriggerSchedule, PlannedAt: at, Params: d.Spec.Params})
}

// planAlike makes some executions of a job that begin alike: each granted at once, or each in line for what a request asked.
func (h *history) planAlike(b *engine.Batch, p int) {
	jobs := slices.DeleteFunc(h.jobsOf(p), func(d job.Definition) bool { return d.Spec.ShardTotal() != 1 })
	if len(jobs) == 0 || h.rng.IntN(4) > 0 {
		return
	}
	d := pick(h, jobs)
	trigger, state, shard := job.TriggerBackfill, job.ExecutionRunning, job.ShardLeased
	if h.rng.IntN(2) == 0 {
		trigger, state, shard = job.TriggerRequest, job.ExecutionQueued, job.ShardQueued
	}
	for range 2 + h.rng.IntN(4) {
		at := h.instant()
		e := job.Execution{ID: h.newID(at), Partition: p, Namespace: d.Namespace, Job: d.Name, JobUID: d.UID, Revision: d.Revision, Pool: d.Spec.Pool, Handler: d.Spec.Handler,
			Trigger: trigger, PlannedAt: at, CreatedAt: h.clock, StartedAt: h.clock, ShardTotal: 1, State: state}
		s := job.Shard{Execution: e.ID}
		h.colour(&s)
		s.State = shard
		b.Executions, b.Shards = append(b.Executions, engine.ExecutionWrite{Row: e}), append(b.Shards, engine.ShardWrite{Row: s})
	}
}

// grantAlike grants some of what waits in line with its shard.
func (h *history) grantAlike(b *engine.Batch, p int) {
	if h.rng.IntN(3) > 0 {
		return
	}
	for _, e := range ordered(h.twin.live, byID) {
		shards := h.twin.shardsOf(e.ID)
		if e.Partition != p || e.State != job.ExecutionQueued || len(shards) != 1 || shards[0].State != job.ShardQueued || h.rng.IntN(3) == 0 ||
			slices.ContainsFunc(b.Executions, func(w engine.ExecutionWrite) bool { return w.Row.ID == e.ID }) ||
			slices.ContainsFunc(b.Shards, func(w engine.ShardWrite) bool { return w.Row.Execution == e.ID }) {
			continue
		}
		e.State, e.Reason, e.StartedAt = job.ExecutionRunning, job.ReasonNone, h.clock
		s := shards[0]
		h.colour(&s)
		s.State = job.ShardLeased
		b.Executions = append(b.Executions, engine.ExecutionWrite{From: job.ExecutionQueued, Row: e})
		b.Shards = append(b.Shards, engine.ShardWrite{From: job.ShardQueued, Row: s, Total: h.said(s)})
	}
}

// jobsOf lists a partition's jobs, newest revision.
func (h *history) jobsOf(p int) []job.Definition {
	var all []job.Definition
	for _, j := range h.twin.jobs {
		if j.partition == p {
			all = append(all, j.revisions[len(j.revisions)-1])
		}
	}
	slices.SortFunc(all, func(a, b job.Definition) int { return slices.Compare(a.UID[:], b.UID[:]) })
	return all
}

func (h *history) insert(b *engine.Batch, p int, d *job.Definition, e job.Execution) {
	e.Partition, e.Namespace, e.Job, e.JobUID, e.Revision = p, d.Namespace, d.Name, d.UID, d.Revision
	e.Pool, e.Handler, e.CreatedAt, e.ShardTotal = d.Spec.Pool, d.Spec.Handler, h.clock, d.Spec.ShardTotal()
	e.State = pick(h, []job.ExecutionState{job.ExecutionScheduled, job.ExecutionQueued, job.ExecutionQueued, job.ExecutionRunning})
	e.Reason = pick(h, []job.Reason{"", "", job.WaitDelay, job.WaitOverlap, job.WaitReplace, job.ReasonOverlapTurn, job.ReasonOverlapFree})
	if e.State == job.ExecutionScheduled && h.rng.IntN(2) == 0 {
		e.Reason = job.WaitUpstream
	}
	if h.rng.IntN(3) == 0 {
		b.Matched = append(b.Matched, engine.Matched{Execution: e.ID, Parents: []job.Parent{{Job: "job-1", Execution: e.ID, State: job.ExecutionFailed, Round: h.rng.IntN(2), PlannedAt: h.instant()}}})
	}
	b.Executions = append(b.Executions, engine.ExecutionWrite{Row: e})
	for i := range e.ShardTotal {
		s := job.Shard{Execution: e.ID, Index: i, State: pick(h, []job.ShardState{job.ShardQueued, job.ShardLeased})}
		h.colour(&s)
		b.Shards = append(b.Shards, engine.ShardWrite{Row: s})
	}
}

// colour fills a shard with whatever its columns can hold.
func (h *history) colour(s *job.Shard) {
	s.Reason, s.Worker, s.Session = job.Reason(h.text()), h.text(), job.SessionID(h.text())
	s.Token, s.Attempt, s.Faults, s.Losses = job.Token(h.rng.Int64N(1<<53)), h.rng.IntN(9), h.rng.IntN(9), h.rng.IntN(9)
	s.Closed, s.Confirmed = h.rng.IntN(2) == 0, h.rng.IntN(2) == 0
	s.LeasedAt, s.StartedAt, s.EndedAt, s.TimeoutAt, s.RetryAt, s.StopBy = h.instant(), h.instant(), h.instant(), h.instant(), h.instant(), h.instant()
	s.ReportSeq, s.CheckpointSeq = h.rng.Int64N(1<<40), h.rng.Int64N(1<<40)
	s.Checkpoint, s.Result = h.json(), h.json()
	if h.rng.IntN(8) == 0 {
		s.Checkpoint = largeJSON
	}
	s.Progress = job.Progress{Done: h.rng.Int64N(99), Total: h.rng.Int64N(99), Note: h.text()}
	s.Error, s.Attempts = nil, nil
	if h.rng.IntN(3) == 0 {
		s.Error = &job.Failure{Class: h.text(), Message: h.text() + "<&>"}
	}
	for n := range h.rng.IntN(3) {
		s.Attempts = append(s.Attempts, job.Attempt{Number: n + 1, Token: s.Token, Worker: h.text(), State: job.AttemptLost,
			Reason: job.ReasonLeaseExpired, ResumedFrom: int64(n), StartedAt: h.instant(), EndedAt: h.instant(), Error: s.Error})
	}
}

// advance moves live executions and their shards along the table.
func (h *history) advance(b *engine.Batch, p int) {
	for _, e := range ordered(h.twin.live, byID) {
		if e.Partition != p || h.rng.IntN(6) != 0 || len(b.Shards) > 10 {
			continue
		}
		from := e.State
		if h.rng.IntN(4) > 0 {
			e.State = pick(h, slices.DeleteFunc(slices.Clone(executionStates), func(s job.ExecutionState) bool { return !from.CanBecome(s) }))
			e.Reason, e.Cancel = job.Reason(h.text()), job.Reason(h.text())
			e.StartedAt, e.EndedAt = h.instant(), h.instant()
			if from == job.ExecutionScheduled {
				e.PlannedAt = h.instant()
			}
			b.Executions = append(b.Executions, h.send(engine.ExecutionWrite{From: from, Row: e}))
		}
		for _, s := range h.twin.shardsOf(e.ID) {
			if h.rng.IntN(3) == 0 {
				continue
			}
			h.moveShard(b, s)
		}
	}
}

// send gives some of what waits to any partition.
func (h *history) send(w engine.ExecutionWrite) engine.ExecutionWrite {
	if w.Row.State == job.ExecutionScheduled && h.rng.IntN(2) == 0 {
		w.Sent, w.Row.Reason, w.Row.Pool, w.Row.Partition = true, job.WaitMove, h.text(), h.rng.IntN(partitions)
	}
	return w
}

// moveShard writes a shard in a next state, or with other values in the same one.
func (h *history) moveShard(b *engine.Batch, s job.Shard) {
	from := s.State
	next := slices.DeleteFunc(slices.Clone(shardStates), func(to job.ShardState) bool { return !from.CanBecome(to) })
	if len(next) > 0 && h.rng.IntN(4) > 0 {
		s.State = pick(h, next)
	}
	h.colour(&s)
	b.Shards = append(b.Shards, engine.ShardWrite{From: from, Row: s, Total: h.said(s)})
}

// said is the number of shards of an execution, or that it is not said.
func (h *history) said(s job.Shard) int { return len(h.twin.shardsOf(s.Execution)) * h.rng.IntN(2) }

// rerun brings an ended execution back, with some of its shards.
func (h *history) rerun(b *engine.Batch, p int) {
	if h.rng.IntN(3) > 0 {
		return
	}
	ended := slices.DeleteFunc(ordered(h.twin.history, byID), func(e job.Execution) bool { return e.Partition != p || e.State == job.ExecutionSucceeded })
	if len(ended) == 0 {
		return
	}
	e := pick(h, ended)
	from := e.State
	e.State, e.Round, e.Reason, e.EndedAt = pick(h, []job.ExecutionState{job.ExecutionQueued, job.ExecutionScheduled}), e.Round+1, job.ReasonRerun, 0
	b.Executions = append(b.Executions, h.send(engine.ExecutionWrite{From: from, Row: e}))
	for _, s := range h.twin.shardsOf(e.ID) {
		if s.State.CanBecome(job.ShardQueued) && h.rng.IntN(2) == 0 {
			was := s.State
			s.State = job.ShardQueued
			b.Shards = append(b.Shards, engine.ShardWrite{From: was, Row: s})
		}
	}
}

// plannedBy lists the jobs that a partition plans, deleted ones left out, newest revision.
func (h *history) plannedBy(p int) []job.Definition {
	return slices.DeleteFunc(slices.Concat(h.jobsOf(0), h.jobsOf(1)), func(d job.Definition) bool { return h.twin.planner(d.UID) != p })
}

// bookkeeping adds cursors, decisions, sessions, poison and facts.
func (h *history) bookkeeping(b *engine.Batch, p int) {
	if jobs := h.plannedBy(p); len(jobs) > 0 {
		d := pick(h, jobs)
		c := job.Cursor{Job: d.UID, Schedule: pick(h, []string{"main", "night", ""}), Revision: d.Revision, Last: h.instant()}
		switch h.rng.IntN(5) {
		case 0:
			b.DropCursors = append(b.DropCursors, c)
		case 1: // without a next instant
			b.Cursors = append(b.Cursors, c)
		case 2, 3:
			c.Next = h.instant() / 100 * 100 // so that many are due together
			c.Held = h.instant() * job.Instant(h.rng.IntN(2))
			c.Owed, c.OwedTo, c.Runs, c.Failures = h.instant()*job.Instant(h.rng.IntN(2)), h.instant(), h.rng.Int64N(9), h.rng.IntN(9)
			if c.Owed != 0 && c.Runs%3 == 0 {
				c.Owe(job.InstantRange{From: c.OwedTo + 7, To: noon * 2})
			}
			b.Cursors = append(b.Cursors, c)
		case 4:
			if b.Handovers = []engine.Handover{{Job: d.UID, Partition: h.rng.IntN(partitions)}}; len(h.twin.cursorsOf(d.UID)) == 0 {
				b.Cursors = append(b.Cursors, c)
			}
		}
		if h.rng.IntN(3) == 0 {
			b.Streaks = append(b.Streaks, engine.Streak{Job: d.UID, Reset: h.rng.IntN(2) == 0, Most: h.rng.IntN(6), Failed: h.rng.IntN(3)})
		}
		if h.rng.IntN(3) == 0 {
			b.Decisions = append(b.Decisions, job.Decision{Job: d.UID, Namespace: d.Namespace, Name: d.Name, Schedule: c.Schedule,
				Kind: job.DecisionMissed, Reason: job.ReasonMissedDown, From: h.instant(), To: h.instant(), Count: h.rng.Int64N(1 << 40), At: b.At})
		}
	}
	worker := fmt.Sprintf("w%d", h.rng.IntN(5))
	id := job.SessionIDOf(p, "a", "pool", worker, "1")
	switch h.rng.IntN(6) {
	case 0:
		b.EndSessions = append(b.EndSessions, id)
	case 1, 2:
		s := job.Session{ID: id, Partition: p, Namespace: "a", Pool: "pool", Worker: worker, Incarnation: "1", Slots: h.rng.IntN(99),
			Build: h.text(), TTL: 15 * time.Second, Beat: 3 * time.Second, Margin: 1500 * time.Millisecond, OpenedAt: h.instant(), Unheard: h.rng.IntN(4)}
		if h.rng.IntN(2) == 0 {
			s.Handlers, s.Labels = []string{"noop", h.text()}, map[string]string{"zone": h.text(), h.text(): "v"}
		}
		b.Sessions = append(b.Sessions, s)
	}
	if h.rng.IntN(20) == 0 {
		b.Poison = append(b.Poison, engine.Poison{Entry: 3, Kind: "Report", Event: json.RawMessage("{\"bad\":\"\xff\"}"), Error: "nul \x00"})
	}
	for range h.rng.IntN(3) {
		b.Facts = append(b.Facts, engine.Fact{Kind: engine.FactStarted, Worker: h.text(), Token: b.LastToken, PlannedAt: h.instant()})
	}
}
