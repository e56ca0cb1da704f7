package engine_test

import (
	"fmt"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// checker watches every step of a world. It believes nothing that the engine says of itself where the
// rows or the holders can be asked.
type checker struct {
	w      *world
	off    bool // mutants of other parts
	shards map[shardKey]*watched
	tokens map[job.Token]*watchedLease
	newest job.Token
	latest job.Instant                     // that the engines' wall clock has shown
	due    map[job.ExecutionID]job.Instant // of those that wait for it
	execs  map[job.ExecutionID]string
	steps  int
}

type shardKey struct {
	exec  job.ExecutionID
	index int
}

func (k shardKey) String() string { return fmt.Sprintf("%s/%d", k.exec, k.index) }

type watched struct {
	state      string
	open       *watchedLease
	checkpoint int64
	successes  int
	leases     []*watchedLease
}

// watchedLease is a lease as the journal tells it, and as its holder knows it.
type watchedLease struct {
	key     shardKey
	token   job.Token
	renewed time.Duration // when the judge last moved its end
	ttl     time.Duration
	step    int

	holds bool          // the holder works on it …
	until time.Duration // … and stops here by itself: before this instant, it is exclusive
}

func newChecker(w *world) *checker {
	return &checker{w: w, shards: map[shardKey]*watched{}, tokens: map[job.Token]*watchedLease{},
		execs: map[job.ExecutionID]string{}, due: map[job.ExecutionID]job.Instant{}}
}

func (c *checker) shard(k shardKey) *watched {
	if c.shards[k] == nil {
		c.shards[k] = &watched{}
	}
	return c.shards[k]
}

// step checks the facts of a step, then the rows that it left behind.
func (c *checker) step(r *engine.Result) error {
	if c.off {
		return nil
	}
	c.steps++
	c.latest = max(c.latest, c.w.now().Wall)
	for _, facts := range [][]engine.Fact{r.Trace, r.Batch.Facts} {
		for i := range facts {
			if err := c.fact(&facts[i]); err != nil {
				return fmt.Errorf("t=%v: %w", c.w.mono, err)
			}
		}
	}
	return c.rows(r)
}

func (c *checker) fact(f *engine.Fact) error {
	k := shardKey{f.Execution, f.Shard}
	switch f.Kind {
	case engine.FactExecutionCreated:
		if c.execs[k.exec] != "" {
			return fmt.Errorf("execution %s is created twice", k.exec)
		}
		c.execs[k.exec] = f.To
		if f.Reason == job.WaitDelay {
			c.due[k.exec] = f.PlannedAt
		}
	case engine.FactRerun:
		delete(c.due, k.exec) // a person wants it now
	case engine.FactRescheduled:
		c.due[k.exec] = f.PlannedAt
	case engine.FactArrived:
		c.execs[k.exec] = f.To
		for key, s := range c.shards {
			if key.exec == k.exec {
				s.state = "" // it may have been here before
			}
		}
	case engine.FactExecutionState:
		if f.From == f.To && c.execs[k.exec] == f.From && f.From == string(job.ExecutionScheduled) && f.Reason != "" {
			break // it waits for something else now
		}
		if c.execs[k.exec] != f.From || !job.ExecutionState(f.From).CanBecome(job.ExecutionState(f.To)) {
			return fmt.Errorf("execution %s goes %s → %s from %s", k.exec, f.From, f.To, c.execs[k.exec])
		}
		c.execs[k.exec] = f.To
	case engine.FactShardState:
		s := c.shard(k)
		if s.state != f.From && s.state != "" || !job.ShardState(f.From).CanBecome(job.ShardState(f.To)) {
			return fmt.Errorf("shard %v goes %s → %s from %s", k, f.From, f.To, s.state)
		}
		s.state = f.To
		if f.To == string(job.ShardSucceeded) {
			if s.successes++; s.successes > 1 {
				return fmt.Errorf("shard %v succeeds twice", k)
			}
		}
	case engine.FactUnexplained:
		return fmt.Errorf("R5: %d planned instants of %s are unexplained, from %s", f.Count, f.Job, f.PlannedAt)
	case engine.FactLeaseGranted:
		return c.granted(f)
	default:
		return c.leaseFact(f, k)
	}
	return nil
}

// leaseFact: renewals, ends, checkpoints and results belong to the newest lease.
func (c *checker) leaseFact(f *engine.Fact, k shardKey) error {
	switch f.Kind {
	case engine.FactLeaseRenewed:
		if l := c.tokens[f.Token]; l != nil {
			if c.shard(l.key).open != l {
				return fmt.Errorf("token %d is renewed after its lease was over", f.Token)
			}
			l.renewed = c.w.mono
		}
	case engine.FactLeaseEnded, engine.FactLeaseExpired:
		l := c.tokens[f.Token]
		if l == nil || c.shard(k).open != l {
			return fmt.Errorf("lease %d of %v is over twice", f.Token, k)
		}
		if f.Kind == engine.FactLeaseExpired && c.w.mono < l.renewed+l.ttl {
			return fmt.Errorf("lease %d of %v expires at %v although it was renewed at %v", f.Token, k, c.w.mono, l.renewed)
		}
		c.shard(k).open = nil
	case engine.FactCheckpoint:
		s := c.shard(k)
		if f.Checkpoint <= s.checkpoint {
			return fmt.Errorf("checkpoint of %v goes from %d to %d", k, s.checkpoint, f.Checkpoint)
		}
		if n := s.leases[len(s.leases)-1].token; f.Token != n {
			return fmt.Errorf("checkpoint of %v under token %d although %d is newer", k, f.Token, n)
		}
		s.checkpoint = f.Checkpoint
	case engine.FactResult:
		s := c.shard(k)
		if n := s.leases[len(s.leases)-1].token; f.Token != n {
			return fmt.Errorf("result of %v under token %d although %d is newer", k, f.Token, n)
		}
	}
	return nil
}

// granted: one live lease per shard, in the judge's book and in every holder's mind; tokens rise.
func (c *checker) granted(f *engine.Fact) error {
	if due := c.due[f.Execution]; due > c.latest {
		return fmt.Errorf("execution %s starts at %d, %v before its instant", f.Execution, c.latest, due.Sub(c.latest))
	}
	s := c.shard(shardKey{f.Execution, f.Shard})
	if f.Token <= c.newest {
		return fmt.Errorf("token %d of %s/%d does not rise above %d", f.Token, f.Execution, f.Shard, c.newest)
	}
	c.newest = f.Token
	if s.open != nil {
		return fmt.Errorf("token %d is granted while lease %d of the same shard is open", f.Token, s.open.token)
	}
	for _, l := range s.leases {
		if l.holds && c.w.mono < l.until {
			return fmt.Errorf("two holders: token %d is granted at %v while the holder of token %d works until %v", f.Token, c.w.mono, l.token, l.until)
		}
	}
	if f.Checkpoint != s.checkpoint {
		return fmt.Errorf("token %d begins from checkpoint %d, the newest is %d", f.Token, f.Checkpoint, s.checkpoint)
	}
	l := &watchedLease{key: shardKey{f.Execution, f.Shard}, token: f.Token, ttl: c.w.cfg.LeaseTTL, step: c.steps}
	s.open, s.leases = l, append(s.leases, l)
	c.tokens[f.Token] = l
	return nil
}

// rows: slots, ended executions, and that a shard's row names a holder only while its lease is open.
func (c *checker) rows(r *engine.Result) error {
	held := map[job.SessionID]int{}
	for id, rec := range c.w.db.live {
		for i := range rec.shards {
			s := &rec.shards[i]
			if s.Session != "" {
				held[s.Session]++
			}
			if open := c.shard(shardKey{id, i}).open; (s.Session != "") != (open != nil) {
				return fmt.Errorf("t=%v: shard %s/%d: its row says holder %q, the journal says %v", c.w.mono, id, i, s.Session, open)
			}
		}
	}
	for id, n := range held {
		if s, known := c.w.db.sessions[id]; known && n > s.Slots {
			return fmt.Errorf("t=%v: session of %s holds %d of %d slots", c.w.mono, s.Worker, n, s.Slots)
		}
	}
	for i := range r.Batch.Executions {
		id := r.Batch.Executions[i].Row.ID
		if rec := c.w.db.history[id]; rec != nil {
			for j := range rec.shards {
				if s := &rec.shards[j]; s.Session != "" || !s.State.Ended() {
					return fmt.Errorf("t=%v: execution %s has ended, its shard %d is %s with holder %q", c.w.mono, id, j, s.State, s.Session)
				}
			}
		}
	}
	return nil
}

// reported: only the newest token of a shard writes.
func (c *checker) reported(items []engine.ReportItem, answer any) error {
	rep, ok := answer.(*engine.Reported)
	if !ok {
		return nil
	}
	for i, it := range items {
		leases := c.shard(shardKey{it.Execution, it.Shard}).leases
		if n := len(leases); n > 0 && leases[n-1].step == c.steps {
			leases = leases[:n-1] // granted after the reports of this step were taken in
		}
		if rep.Items[i] == engine.ItemAccepted && (len(leases) == 0 || leases[len(leases)-1].token != it.Token) {
			return fmt.Errorf("t=%v: %s under token %d is accepted although a newer one was granted", c.w.mono, it.Kind, it.Token)
		}
	}
	return nil
}

// forget: the database was set back. What the holders do, and the tokens they have seen, it can not undo.
func (c *checker) forget() {
	c.execs = map[job.ExecutionID]string{}
	for _, s := range c.shards {
		*s = watched{leases: s.leases}
	}
}

// received is called by a worker that has taken an assignment or a renewal in: it works until then.
func (c *checker) received(t job.Token, until time.Duration) {
	if l := c.tokens[t]; l != nil {
		l.holds, l.until = true, max(l.until, until)
	}
}

// stopped is called by a worker when it works on t no more.
func (c *checker) stopped(t job.Token) {
	if l := c.tokens[t]; l != nil {
		l.holds = false
	}
}
