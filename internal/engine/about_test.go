package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// An execution whose definition is gone is left out of memory with an alarm; the others go on, and what
// people and workers say about it gets an answer.
func TestExecutionWithoutDefinition(t *testing.T) {
	s := lead(t, `
		config ready=1
		job files
		job other handler=other
		trigger files times=3
		trigger other
		worker A slots=1`)
	uid := s.jobs["files"].UID
	gone := s.db.revisions[uid]
	s.db.revisions[uid] = nil
	out := s.do(t, "reload")
	if !strings.Contains(out, "trace set_aside") || !strings.Contains(out, "is left out: the revision of its job is not there") {
		t.Errorf("no alarm: %s", out)
	}
	if s.memoryOf(t, "e1") != nil || s.memoryOf(t, "e2") != nil {
		t.Error("an execution without a definition is in memory")
	}
	s.do(t, `
		beat A
		report A e1/0 done success
		cancel e1
		cancel e2
		worker B handlers=other lives work=1s
		advance 5s`)
	if n := len(s.db.inbox); n != 0 {
		t.Errorf("%d entries stay in the inbox", n)
	}
	s.do(t, `
		job last handler=other
		trigger last
		advance 2s
		expect e4 succeeded
		expect e5 succeeded`)
	s.db.revisions[uid] = gone // it comes back: a new engine takes it up
	if s.do(t, "reload"); s.memoryOf(t, "e1") == nil {
		t.Error("the execution is not taken up when its definition is there again")
	}
}

// A schedule that does not parse is set aside with an alarm, whether an entry or a page brings it; the
// other schedules of the job are planned.
func TestScheduleThatDoesNotParse(t *testing.T) {
	s := lead(t, "job files every=10s cron2=nonsense overlap=allow")
	if out := s.do(t, "advance 21s"); !strings.Contains(out, "execution_created") {
		t.Errorf("the other schedule is not planned: %s", out)
	}
	s.do(t, "expect executions 2\njob files every=10s every2=15s overlap=allow\nadvance 20s\nexpect executions 4")

	broken := *s.jobs["files"]
	broken.Spec.Schedules = append([]job.Schedule{}, broken.Spec.Schedules...)
	broken.Spec.Schedules[1].Every = -time.Second
	revisions := s.db.revisions[broken.UID]
	revisions[len(revisions)-1] = &broken
	if out := s.do(t, "reload\nadvance 9s"); !strings.Contains(out, "schedule main2 of job") || !strings.Contains(out, "is left out") {
		t.Errorf("no alarm: %s", out)
	}
	s.do(t, "expect executions 5\nadvance 61s quiet\nexpect executions 11")
}

// What made commits be refused is left out: a planned execution that is there already counts as made, its
// schedule goes on.
func TestLeftOutExecution(t *testing.T) {
	s := lead(t, "job files every=10s overlap=allow\nadvance 30s quiet\nexpect executions 3")
	uid := s.jobs["files"].UID
	key := cursorKey{uid, "main"}
	c := s.db.cursors[key]
	c.Next, c.Last = wallStart.Add(20*time.Second), wallStart.Add(10*time.Second)
	s.db.cursors[key] = c
	if _, err := s.run("reload"); err == nil || !strings.Contains(err.Error(), "state guard") {
		t.Fatalf("the commit is not refused: %v", err)
	}
	for n := range 2 {
		s.leftOut = append(s.leftOut, engine.About{Execution: job.PlannedID(uid, wallStart.Add(time.Duration(n+2)*10*time.Second))})
	}
	out := s.do(t, "reload\nadvance 11s\nexpect executions 4")
	if !strings.Contains(out, "is left out") || !strings.Contains(out, "a planned execution that is left out is not made") {
		t.Errorf("no alarm: %s", out)
	}
}

// What a step panics at outside of its events is named, so that the next engine can do without it.
func TestAboutNamesThePanic(t *testing.T) {
	s := lead(t, "job files timeout=2s\ntrigger files\nworker A")
	rows := s.db.loaded(false)
	rows.Executions[0].Shards[0].Attempts[0].State = job.AttemptSucceeded // yet the shard is leased: no step can end its lease
	e := engine.New(s.cfg)
	at := s.now()
	e.Step(at, []engine.Event{rows, engine.Tick{}})
	at.Mono += time.Hour
	panicked := func() (p any) {
		defer func() { p = recover() }()
		e.Step(at, []engine.Event{engine.Tick{}}) // blind for an hour: verdicts wait
		at.Mono += s.cfg.LeaseTTL
		e.Step(at, []engine.Event{engine.Tick{}})
		return nil
	}()
	if want := (engine.About{Execution: rows.Executions[0].Execution.ID}); e.About() != want || panicked == nil {
		t.Errorf("panic %v about %q, want %q", panicked, e.About(), want)
	}
}
