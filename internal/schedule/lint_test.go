package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

func TestLint(t *testing.T) {
	t.Parallel()
	from := instant(t, "2026-01-01T00:00:00Z")
	for _, c := range []struct {
		spec schedule.Spec
		want string // rules
		text string // of the first
	}{
		{schedule.Spec{Cron: "*/7 * * * *"}, "uneven_step", "the pause at the end of each round is 4, not 7"},
		{schedule.Spec{Cron: "*/15 * * * *"}, "", ""},
		{schedule.Spec{Cron: "0 */5 * * *"}, "uneven_step", "does not divide 24"},
		{schedule.Spec{Cron: "0 0 */10 * *"}, "uneven_step", "begins anew on the 1st"},
		{schedule.Spec{Cron: "*/60 * * * *"}, "step_one_value", "one value only, 0"},
		{schedule.Spec{Cron: "0/45 * * * *"}, "uneven_step", "is 15, not 45"},
		{schedule.Spec{Cron: "0-59/7 * * * *"}, "uneven_step", "is 4, not 7"},
		{schedule.Spec{Cron: "3/7 * * * *"}, "uneven_step", "minute: 3/7 does not divide 60: the pause at the end of each round is 4, not 7"},
		{schedule.Spec{Cron: "5/7 * * * *"}, "uneven_step", "is 11, not 7"},
		{schedule.Spec{Cron: "H/7 * * * *", Seed: "a"}, "uneven_step", "H/7 does not divide 60"},
		{schedule.Spec{Cron: "20/45 * * * *"}, "step_one_value", "leaves one value only, 20"},
		{schedule.Spec{Cron: "0 0 1-31/3 * *"}, "uneven_step", "begins anew on the 1st"},
		{schedule.Spec{Cron: "0 0 13 * 5"}, "either_day", "either"},
		{schedule.Spec{Cron: "30 2 * * *", TimeZone: "Europe/Berlin"}, "clock_step", "02:30 does not exist on 2026-03-29 in Europe/Berlin: it runs at the first instant"},
		{schedule.Spec{Cron: "30 2 * * *", TimeZone: "Europe/Berlin", DST: schedule.DST{Gap: schedule.GapSkip}}, "clock_step", "it does not run then"},
		{schedule.Spec{Cron: "*/30 2 * * *", TimeZone: "Europe/Berlin"}, "clock_step", "it does not run then"},
		{schedule.Spec{Cron: "*/30 * * * *", TimeZone: "Europe/Berlin"}, "", ""},
		{schedule.Spec{Cron: "30 1 * * *", TimeZone: "America/New_York"}, "clock_step", "01:30 comes twice on 2026-11-01"},
		{schedule.Spec{Cron: "30 12 * * *", TimeZone: "America/New_York"}, "", ""},
		{schedule.Spec{Cron: "30 2 * * *", TimeZone: "Asia/Shanghai"}, "", ""},
		{schedule.Spec{Every: time.Hour}, "", ""},
	} {
		var rules []string
		found := schedule.Lint(parse(t, c.spec, from), from)
		for _, f := range found {
			rules = append(rules, f.Rule)
		}
		if got := strings.Join(rules, " "); got != c.want {
			t.Errorf("%+v: %q, want %q (%+v)", c.spec, got, c.want, found)
		} else if len(found) > 0 && !strings.Contains(found[0].Text, c.text) {
			t.Errorf("%+v: %q lacks %q", c.spec, found[0].Text, c.text)
		}
	}
}
