package engine_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// pair is a world with two parents a and b that are due together, and a child c that runs after both.
type pair struct {
	*testing.T
	*world
}

func newPair(t *testing.T, change func(c *job.Definition)) *pair {
	t.Helper()
	p := &pair{t, newWorld(engine.Default())}
	for i, name := range []string{"a", "b", "c"} {
		def := &job.Definition{UID: job.UID{15: byte(i + 1)}, Namespace: "default", Name: name, Revision: 1, CreatedAt: wallStart, UpdatedAt: wallStart}
		def.Spec.Pool, def.Spec.Handler = "p", "h"
		if name == "c" {
			def.Spec.After = []job.After{{Job: "a", On: job.OnFinished}, {Job: "b", On: job.OnFinished}}
			change(def)
		} else {
			def.Spec.Schedules = []job.Schedule{{ID: "x", Spec: schedule.Spec{Every: 10 * time.Second}}}
		}
		p.db.revisions[def.UID] = append(p.db.revisions[def.UID], def)
		p.db.post(engine.Entry{Kind: engine.EntryJobChanged, Job: def.UID})
	}
	p.must(p.load(false))
	p.until(11 * time.Second)
	return p
}

func (p *pair) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *pair) until(at time.Duration) {
	p.Helper()
	for ; p.mono < at; p.mono += 100 * time.Millisecond {
		p.want.Inbox = true
		p.must(p.settle())
	}
}

// end lets what stands in line of a and b end, in one commit.
func (p *pair) end() {
	p.Helper()
	for _, r := range p.db.ordered() {
		if r.row.Job != "c" {
			p.db.post(engine.Entry{Kind: engine.EntryCancel, Execution: r.row.ID})
		}
	}
	p.until(p.mono + 500*time.Millisecond)
}

// live is an execution of a job that has not ended.
func (p *pair) liveOf(name string) (id job.ExecutionID) {
	for _, r := range p.db.ordered() {
		if r.row.Job == name {
			id = r.row.ID
		}
	}
	return id
}

// judge wants one fate for each instant of c, and tells how many there are.
func (p *pair) judge(want int) {
	p.Helper()
	all := map[job.Instant][]string{}
	for _, d := range p.db.decisions {
		if d.Name == "c" {
			all[d.From] = append(all[d.From], string(d.Kind)+" "+string(d.Reason))
		}
	}
	for _, m := range []map[job.ExecutionID]*record{p.db.live, p.db.history} {
		for _, r := range m {
			if r.row.Job == "c" {
				all[r.row.PlannedAt] = append(all[r.row.PlannedAt], "execution "+string(r.row.State))
			}
		}
	}
	for at, fates := range all {
		if len(fates) != 1 {
			p.Errorf("R5: instant %s of c has %d fates: %q", instant(at), len(fates), fates)
		}
	}
	if len(all) != want {
		p.Errorf("%d instants of c have a fate, want %d: %v", len(all), want, all)
	}
}

func paused(c *job.Definition)    { c.Pause = &job.Pause{At: wallStart} }
func skipsBusy(c *job.Definition) { c.Spec.Overlap = &job.Overlap{Policy: job.OverlapSkip} }

// The ends of both parents are told by two entries: what is decided of a child that will not run is decided once.
func TestParentsThatEndTogether(t *testing.T) {
	p := newPair(t, paused)
	p.end()
	p.judge(1)

	p = newPair(t, skipsBusy)
	p.end() // of instant 10: c runs
	p.until(21 * time.Second)
	p.end() // of instant 20: c runs still
	p.judge(2)
}

// An entry about the end of a parent that comes once more finds its instant decided, though the child has room by now, also after a change of owner.
func TestEndToldTwice(t *testing.T) {
	for _, reload := range []bool{false, true} {
		p := newPair(t, skipsBusy)
		p.end() // of instant 10: c runs
		p.until(21 * time.Second)
		b, c := p.liveOf("b"), p.liveOf("c")
		p.end() // of instant 20: c runs still
		p.db.post(engine.Entry{Kind: engine.EntryCancel, Execution: c})
		p.until(p.mono + 500*time.Millisecond)
		if reload {
			p.must(p.load(true))
		}
		p.db.post(engine.Entry{Kind: engine.EntryParentEnded, Job: job.UID{15: 3}, Execution: b})
		p.until(p.mono + 500*time.Millisecond)
		p.judge(2)
	}
}

// A page about what an end leads to that was read before the decision is read again.
func TestPageOfAnEndTwice(t *testing.T) {
	p := newPair(t, func(c *job.Definition) { paused(c); c.Spec.After = c.Spec.After[:1] })
	a := p.liveOf("a")
	p.db.post(engine.Entry{Kind: engine.EntryCancel, Execution: a})
	p.until(p.mono + 100*time.Millisecond) // it has ended
	old := p.db.upstreamPage([]engine.UpstreamAsk{{Child: job.UID{15: 3}, Ended: a}})
	p.until(p.mono + 500*time.Millisecond)
	p.must(p.step(old))
	p.until(p.mono + 3*time.Second)
	p.judge(1)
}
