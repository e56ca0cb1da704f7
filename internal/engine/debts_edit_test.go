package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// played is a scenario of which the committed rows are judged.
type played struct {
	*scenario
	t *testing.T
}

func playedBy(t *testing.T, lines ...string) *played {
	t.Helper()
	p := &played{newScenario(), t}
	p.do(lines...)
	return p
}

func (p *played) do(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		if _, err := p.run(line); err != nil {
			p.t.Fatalf("%s: %v", line, err)
		}
	}
}

// fates are the execution and the decisions of an instant, in seconds since the start.
func (p *played) fates(name string, second int) (all []string) {
	at := wallStart + job.Instant(second*1000)
	for _, rows := range []map[job.ExecutionID]*record{p.db.live, p.db.history} {
		for _, x := range rows {
			if x.row.Job == name && x.row.PlannedAt == at {
				all = append(all, string(x.row.Trigger))
			}
		}
	}
	for _, d := range p.db.decisions {
		if d.Name == name && d.From <= at && at <= d.To {
			all = append(all, string(d.Reason))
		}
	}
	slices.Sort(all)
	return all
}

// owed are the ranges that the schedule main of a job owes, in seconds since the start.
func (p *played) owed(name string) string {
	var all []string
	for _, c := range p.db.cursors {
		if p.names.jobs[c.Job] != name || c.Schedule != job.MainSchedule {
			continue
		}
		for _, r := range c.OwedRanges() {
			all = append(all, fmt.Sprintf("%d-%d", (r.From-wallStart)/1000, (r.To-wallStart)/1000))
		}
	}
	return strings.Join(all, ",")
}

// TestCalendarLeavesDebtsOfMany: a change that leaves instants as they are keeps what is owed of them, however much there is of
// it, and however many jobs keep to the calendar. It once kept what a step could walk, and gave up the rest.
func TestCalendarLeavesDebtsOfMany(t *testing.T) {
	lines := []string{"config misfire=10s owner=2s catchup=3", "calendar hol closed=2026-02-02"}
	for i := range 4 {
		lines = append(lines, fmt.Sprintf("job j%d cron=*/2_*_*_*_*_* calendars=hol misfire=all limit=1000 overlap=skip handler=h%d", i, i))
	}
	p := playedBy(t, append(lines, "worker A slots=9 handlers=h0,h1,h2,h3 lives work=50h", "advance 2s quiet", "pause 40s", "reload", "advance 1s quiet")...)
	owed := p.owed("j0")
	p.do("calendar hol closed=2026-02-03 unread", "inbox", "advance 5s quiet")
	for i := range 4 {
		if have := p.owed(fmt.Sprintf("j%d", i)); have != owed || owed == "" {
			t.Errorf("j%d owed %s, and owes %q", i, owed, have)
		}
	}
	if len(p.db.inbox) > 0 {
		t.Errorf("%d entries stay", len(p.db.inbox))
	}
}

// TestCalendarChangedAfterALongOutage: the instants of a long outage are compared in as many steps as that wants. It once took the
// whole bound of a step for it, at each step, and left nothing for a decision: the change was never in force.
func TestCalendarChangedAfterALongOutage(t *testing.T) {
	p := playedBy(t, "config misfire=10s owner=2s catchup=3", "calendar hol closed=2026-02-02",
		"job j cron=*_*_*_*_*_* calendars=hol misfire=once overlap=allow", "advance 2s quiet", "pages off", "reload", "pause 60s",
		"calendar hol closed=2026-02-03 unread", "pause 1s", "inbox", "pages on", "advance 5s quiet")
	if len(p.db.inbox) > 0 {
		t.Fatalf("%d entries stay", len(p.db.inbox))
	}
	for second := 1; second <= 67; second++ {
		if fates := p.fates("j", second); len(fates) != 1 {
			t.Errorf("%d has %v", second, fates)
		}
	}
}

// TestCalendarMeetsOutage: a change of a calendar arrives in the very step that makes debts of what was missed after it was written.
func TestCalendarMeetsOutage(t *testing.T) {
	p := playedBy(t, "config misfire=10s owner=2s", "calendar hol closed=2026-02-02",
		"job j cron=*/2_*_*_*_*_* calendars=hol misfire=all limit=1000 overlap=allow", "advance 3s quiet",
		"calendar hol closed=2026-01-01 unread", "pause 30s together", "inbox", "end", "advance 5s quiet")
	for second := 4; second <= 22; second += 2 {
		if fates := p.fates("j", second); len(fates) != 1 {
			t.Errorf("%d has %v", second, fates)
		}
	}
}

// TestCalendarChangedWithTheJob: what is owed is judged by the calendars of its own schedule, not by how many revisions all calendars
// of the job have together: an edit that takes one away may hide the change of another one.
func TestCalendarChangedWithTheJob(t *testing.T) {
	p := playedBy(t, "config misfire=10s owner=2s", "calendar hol closed=2026-02-02", "calendar ops closed=2026-02-02",
		"job j cron=*/2_*_*_*_*_* calendars=hol cron2=30_12_*_*_* calendars2=ops misfire=all limit=1000 overlap=skip",
		"worker A slots=4 lives work=20s", "advance 3s quiet", "pause 30s", "reload", "advance 500ms quiet",
		"calendar hol closed=2026-01-01 unread",
		"job j cron=*/2_*_*_*_*_* calendars=hol cron2=30_12_*_*_* misfire=all limit=1000 overlap=skip unread", "inbox", "advance 60s quiet")
	for second := 4; second <= 22; second += 2 {
		if fates := p.fates("j", second); !slices.Equal(fates, []string{"misfire_given_up"}) {
			t.Errorf("%d has %v", second, fates)
		}
	}
}

// TestDeletedJobOwesByTheCalendarOfThen: what a job owes when it is deleted are instants of the calendar by which they were missed.
func TestDeletedJobOwesByTheCalendarOfThen(t *testing.T) {
	p := playedBy(t, "config misfire=10s owner=2s", "calendar hol closed=2026-02-02",
		"job j cron=*/2_*_*_*_*_* calendars=hol misfire=all limit=1000 overlap=skip", "worker A slots=4 lives work=50h", "advance 3s quiet",
		"pause 30s", "reload", "advance 1s quiet")
	if p.owed("j") != "4-22" {
		t.Fatalf("owes %s", p.owed("j"))
	}
	p.do("calendar hol closed=2026-01-01 unread", "delete j", "advance 1s quiet")
	for second := 4; second <= 22; second += 2 {
		if fates := p.fates("j", second); !slices.Equal(fates, []string{"job_deleted"}) {
			t.Errorf("%d has %v", second, fates)
		}
	}
}

// TestCalendarOpenedWhileNobodyPlans: what a change opens is due from its writing on, also when it was changed again since, or the job owes
// something: all that is the same between two versions when nothing was due before is no reason to leave it out.
func TestCalendarOpenedWhileNobodyPlans(t *testing.T) {
	for name, lines := range map[string][]string{
		"once":  {"pause 5s", "calendar hol closed=2026-02-02 unread", "pause 40s"},
		"twice": {"pause 5s", "calendar hol closed=2026-02-02 unread", "pause 20s", "calendar hol closed=2026-02-03 unread", "pause 20s"},
	} {
		p := playedBy(t, "config misfire=10s owner=2s", "calendar hol closed=2026-01-01",
			"job j cron=*/2_*_*_*_*_* calendars=hol misfire=all limit=1000 overlap=allow", "advance 1s quiet", "pages off", "reload")
		p.do(append(lines, "inbox", "pages on", "advance 5s quiet")...)
		for second := 8; second <= 44; second += 2 {
			if fates := p.fates("j", second); len(fates) != 1 {
				t.Errorf("%s: %d has %v", name, second, fates)
			}
		}
	}
	p := playedBy(t, "config misfire=10s owner=2s", "calendar hol closed=2026-01-01",
		"job j cron=*/2_*_*_*_*_* calendars=hol cron2=*/5_*_*_*_*_* misfire=once overlap=skip", "worker A slots=1 lives work=50h",
		"advance 6s quiet", "pause 30s", "reload", "advance 100ms quiet", "pages off", "reload", "pause 5s", "calendar hol closed=2026-02-02 unread", "pause 35s",
		"inbox", "pages on", "advance 5s quiet")
	for second := 42; second <= 64; second += 2 {
		if fates := p.fates("j", second); len(fates) == 0 {
			t.Errorf("owing: %d has no fate", second)
		}
	}
}

// TestCalendarChangedTooOften: when so many changes were written that the calendar of then is not known any more, all that the job owes
// is given up, as ranges.
func TestCalendarChangedTooOften(t *testing.T) {
	for _, last := range []string{"inbox", "delete j"} {
		p := playedBy(t, "config misfire=10s owner=2s", "calendar hol closed=2026-02-02",
			"job j cron=*/2_*_*_*_*_* calendars=hol cron2=*/4_*_*_*_*_* misfire=all limit=1000 overlap=skip", "worker A slots=4 lives work=50h",
			"advance 3s quiet", "pause 30s", "reload", "advance 1s quiet")
		for range engine.CalendarsMax + 1 {
			p.do("calendar hol closed=2026-01-01 unread", "pause 10ms")
		}
		p.do(last, "kill A", "worker B slots=4 lives work=1s", "advance 60s quiet")
		for second := 4; second <= 22; second += 2 {
			fates := slices.Compact(p.fates("j", second))
			if len(fates) != 1 {
				t.Errorf("%s: %d has %v", last, second, fates)
			}
		}
	}
}
