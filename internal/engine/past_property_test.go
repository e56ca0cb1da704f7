package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/job"
)

// saying is what a job said from an instant on: of each schedule the second of the minute it begins with, and the step.
type saying struct {
	at    job.Instant
	lines map[string][2]int
	text  string
	off   bool
}

func (v *saying) has(schedule string, at job.Instant) bool {
	line, is := v.lines[schedule]
	second := int(at/1000) % 60
	return is && !v.off && second >= line[0] && (second-line[0])%line[1] == 0
}

// edited is a job that is edited at random, with and without somebody who plans it.
type edited struct {
	s        *scenario
	dice     *rand.Rand
	lines    int
	versions []saying
	log      []string
	err      error
}

func (g *edited) do(format string, args ...any) {
	if g.err != nil {
		return
	}
	line := fmt.Sprintf(format, args...)
	g.log = append(g.log, line)
	_, g.err = g.s.run(line)
}

func (g *edited) edit(how string) {
	v := saying{at: g.s.wall(), lines: map[string][2]int{}, off: g.dice.IntN(6) == 0}
	if n := len(g.versions); n > 0 && g.dice.IntN(4) == 0 {
		v.lines, v.text = g.versions[n-1].lines, g.versions[n-1].text
	} else {
		for i := range g.lines {
			if i > 0 && g.dice.IntN(2) == 0 {
				continue
			}
			step := []int{3, 5, 7, 10}[g.dice.IntN(4)]
			begin := g.dice.IntN(step)
			v.lines[[]string{"main", "main2"}[i]] = [2]int{begin, step}
			v.text += fmt.Sprintf(" cron%s=%d-59/%d_*_*_*_*_*", []string{"", "2"}[i], begin, step)
		}
	}
	if v.off {
		how += " disabled"
	}
	g.do("job j%s attempts=%d overlap=allow misfire=all limit=99 %s", v.text, 1+g.dice.IntN(3), how)
	g.versions = append(g.versions, v)
}

// outage is a time in which nobody plans and several edits are written.
func (g *edited) outage() {
	g.do("pages off")
	g.do("reload")
	for range 1 + g.dice.IntN(4) {
		g.do("pause %ds", 1+g.dice.IntN(25))
		g.edit("unread")
	}
	g.do("pause %ds", 1+g.dice.IntN(25))
	for range g.dice.IntN(3) {
		if g.do("inbox"); g.dice.IntN(4) == 0 { // and another one amid what is decided
			g.do("pause 1s")
			g.do("reload")
			g.do("pause 3s")
			g.edit("unread")
			g.do("pause 2s")
		}
	}
	for range 40 {
		g.do("inbox")
	}
	g.do("pages on")
	g.do("advance %ds quiet", 6+g.dice.IntN(10))
}

// judge says what is wrong with the fate of an instant; "": nothing.
func (g *edited) judge(at job.Instant) string {
	v := &saying{}
	for i := range g.versions {
		if g.versions[i].at < at {
			v = &g.versions[i]
		}
	}
	made, decided := false, false
	for _, all := range []map[job.ExecutionID]*record{g.s.db.live, g.s.db.history} {
		for _, x := range all {
			made = made || x.row.PlannedAt == at
		}
	}
	for _, d := range g.s.db.decisions {
		decided = decided || v.has(d.Schedule, at) && d.From <= at && at <= d.To
	}
	switch is := v.has("main", at) || v.has("main2", at); {
	case is && !made && !decided:
		return "has no fate"
	case is && made && decided:
		return "has an execution and a decision"
	case !is && made:
		return "was run, and was no instant of what was in force"
	}
	return ""
}

// TestEditsNobodyTookIn: whatever is edited while nobody plans, and however little a step may walk, each instant of what was
// in force at it gets an execution or a decision, not both, and no other instant runs.
func TestEditsNobodyTookIn(t *testing.T) {
	for seed := range uint64(400) {
		dice := rand.New(rand.NewPCG(seed, 7))
		g := &edited{s: newScenario(), dice: dice, lines: 1 + int(seed%2)}
		g.do("config misfire=5s catchup=%d rate=5000", []int{2, 3, 100, 100, 100}[dice.IntN(5)])
		g.do("pause 500ms")
		g.edit([]string{"", "unread"}[dice.IntN(2)])
		begin := g.s.wall()
		for range 1 + dice.IntN(2) {
			g.do("advance %ds quiet", 1+dice.IntN(15))
			g.outage()
		}
		what := ""
		if g.err != nil {
			what = g.err.Error()
		} else if n := len(g.s.db.inbox); n > 0 {
			what = fmt.Sprintf("%d entries stay", n)
		}
		for at := (begin/1000 + 1) * 1000; at < g.s.wall()-1500 && what == ""; at += 1000 {
			if what = g.judge(at); what != "" {
				what = instant(at) + " " + what
			}
		}
		if what != "" {
			t.Fatalf("seed %d: %s\n%s\n%v", seed, what, strings.Join(g.log, "\n"), g.s.db.decisions)
		}
	}
}
