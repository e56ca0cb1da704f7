package drill_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// storm plays a script drawn from a seed on a cluster: triggers, cancels, reruns, cut and killed workers,
// spoiled calls, failing commits, a server that dies. All draws of the script are made by one goroutine;
// what happens inside calls and commits is drawn by their names and numbers.
type storm struct {
	c    *cluster
	dice *rand.Rand

	asks sync.WaitGroup // calls of people and timers of the storm

	mu    sync.Mutex
	acked map[string]string // request key → execution
	ids   []string          // in the order of their keys' first answer
	keys  int
	names int
}

const stormWorkers = 3

// play lets the storm rage for d, then heals everything and waits until all has ended.
func (s *storm) play(d time.Duration) {
	s.rage(d)
	s.calm()
}

func (s *storm) rage(d time.Duration) {
	s.c.start()
	s.jobs()
	for range stormWorkers {
		s.newcomer()
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Second + time.Duration(s.dice.Int64N(int64(9*time.Second))))
		s.act()
	}
}

func (s *storm) calm() {
	c := s.c
	c.server.st.setRule(nil)
	for _, m := range s.c.members() {
		m.link.Rule(nil)
		m.link.Heal()
	}
	s.asks.Wait()
	c.server.st.setRule(nil)
	c.settled(20 * time.Minute)
	c.healed = time.Now()
}

func (s *storm) jobs() {
	raw := func(w work) json.RawMessage {
		b, err := json.Marshal(w)
		if err != nil {
			s.c.t.Fatal(err)
		}
		return b
	}
	quick := &takt.RetrySpec{MaxAttempts: 4, Backoff: &takt.BackoffSpec{Initial: takt.Duration(2 * time.Second), Jitter: "none"}}
	s.c.put("many", takt.JobSpec{Pool: "p", Handler: "work", Shards: &takt.ShardsSpec{Count: 8}, Retry: quick,
		Params: raw(work{Steps: 6, StepMs: 900, Checkpoint: 2, FailIn1000: 100})})
	s.c.put("one", takt.JobSpec{Pool: "p", Handler: "work", Retry: quick, Params: raw(work{Steps: 1, StepMs: 50})})
	s.c.put("timed", takt.JobSpec{Pool: "p", Handler: "work", Shards: &takt.ShardsSpec{Count: 2}, Retry: quick,
		Timeout: &takt.TimeoutSpec{Attempt: takt.Duration(7 * time.Second), Stall: takt.Duration(3 * time.Second), Grace: takt.Duration(2 * time.Second)},
		Params:  raw(work{Steps: 3, StepMs: 2500, Checkpoint: 1, Deaf: true})})
	s.c.promise("tick", takt.JobSpec{Pool: "p", Handler: "work", Schedule: &takt.ScheduleSpec{Every: takt.Duration(7 * time.Second)}, Retry: quick,
		Params: raw(work{Steps: 1, StepMs: 300})})
	s.c.promise("cron", takt.JobSpec{Pool: "p", Handler: "work", Schedule: &takt.ScheduleSpec{Cron: "*/20 * * * * *"}, Retry: quick,
		Params: raw(work{Steps: 1, StepMs: 200})})
}

func (s *storm) newcomer() {
	s.names++
	s.c.join(fmt.Sprintf("w%d", s.names), 6)
}

func (s *storm) anyone() *member {
	all := s.c.members()
	return all[s.dice.IntN(len(all))]
}

// act does one thing.
func (s *storm) act() {
	switch n := s.dice.IntN(100); {
	case n < 40:
		s.trigger()
	case n < 47:
		s.ask("cancel")
	case n < 52:
		s.ask("rerun")
	case n < 62:
		m, d := s.anyone(), s.upTo(25*time.Second)
		m.link.Cut()
		s.later(d, m.link.Heal)
	case n < 68:
		s.anyone().kill()
		s.newcomer()
	case n < 82:
		s.spoil(s.anyone())
	case n < 92:
		s.shake()
	default:
		s.restart()
	}
}

func (s *storm) upTo(d time.Duration) time.Duration { return time.Duration(s.dice.Int64N(int64(d))) }

// later does something after d, unless the cluster ends first.
func (s *storm) later(d time.Duration, do func()) {
	s.asks.Go(func() {
		time.Sleep(d)
		do()
	})
}

// trigger asks for an execution, now and then twice with the same key.
func (s *storm) trigger() {
	s.keys++
	name, key := []string{"many", "one", "timed"}[s.dice.IntN(3)], fmt.Sprintf("k%d", s.keys)
	times := 1 + s.dice.IntN(2)*s.dice.IntN(2)
	for i := range times {
		gap := time.Duration(i)*37*time.Millisecond + s.upTo(time.Millisecond)
		s.asks.Go(func() {
			time.Sleep(gap)
			client, link := s.c.asker(fmt.Sprintf("%s.%d", key, i))
			defer link.Close()
			if r, err := client.Trigger(s.c.t.Context(), name, takt.TriggerOptions{IdempotencyKey: key}); err == nil {
				s.ack(key, r.Execution)
			}
		})
	}
}

func (s *storm) ack(key, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, again := s.acked[key]; again && was != id {
		s.c.t.Errorf("key %s led to %s and to %s", key, was, id)
	}
	if s.acked[key] == "" {
		s.ids = append(s.ids, id)
	}
	s.acked[key] = id
}

func (s *storm) ask(what string) {
	s.mu.Lock()
	ids := slices.Clone(s.ids)
	s.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	id := ids[max(0, len(ids)-1-s.dice.IntN(4))]
	s.keys++
	client, link := s.c.asker(fmt.Sprintf("ask%d", s.keys))
	s.asks.Go(func() {
		defer link.Close()
		// An error means that it is not known whether the request counts: the checker judges what does.
		if what == "cancel" {
			_, _ = client.Cancel(s.c.t.Context(), id, "")
		} else {
			_, _ = client.Rerun(s.c.t.Context(), id, "")
		}
	})
}

// spoil makes a worker's calls go wrong for a while.
func (s *storm) spoil(m *member) {
	often := uint64(50 + s.dice.IntN(300))
	m.link.Rule(func(c drill.Call) drill.Verdict {
		d := drill.Draw(s.c.seed, "spoil", c.Worker, c.Name, strconv.Itoa(c.N))
		if d%1000 >= often {
			return drill.Verdict{}
		}
		delay := time.Duration(d / 1000 % uint64(3*time.Second))
		switch d / 7919 % 5 {
		case 0:
			return drill.Verdict{Fault: drill.RequestLost}
		case 1:
			return drill.Verdict{Fault: drill.AnswerLost}
		case 2:
			return drill.Verdict{Fault: drill.Doubled, Delay: delay}
		case 3:
			return drill.Verdict{Fault: drill.Late, Delay: 10 * delay}
		default:
			return drill.Verdict{Fault: drill.Slow, Delay: delay}
		}
	})
	s.later(5*time.Second+s.upTo(25*time.Second), func() { m.link.Rule(nil) })
}

// shake makes the server's commits fail for a while.
func (s *storm) shake() {
	if s.c.server == nil {
		return
	}
	st, life, often := s.c.server.st, s.c.lives, uint64(20+s.dice.IntN(400))
	st.setRule(func(n string, _ *engine.Batch) commitFault {
		d := drill.Draw(s.c.seed, "shake", strconv.Itoa(life), n)
		if d%1000 >= often {
			return ""
		}
		fault := []commitFault{commitFails, commitLost, commitLanded, commitLater}[d/1000%4]
		if fault == commitLater {
			s.later(time.Duration(d/7919%uint64(2*time.Second)), func() {
				if st.waiting() > 0 {
					_ = st.land() // refused by the fence, or just in time: both are right
				}
			})
		}
		return fault
	})
	s.later(time.Second+s.upTo(15*time.Second), func() { st.setRule(nil) })
}

// restart ends the server, in one way or the other, and starts it again.
func (s *storm) restart() {
	// A graceful end takes a time that net/http draws by itself: begin again at a drawn instant after it.
	again := time.Now().Add(6*time.Second + s.upTo(6*time.Second))
	if s.c.server != nil {
		s.c.end(s.dice.IntN(3) > 0)
	}
	time.Sleep(time.Until(again))
	s.c.start()
}

// checkEnds looks at what the invariants do not: every acknowledged trigger has its execution, every
// success has its effects, and every planned instant its execution or decision.
func (s *storm) checkEnds(h *drill.History) {
	t := s.c.t
	byID := map[string]job.Execution{}
	ticks := map[job.Instant]bool{}
	for _, x := range h.Executions {
		byID[x.ID.String()] = x
		if x.Job == "tick" {
			ticks[x.PlannedAt] = true
		}
	}
	for _, e := range h.Events {
		for at := e.PlannedAt; e.Kind == engine.FactDecided && e.Job == "default/tick" && at <= e.Until; at = at.Add(7 * time.Second) {
			ticks[at] = true
		}
	}
	for key, id := range s.acked {
		if x, there := byID[id]; !there || !x.State.Ended() {
			t.Errorf("trigger %s was acknowledged as %s, which is %q", key, id, x.State)
		}
	}
	effects := map[string]map[int]bool{}
	for _, e := range h.Effects {
		if effects[e.Execution] == nil {
			effects[e.Execution] = map[int]bool{}
		}
		effects[e.Execution][e.Shard] = true
	}
	for id, x := range byID {
		if x.State == job.ExecutionSucceeded && len(effects[id]) != x.ShardTotal {
			t.Errorf("%s succeeded with effects of %d of %d shards", id, len(effects[id]), x.ShardTotal)
		}
	}
	s.c.keptPromises(h)
	planned := slices.Sorted(maps.Keys(ticks))
	for i := 1; i < len(planned); i++ {
		if gap := planned[i].Sub(planned[i-1]); gap != 7*time.Second {
			t.Errorf("neither a tick nor a decision between %s and %s", planned[i-1], planned[i])
		}
	}
	if len(planned) < 60 {
		t.Errorf("%d ticks in ten minutes", len(planned))
	}
}
