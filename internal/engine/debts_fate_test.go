package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/job"
)

// debtor is a job that is edited, paused and deleted at random while it owes, with its calendars.
type debtor struct {
	*scenario
	dice *rand.Rand
	log  []string
	owed map[dueInstant]bool // whatever was ever seen to be owed, or held by a pause
	text string              // of the job
	gone bool
}

type dueInstant struct {
	schedule string
	at       job.Instant
}

func (g *debtor) do(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	g.log = append(g.log, line)
	_, err := g.run(line)
	g.look()
	return err
}

// look notes what is owed, by the calendars that the cursors know.
func (g *debtor) look() {
	for _, c := range g.db.cursors {
		def := g.db.revision(c.Job, c.Revision)
		if c.Owed == 0 && c.Held == 0 || def == nil {
			continue
		}
		then := *def
		then.Calendars = map[string]*job.Calendar{}
		stamp := c.Stamp
		if stamp < 0 {
			stamp = ^stamp
		}
		for _, name := range def.Spec.Calendars() { // there is one
			then.Calendars[name] = &g.db.calendars[name][stamp-1]
		}
		for _, s := range then.Spec.Schedules {
			if s.ID != c.Schedule {
				continue
			}
			line, err := then.Parse(s.Spec)
			if err != nil {
				panic(err)
			}
			all := c.OwedRanges()
			if c.Held != 0 {
				all = append(all, job.InstantRange{From: c.Held, To: g.heldTo(&c)})
			}
			for _, r := range all {
				for at, ok := line.Next((r.From - 1).Time()); ok && job.InstantOf(at) <= r.To; at, ok = line.Next(at) {
					g.owed[dueInstant{c.Schedule, job.InstantOf(at)}] = true
				}
			}
		}
	}
}

// heldTo is how far a cursor holds instants of the calendars that it knows.
func (g *debtor) heldTo(c *job.Cursor) job.Instant {
	to, stamp := g.wall(), max(c.Stamp, ^c.Stamp)
	if c.Next != 0 {
		to = min(to, c.Next-1)
	}
	if all := g.db.calendars["hol"]; int(stamp) < len(all) {
		to = min(to, all[stamp].UpdatedAt)
	}
	if next := g.db.revision(c.Job, c.Revision+1); next != nil {
		to = min(to, next.UpdatedAt)
	}
	if d := g.db.newest(c.Job); d.Deleted != nil {
		to = min(to, d.Deleted.At)
	} else if d.Pause == nil { // it was resumed, which was not taken in
		to = 0
	}
	return to
}

// judge says what is wrong with the fate of an instant; "": nothing.
func (g *debtor) judge(i dueInstant) string {
	made, decided := 0, map[string]int{}
	for _, rows := range []map[job.ExecutionID]*record{g.db.live, g.db.history} {
		for _, x := range rows {
			if x.row.PlannedAt == i.at {
				made++
			}
		}
	}
	for _, d := range g.db.decisions {
		if g.owed[dueInstant{d.Schedule, i.at}] && d.From <= i.at && i.at <= d.To {
			if decided[d.Schedule]++; decided[d.Schedule] > 1 {
				return fmt.Sprintf("%s of %s was decided twice", instant(i.at), d.Schedule)
			}
		}
	}
	if made == 1 && len(decided) == 0 || made == 0 && len(decided) > 0 { // another schedule that owed it as well may have decided it alone
		return ""
	}
	return fmt.Sprintf("%s of %s was owed or held, and has %d executions and %d decisions", instant(i.at), i.schedule, made, len(decided))
}

func (g *debtor) calendar() error {
	closed := []string{"2026-02-02", "2026-02-03", "2026-02-04", "2026-01-01"}[g.dice.IntN(4)]
	return g.do("calendar hol closed=%s%s", closed, []string{"", " unread"}[g.dice.IntN(2)])
}

func (g *debtor) edit() error {
	switch g.dice.IntN(4) {
	case 0:
		g.text = "cron=*/2_*_*_*_*_* calendars=hol"
	case 1:
		g.text = "cron=*/2_*_*_*_*_* calendars=hol cron2=*/3_*_*_*_*_*"
	case 2:
		g.text = "cron=*/2_*_*_*_*_* cron2=*/3_*_*_*_*_* calendars2=hol"
	}
	return g.do("job j %s misfire=all limit=%d overlap=%s attempts=%d%s", g.text, []int{5, 1000}[g.dice.IntN(2)],
		[]string{"skip", "queue", "allow", "replace"}[g.dice.IntN(4)], 1+g.dice.IntN(2), []string{"", " unread"}[g.dice.IntN(2)])
}

func (g *debtor) turn() error {
	switch g.dice.IntN(9) {
	case 0, 1:
		return g.calendar()
	case 2:
		return g.edit()
	case 3:
		unread := []string{"", " unread"}
		for _, line := range []string{"suspend j" + unread[g.dice.IntN(2)], "advance 4s quiet", "pause 9s", "", "advance 3s quiet", "resume j" + unread[g.dice.IntN(2)]} {
			switch {
			case g.dice.IntN(3) == 0 && !strings.HasPrefix(line, "resume"):
			case line == "":
				if err := g.calendar(); err != nil {
					return err
				}
			default:
				if err := g.do("%s", line); err != nil {
					return err
				}
			}
		}
		return nil
	case 4, 5:
		if err := g.do("pause %ds", 5+g.dice.IntN(30)); err != nil {
			return err
		}
		return g.do("reload%s", []string{"", " takeover"}[g.dice.IntN(2)])
	case 6:
		for _, line := range []string{"pause 20s together", "inbox", "end"} {
			if err := g.do("%s", line); err != nil {
				return err
			}
		}
		return nil
	default:
		return g.do("advance %dms quiet", 100+g.dice.IntN(6000))
	}
}

func (g *debtor) lives() error {
	if err := g.do("config misfire=5s owner=2s catchup=%d rate=%d page=%d", []int{3, 7, 10_000}[g.dice.IntN(3)], []int{1, 500}[g.dice.IntN(2)], 1+g.dice.IntN(3)); err != nil {
		return err
	}
	g.text = "cron=*/2_*_*_*_*_* calendars=hol"
	steps := []func() error{func() error { return g.do("calendar hol closed=2026-02-02") }, g.edit,
		func() error { return g.do("worker A slots=4 lives work=%dms", 100+g.dice.IntN(9000)) }}
	for range 6 + g.dice.IntN(20) {
		steps = append(steps, g.turn)
	}
	if g.dice.IntN(2) == 0 {
		g.gone = true
		steps = append(steps, g.calendar, func() error { return g.do("delete j") })
	}
	steps = append(steps, func() error { return g.do("inbox") }, func() error { return g.do("advance 10m quiet") })
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// TestWhatIsOwedHasOneFate: whatever becomes of a job and of its calendars, each instant that it owed, or that a pause of it held, at any
// time ends as one execution or one decision.
func TestWhatIsOwedHasOneFate(t *testing.T) {
	seen := 0
	for seed := range uint64(120) {
		g := &debtor{scenario: newScenario(), dice: rand.New(rand.NewPCG(seed, 23)), owed: map[dueInstant]bool{}}
		what := ""
		if err := g.lives(); err != nil {
			what = err.Error()
		} else if n := len(g.db.inbox); n > 0 {
			what = fmt.Sprintf("%d entries stay", n)
		}
		var still []job.InstantRange
		for _, c := range g.db.cursors {
			if still = append(still, c.OwedRanges()...); c.Held != 0 {
				still = append(still, job.InstantRange{From: c.Held, To: g.wall()})
			}
		}
		for i := range g.owed {
			if what == "" && !inRanges(still, i.at) {
				what = g.judge(i)
			}
		}
		if seen += len(g.owed); what != "" {
			t.Fatalf("seed %d: %s\n%s\n%v", seed, what, strings.Join(g.log, "\n"), g.db.decisions)
		}
	}
	if seen < 1000 {
		t.Errorf("only %d instants were owed", seen)
	}
}

func inRanges(all []job.InstantRange, at job.Instant) bool {
	for _, r := range all {
		if r.From <= at && at <= r.To {
			return true
		}
	}
	return false
}
