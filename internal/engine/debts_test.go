package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// crashes is a job that runs one at a time and catches up, whose owner dies again and again.
type crashes struct {
	s       *scenario
	dice    *rand.Rand
	log     []string
	missed  map[job.Instant]bool
	grace   time.Duration
	begin   job.Instant
	looked  job.Instant
	seconds []int // of the steps of its schedules
}

func (c *crashes) do(t *testing.T, format string, args ...any) {
	t.Helper()
	line := fmt.Sprintf(format, args...)
	c.log = append(c.log, line)
	if _, err := c.s.run(line); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(c.log, "\n"))
	}
}

func (c *crashes) is(at job.Instant) bool {
	for _, step := range c.seconds {
		if int(at/1000)%60%step == 0 {
			return true
		}
	}
	return false
}

// outage lets nobody be there for some time. What was due in it and is later than the grace when somebody is back is missed.
func (c *crashes) outage(t *testing.T, down time.Duration) {
	c.looked = c.s.wall()
	c.do(t, "pause %ds", int(down.Seconds()))
	late := c.s.wall().Add(-c.grace)
	for at := (c.looked/1000 + 1) * 1000; at < late; at += 1000 {
		if c.is(at) {
			c.missed[at] = true
		}
	}
	c.do(t, "reload%s", []string{"", " takeover"}[c.dice.IntN(2)])
}

// judge says what is wrong with the fate of an instant; "": nothing.
func (c *crashes) judge(at job.Instant) string {
	made := 0
	for _, all := range []map[job.ExecutionID]*record{c.s.db.live, c.s.db.history} {
		for _, x := range all {
			if x.row.PlannedAt != at {
				continue
			}
			if made++; c.missed[at] && x.row.Trigger != job.TriggerCatchUp || x.row.State == job.ExecutionCancelled {
				return fmt.Sprintf("was to be caught up, and is %s by %s", x.row.State, x.row.Trigger)
			}
		}
	}
	decided := 0
	for _, d := range c.s.db.decisions {
		if d.From <= at && at <= d.To {
			decided++
		}
	}
	switch {
	case c.missed[at] && (made != 1 || decided != 0):
		return fmt.Sprintf("was missed, and has %d executions and %d decisions", made, decided)
	case made == 0 && decided == 0, made > 0 && decided > 0, made > 1:
		return fmt.Sprintf("has %d executions and %d decisions", made, decided)
	}
	return ""
}

// TestOutagesAmidCatchingUp: whoever catches up on every missed instant gets each of them, however often the owner dies
// before the instants of an earlier outage have run, although only one execution of the job runs at a time. What was on time
// in between, and has its fate, is not run again.
func TestOutagesAmidCatchingUp(t *testing.T) {
	for seed := range uint64(60) {
		dice := rand.New(rand.NewPCG(seed, 11))
		c := &crashes{s: newScenario(), dice: dice, missed: map[job.Instant]bool{}, grace: 10 * time.Second, seconds: [][]int{{4}, {3, 6}, {5, 4}, {20}}[dice.IntN(4)]}
		c.do(t, "config misfire=10s owner=2s catchup=%d rate=%d page=%d", []int{7, 10_000}[dice.IntN(2)], []int{2, 500}[dice.IntN(2)], 1+dice.IntN(3))
		text := ""
		for i, step := range c.seconds {
			text += fmt.Sprintf(" cron%s=*/%d_*_*_*_*_*", []string{"", "2"}[i], step)
		}
		c.do(t, "job j%s misfire=all limit=1000 queued=%d", text, 1+dice.IntN(2))
		c.do(t, "worker A slots=4 lives work=%dms", 100+dice.IntN(1200))
		c.do(t, "advance 1s quiet")
		c.begin = c.s.wall()
		outages := 1 + dice.IntN(5)
		if seed%30 == 29 {
			outages = 2 * job.MaxOwed
			c.do(t, "kill A") // nothing ends
		}
		for range outages {
			c.outage(t, time.Duration(11+dice.IntN(40))*time.Second)
			c.do(t, "advance %dms quiet", 100+dice.IntN(9000))
		}
		if outages > job.MaxOwed { // then it all comes at once, and what finds no room is decided
			clear(c.missed)
			c.do(t, "worker B slots=4 lives work=100ms")
		}
		c.do(t, "advance 6m quiet")
		for at := (c.begin/1000 + 1) * 1000; at < c.s.wall()-10_000; at += 1000 {
			if !c.is(at) {
				continue
			}
			if what := c.judge(at); what != "" {
				t.Fatalf("seed %d: %s %s\n%s\n%v", seed, instant(at), what, strings.Join(c.log, "\n"), c.s.db.decisions)
			}
		}
	}
}
