package engine_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// mailed puts a page on its way. In a wild town some are lost, and some come again later.
func (t *town) mailed(p int, l letter, faults bool) {
	if t.wild && faults {
		if t.chance(6) {
			return
		}
		if t.chance(25) {
			again := apart(reflect.ValueOf(&l.ev).Elem()).Interface().(engine.Event)
			t.mail[p] = append(t.mail[p], letter{at: l.at + time.Duration(t.r.IntN(5000))*time.Millisecond, ev: again})
		}
	}
	t.mail[p] = append(t.mail[p], l)
}

func (t *town) schedulesMost() int {
	if t.wild {
		return 5
	}
	return 2
}

// lateness is how late planning may be in the end: where pages hold little a read takes long, and a job with several schedules waits for all of it.
func (t *town) lateness() time.Duration {
	if t.wild {
		return 20 * time.Second
	}
	return 4 * time.Second
}

// TestMovesInWildTowns: pages are lost, doubled, late and out of order, and hold little; jobs have more schedules. No runner does that to
// an engine; but what it may do in less likely orders is among it.
func TestMovesInWildTowns(t *testing.T) {
	for kind, make := range map[string]func(uint64) *town{
		"plain":  func(seed uint64) *town { return newTown(seed, engine.Switches{}) },
		"serial": func(seed uint64) *town { w := newTown(seed, engine.Switches{}); w.serial = true; return w },
		"busy":   func(seed uint64) *town { return newBusyTown(seed, engine.Switches{}) },
		"family": func(seed uint64) *town { return newFamilyTown(seed, engine.Switches{}) },
	} {
		t.Run(kind, func(t *testing.T) {
			for _, seed := range someSeeds(max(*seedsFlag/4, 1), 10, 19, 25) {
				if *seedFlag != 0 {
					seed = *seedFlag
				}
				town := make(seed)
				town.wild = true
				for _, w := range town.worlds {
					w.cfg.PageSize = 1 + int(seed%3) //nolint:gosec // 0, 1 or 2
				}
				if err := town.play(3*time.Minute, 90*time.Second); err != nil {
					t.Fatalf("seed %d (go test ./internal/engine -run InWildTowns/%s -seed %d): %v", seed, kind, seed, err)
				}
			}
		})
	}
}

// TestMoveToldTwice: a job that owes moves while two entries about it wait. Its new planner takes the first in, and the second has to
// wait for the bound of a step: the mark of cursors that were handed over goes from all of them, and does not come back to some.
func TestMoveToldTwice(t *testing.T) {
	town := newTown(1, engine.Switches{})
	u := job.UID{15: 9}
	town.jobs = []*resident{{name: "a", steady: true, uid: u}}
	db := town.db()
	def := &job.Definition{UID: u, Namespace: "default", Name: "a", Revision: 1, CreatedAt: wallStart, UpdatedAt: wallStart}
	def.Spec.Pool, def.Spec.Handler, def.Spec.Misfire.Policy = "p@0", "h", job.MisfireAll
	for i, every := range []time.Duration{2 * time.Second, 5 * time.Second} {
		def.Spec.Schedules = append(def.Spec.Schedules, job.Schedule{ID: string(rune('x' + i)), Spec: schedule.Spec{Every: every}})
	}
	db.homes[u], db.revisions[u] = 0, []*job.Definition{def}
	db.post(engine.Entry{Kind: engine.EntryJobChanged, Job: u})
	town.worlds[1].cfg.CatchUpMax = 1
	for _, w := range town.worlds {
		mustDo(t, w.load(false))
	}
	town.quietly(t, 0, 11*time.Second)
	next := *def
	next.Revision, next.UpdatedAt, next.Spec.Pool = 2, town.wall(), "p@1"
	db.revisions[u] = append(db.revisions[u], &next)
	db.post(engine.Entry{Kind: engine.EntryJobChanged, Job: u})
	db.post(engine.Entry{Kind: engine.EntryJobChanged, Job: u})
	town.quietly(t, 0, town.mono+600*time.Millisecond)
	if n := len(db.mate(1).inbox); n != 2 {
		t.Fatalf("%d entries came to the new planner, want 2", n)
	}
	town.mono = 40 * time.Second // it was away
	w := town.worlds[1]
	w.mono = town.mono
	mustDo(t, w.step(db.mate(1).inboxPage(inboxLimit)))
	marks := map[bool]int{}
	for _, c := range db.cursorsOf(u) {
		marks[c.Stamp < 0]++
	}
	if len(marks) > 1 {
		t.Errorf("some cursors of the job are marked and some are not: %+v", db.cursorsOf(u))
	}
}

// quietly lets one owner go on, with nothing going wrong; what stands in line ends.
func (t *town) quietly(tb testing.TB, p int, until time.Duration) {
	tb.Helper()
	for w := t.worlds[p]; t.mono < until; t.mono += 200 * time.Millisecond {
		w.mono, w.want.Inbox = t.mono, true
		for _, r := range w.db.ordered() {
			if r.row.State == job.ExecutionQueued && r.row.Cancel == "" {
				w.db.post(engine.Entry{Kind: engine.EntryCancel, Execution: r.row.ID})
			}
		}
		mustDo(tb, w.settle())
	}
}

func mustDo(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// TestBacklogPageInParts: while events run one by one, a page of the backlog is cut into pages of one row. The second is no answer to
// what was asked for behind the first.
func TestBacklogPageInParts(t *testing.T) {
	s := newScenario()
	s.say(t, "config ready=4 page=3", "job g handler=gg", "job h handler=hh",
		"worker A handlers=hh slots=3 idle", "worker B handlers=gg slots=3 idle",
		"trigger g times=8", "advance 1s quiet", "trigger h times=8", "pages off", "poll A", "poll B")
	if s.want.Backlog == nil {
		t.Fatal("no page is asked for")
	}
	page := s.db.backlogPage(*s.want.Backlog)
	s.want.Backlog = nil
	after := page.After
	for i := range page.Rows {
		mustDo(t, s.take(engine.BacklogPage{Seq: page.Seq, After: after, Rows: page.Rows[i : i+1 : i+1], Partial: page.Partial || i < len(page.Rows)-1}))
		after = engine.Place{At: page.Rows[i].Execution.PlannedAt, ID: page.Rows[i].Execution.ID}
	}
	s.say(t, "pages on")
	for range 20 {
		for _, name := range []string{"A", "B"} {
			w := s.workers[name]
			for _, x := range w.held {
				mustDo(t, s.send(w.report(w.done(x, engine.OutcomeSuccess, 0))))
			}
			s.say(t, "poll "+name)
		}
		s.say(t, "advance 3s quiet")
	}
	for _, r := range s.db.ordered() {
		t.Errorf("execution %s of %s is %s still", r.row.ID, fmt.Sprint(r.row.Job), r.row.State)
	}
}
