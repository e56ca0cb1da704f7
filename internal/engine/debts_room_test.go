package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// TestDebtsThatGrowNeedNoRoom: what is missed right behind the newest debt becomes part of it. Who owes as many ranges as there is
// room for gives none of them up for that.
func TestDebtsThatGrowNeedNoRoom(t *testing.T) {
	p := playedBy(t, "config misfire=10s owner=2s losses=1000", "job j cron=0_*_*_*_*_* misfire=all limit=10 overlap=skip",
		"worker A slots=1 lives work=50h", "advance 110s quiet")
	want := ""
	for i := 1; i < job.MaxOwed; i++ { // one minute is missed, the next one is on time and finds no room
		p.do("pause 75s", "reload", "advance 45s quiet")
		want += fmt.Sprintf("%d-%d,", 120*i, 120*i)
	}
	p.do("pause 25s", "reload", "advance 1s quiet")
	if owed := p.owed("j"); owed != want+"1920-1920" {
		t.Fatalf("owes %s", owed)
	}
	p.do("pause 60s", "reload", "advance 1s quiet")
	if owed := p.owed("j"); owed != want+"1920-1980" {
		t.Errorf("owes %s, and the oldest has %v", owed, p.fates("j", 120))
	}
	p.do("advance 45s quiet", "pause 75s", "reload", "advance 1s quiet") // not right behind it
	if fates := p.fates("j", 120); !slices.Equal(fates, []string{"overlap_skip"}) {
		t.Errorf("the oldest has %v, and there is no room for one more", fates)
	}
}

// TestDebtsOfAnAutoPausedJob: what failures in a row keep from being caught up is missed, as what a pause does: takt missed lists it.
func TestDebtsOfAnAutoPausedJob(t *testing.T) {
	p := playedBy(t, "config misfire=10s owner=2s losses=1000", "job j cron=*/2_*_*_*_*_* misfire=all limit=100 overlap=skip autopause=1",
		"worker A slots=1", "advance 2s quiet", "report A e1/0 started", "pause 30s", "report A e1/0 done fatal", "advance 2s quiet")
	for second := 4; second <= 20; second += 2 {
		if fates := p.fates("j", second); !slices.Equal(fates, []string{"misfire_given_up"}) {
			t.Errorf("%d has %v", second, fates)
		}
	}
}

// TestDebtsReplaceNothing: with the policy replace, what is made room for by debts that find none stops nothing that is newer.
func TestDebtsReplaceNothing(t *testing.T) {
	p := playedBy(t, "config misfire=10s owner=2s losses=1000", "job j cron=0_*_*_*_*_* misfire=all limit=10 overlap=replace",
		"worker A slots=1 lives work=50h", "advance 110s quiet")
	for range job.MaxOwed + 1 {
		p.do("pause 75s", "reload", "advance 45s quiet")
	}
	if fates := p.fates("j", 120); !slices.Equal(fates, []string{"misfire_given_up"}) {
		t.Errorf("the oldest has %v", fates)
	}
	for _, x := range p.db.history {
		if x.row.State == job.ExecutionCancelled && x.row.PlannedAt > wallStart.Add(120*time.Second) && x.row.Trigger != job.TriggerSchedule {
			t.Errorf("%s of %s was stopped", x.row.Trigger, instant(x.row.PlannedAt))
		}
	}
}

// TestDebtsBesideAServerOfTheVersionBefore: it knows of one range only, and would lose others: what is owed is made at once when another
// outage comes. When it is gone, several are owed.
func TestDebtsBesideAServerOfTheVersionBefore(t *testing.T) {
	p := &played{newScenario(), t}
	p.do("config misfire=10s owner=2s losses=1000")
	p.cfg.Behind = 1
	p.do("job j cron=0_*_*_*_*_* misfire=all limit=10 overlap=skip",
		"worker A slots=1 lives work=50h", "advance 110s quiet", "pause 75s", "reload", "advance 45s quiet", "pause 75s", "reload", "advance 45s quiet")
	if owed, fates := p.owed("j"), p.fates("j", 120); owed != "240-240" || !slices.Equal(fates, []string{"overlap_skip"}) {
		t.Errorf("owes %s, and the oldest has %v", owed, fates)
	}
	p.cfg.Behind = 0
	p.do("reload", "pause 75s", "reload", "advance 45s quiet")
	if owed := p.owed("j"); owed != "240-240,360-360" {
		t.Errorf("owes %s when every server knows of several", owed)
	}
}
