package jobfile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/jobfile"
)

// Whatever the server refuses without looking elsewhere is refused in the file, all of it at once, at its line and column.
func TestRulesOfTheServer(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: takt/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  pool: p\n  handler: h\n"
	for _, c := range []struct {
		name, spec string
		want       []string // line:column field
	}{
		{"sound", "  overlap: {policy: queue, maxQueued: 3}\n", nil},
		{"nothing is queued", "  overlap: {policy: skip, maxQueued: 3}\n", []string{"7:38 spec.overlap.maxQueued"}},
		{"after itself", "  after: [{job: b}, {job: a}]\n", []string{"7:27 spec.after[1].job"}},
		{"a limit of nothing", "  misfire: {limit: 3}\n", []string{"7:20 spec.misfire.limit"}},
		{"a window shorter than the grace", "  misfire: {grace: 1h, window: 1m}\n", []string{"7:32 spec.misfire.window"}},
		{"everything", `  overlap: {policy: replace, maxQueued: 0}
  misfire: {policy: once, limit: 3, grace: 1h, window: 1m}
  after: [{job: a}, {job: a, timeZone: UTC, within: 1ms}]
  schedule: {cron: "61 * * * *", timeZone: Mars/Base, jitter: 2h, calendars: [b, b]}
  schedules: [{name: x, every: 1h, phase: 2h}, {name: x, every: 1h, closed: next}]
  params: {password: (masked)}
`, []string{"7:41 spec.overlap.maxQueued", "8:34 spec.misfire.limit", "8:56 spec.misfire.window", "9:17 spec.after[0].job", "9:27 spec.after[1].job",
			"9:27 spec.after[1].job", "9:40 spec.after[1].timeZone", "9:53 spec.after[1].within", "10:20 spec.schedule.cron", "10:44 spec.schedule.timeZone",
			"10:63 spec.schedule.jitter", "10:82 spec.schedule.calendars[1]", "11:43 spec.schedules[0].phase", "11:55 spec.schedules[1].name", "11:77 spec.schedules[1].closed",
			"12:22 spec.params.password"}},
		{"beside what is no document", "  overlap: {policy: never, maxQueued: 3}\n  nonsense: 1\n  after: [{job: a, on: never}, {job: a}]\n  misfire: {limit: 3}\n",
			[]string{"7:21 spec.overlap.policy", "8:3 spec.nonsense", "9:17 spec.after[0].job", "9:24 spec.after[0].on", "9:38 spec.after[1].job", "9:38 spec.after[1].job", "10:20 spec.misfire.limit"}},
		{"the day of a schedule that cannot be read", "  schedule: {cron: 5}\n  after: [{job: b, match: day}]\n", []string{"7:20 spec.schedule.cron"}},
		{"the day of no schedule", "  after: [{job: b, match: day}]\n", []string{"7:27 spec.after[0].match"}},
	} {
		_, err := jobfile.Parse("f", []byte(head+c.spec))
		es, _ := errors.AsType[jobfile.Errors](err)
		var got []string
		for _, e := range es {
			got = append(got, fmt.Sprintf("%d:%d %s", e.Line, e.Column, e.Field))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: faults\n%s\nwant\n%s\n%v", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"), err)
		}
	}
}

// Values of H are drawn from namespace and name: a document without a namespace is judged in the one that it will be applied to.
func TestRulesKnowTheNamespace(t *testing.T) {
	t.Parallel()
	const text = "apiVersion: takt/v1\nkind: Job\nmetadata: {name: a}\nspec: {pool: p, handler: h, schedule: {cron: \"0 0 H(29-31) 4 *\"}}\n"
	taken := map[bool]int{}
	for i := range 30 {
		_, err := jobfile.ParseIn(fmt.Sprintf("ns-%d", i), "f", []byte(text))
		taken[err == nil]++
	}
	if taken[true] == 0 || taken[false] == 0 {
		t.Errorf("taken %v: 31 April never comes, 29 April does", taken)
	}
}
