package engine

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// unheardMax is how many owners in a row may hear nothing from a session before it is dead (R7). An owner
// counts once it has listened for half a TTL: three of them are longer than the lease, while three that
// came and went at once (a database that refuses commits) prove nothing.
const unheardMax = 3

// load builds the memory from rows. Every lease gets a full TTL from now, and P more when another
// incarnation owned the partition before; planning and dispatch do not wait for that.
func (e *Engine) load(ev Loaded) {
	e.loaded = true
	e.soon.wheel = schedule.NewWheel[job.ExecutionID](int64(e.now.Wall))
	e.seq = ev.Seq
	e.pages.off = e.cfg.Switches.NoPageGuard
	e.token = max(ev.LastToken, job.Token(e.cfg.Epoch))
	if e.cfg.Switches.TokensFromZero {
		e.token = ev.LastToken
	}
	e.wallMoved = e.now.Mono
	e.due.debts.unread = ev.Owes
	e.pages.fresh, e.pages.others.left = true, true

	dead := map[job.SessionID]bool{}
	for _, row := range ev.Sessions {
		if row.Unfit != "" { // its worker opens another one
			e.fact(Fact{Kind: FactSetAside, Note: "session " + string(row.ID) + " is left out: " + row.Unfit})
			continue
		}
		if row.Unheard >= unheardMax {
			dead[row.ID] = true
		}
		s := e.addSession(row)
		s.unheardAt = e.now.Mono + s.TTL/2
	}
	e.loadExecutions(ev)
	for i := range ev.Backfills {
		in := &ev.Backfills[i]
		b := e.holdBackfill(in.Backfill, in.Definition)
		b.home = in.Home
		e.stopBackfill(b)
	}
	extra := e.cfg.OwnerTTL
	if !ev.Takeover {
		extra = 0
	}
	if !e.cfg.Switches.NoTakeoverGrace {
		e.deferVerdicts(extra)
	}
	for _, id := range slices.Sorted(maps.Keys(dead)) {
		e.bury(e.sessions[id])
	}
	for _, id := range slices.Sorted(maps.Keys(e.sessions)) {
		s := e.sessions[id]
		for _, token := range sortedTokens(s.held) {
			e.arm(s.held[token])
		}
		e.arm(s)
	}
}

func (e *Engine) loadExecutions(ev Loaded) {
	for _, a := range ev.LeftOut {
		e.leaveOut(a, "", "the engine failed at it again and again")
	}
	for i := range ev.Executions {
		row := ev.Executions[i]
		if e.at(row.Execution.ID); !e.usable(&row) {
			continue
		}
		x := e.hold(row)
		for _, s := range x.shards {
			e.resume(s)
		}
		if x.def.Spec.Obeys(x.row.Trigger) {
			e.turns.run(x.row.JobUID, x.row.ID)
		}
	}
	e.loadTurns(ev.Waiting)
	e.about = About{}
}

// resume takes up the lease and the timers of a shard where its row left them. Stored instants load as
// remaining time, at most their full length.
func (e *Engine) resume(s *shard) {
	spec := &s.exec.def.Spec
	switch s.State {
	case job.ShardQueued:
		e.enqueue(s)
	case job.ShardRetryWait:
		var full time.Duration // the wait began when the attempt ended
		if a := s.attempt(); a != nil {
			full = max(s.RetryAt.Sub(a.EndedAt), 0)
		}
		s.retryAt = max(e.mono(s.RetryAt, full), 1)
	case job.ShardStopping:
		s.stopBy = max(e.mono(s.StopBy, spec.StopGrace()), 1)
	}
	if s.Session == "" {
		e.arm(s)
		return
	}
	sess := e.sessions[s.Session]
	if sess == nil {
		// The session's row is gone although the lease is open: wait as for a silent one.
		sess = e.addSession(job.Session{ID: s.Session, Partition: e.cfg.Partition, Namespace: s.exec.row.Namespace,
			Pool: s.exec.row.Pool, Worker: s.Worker, TTL: e.cfg.LeaseTTL, Beat: e.cfg.Beat, Margin: e.cfg.Margin})
	}
	s.sess = sess
	sess.held[s.Token] = s
	s.deadline = e.now.Mono
	if !e.cfg.Switches.NoTakeoverGrace {
		s.deadline += sess.TTL
	}
	if s.TimeoutAt != 0 && !s.Closed {
		s.timeoutAt = max(e.mono(s.TimeoutAt, spec.Timeout.Attempt), 1)
	}
	e.progressed(s)
}

// bury ends a session that nobody has heard for three owners in a row, and its leases with it.
func (e *Engine) bury(s *session) {
	for _, token := range sortedTokens(s.held) {
		e.expire(s.held[token])
	}
	e.endSession(s, job.ReasonLeaseExpired)
}

func sortIDs(ids []job.ExecutionID) {
	slices.SortFunc(ids, compareIDs)
}

func sortedCursors[K comparable](m map[K]job.Cursor) []job.Cursor {
	return slices.SortedFunc(maps.Values(m), func(a, b job.Cursor) int {
		return cmp.Or(bytes.Compare(a.Job[:], b.Job[:]), cmp.Compare(a.Schedule, b.Schedule))
	})
}
