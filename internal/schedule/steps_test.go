package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

// A reading is shown once, twice or never.
func TestReadings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, reading string
		at            string // joined by blanks
		step          string
	}{
		{"America/New_York", "2027-03-14T01:59:59Z", "2027-03-14T06:59:59Z", ""},
		{"America/New_York", "2027-03-14T02:30:00Z", "", "2027-03-14T07:00:00Z 02:30 02:00 03:00"},
		{"America/New_York", "2027-03-14T03:00:00Z", "2027-03-14T07:00:00Z", ""},
		{"America/New_York", "2027-11-07T01:30:00Z", "2027-11-07T05:30:00Z 2027-11-07T06:30:00Z", ""},
		{"America/New_York", "2027-11-07T02:00:00Z", "2027-11-07T07:00:00Z", ""},
		{"Pacific/Apia", "2011-12-30T09:00:00Z", "", "2011-12-30T10:00:00Z 2011-12-30T09:00 2011-12-30T00:00 2011-12-31T00:00"},
		{"UTC", "2027-03-14T02:30:00Z", "2027-03-14T02:30:00Z", ""},
		{"America/New_York", "2067-03-13T02:30:00Z", "", "2067-03-13T07:00:00Z 02:30 02:00 03:00"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		all, step := schedule.Readings(zone, instant(t, c.reading))
		var at []string
		for _, i := range all {
			at = append(at, i.Format(time.RFC3339))
		}
		got := ""
		if step != nil {
			got = strings.Join([]string{step.At.Format(time.RFC3339), step.Reading, step.From, step.To}, " ")
		}
		if strings.Join(at, " ") != c.at || got != c.step {
			t.Errorf("%s %s: %v, %q", c.zone, c.reading, at, got)
		}
	}
}

// What a schedule makes of a skipped reading, its policy says; another reading is none of its.
func TestInstead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cron  string
		gap   schedule.GapPolicy
		named bool
		at    string
	}{
		{"30 2 * * *", "", true, "2027-03-14T07:00:00Z"},
		{"30 2 * * *", schedule.GapShift, true, "2027-03-14T07:30:00Z"},
		{"30 2 * * *", schedule.GapSkip, true, ""},
		{"*/30 * * * *", "", true, ""},
		{"15 2 * * *", "", false, ""},
	} {
		s := parse(t, schedule.Spec{Cron: c.cron, TimeZone: "America/New_York", DST: schedule.DST{Gap: c.gap}}, time.Time{})
		at, named := schedule.Instead(s, instant(t, "2027-03-14T02:30:00Z"))
		if named != c.named || at.IsZero() != (c.at == "") || c.at != "" && !at.Equal(instant(t, c.at)) {
			t.Errorf("%s, gap %q: %v, %v", c.cron, c.gap, at, named)
		}
	}
}

// What a step forward drops is told for the stretch in which it lies.
func TestDroppedBetween(t *testing.T) {
	t.Parallel()
	spec := schedule.Spec{Cron: "30 2 * * *", TimeZone: "America/New_York", DST: schedule.DST{Gap: schedule.GapSkip}}
	from, to := instant(t, "2027-03-14T05:00:00Z"), instant(t, "2027-03-14T07:00:00Z")
	all := schedule.DroppedBetween(parse(t, spec, time.Time{}), from, to, 9)
	if len(all) != 1 || !all[0].At.Equal(to) || all[0].Why != "dropped: 02:30 does not exist, the clock goes from 02:00 to 03:00" {
		t.Errorf("%v", all)
	}
	if all := schedule.DroppedBetween(parse(t, spec, time.Time{}), from, to.Add(-time.Second), 9); len(all) != 0 {
		t.Errorf("before the step: %v", all)
	}
	if all := schedule.DroppedBetween(parse(t, spec, time.Time{}), from, to.AddDate(3, 0, 0), 2); len(all) != 2 {
		t.Errorf("at most two: %v", all)
	}
	spec.DST.Gap = ""
	if all := schedule.DroppedBetween(parse(t, spec, time.Time{}), from, to, 9); len(all) != 0 {
		t.Errorf("it moves: %v", all)
	}
}

// A note names the day that a zone left out.
func TestNoteOfALostDay(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{Cron: "0 9 * * *", TimeZone: "Pacific/Apia"}, time.Time{})
	at, _ := s.Next(instant(t, "2011-12-30T09:59:59Z"))
	if got := schedule.Note(s, at); got != "moved: 2011-12-30T09:00 does not exist, the clock goes from 2011-12-30T00:00 to 2011-12-31T00:00" {
		t.Errorf("%v: %q", at, got)
	}
}

// Several closed days that make one instant of an open one are all told, in a bounded text.
func TestNoteOfJoinedDays(t *testing.T) {
	t.Parallel()
	cn := &schedule.Calendar{Name: "cn", Closed: []schedule.Dates{{From: "2026-10-01", To: "2026-10-07", Name: "国庆节"}}}
	many := &schedule.Calendar{Name: "many", Closed: []schedule.Dates{{From: "2026-10-01", Name: "a"}, {From: "2026-10-02", Name: "b"},
		{From: "2026-10-03", Name: "c"}, {From: "2026-10-04", Name: "d"}, {From: "2026-10-05"}}}
	for _, c := range []struct {
		cron   string
		cal    *schedule.Calendar
		closed schedule.ClosedPolicy
		after  string
		want   string
	}{
		{"0 9 * * *", cn, schedule.ClosedNext, "2026-09-30T10:00:00Z", "with 7 from closed days 2026-10-01 … 2026-10-07 (国庆节)"},
		{"0 9 * * *", cn, schedule.ClosedPrevious, "2026-09-29T10:00:00Z", "with 7 from closed days 2026-10-01 … 2026-10-07 (国庆节)"},
		{"0 9 1,8 * *", cn, schedule.ClosedNext, "2026-09-30T10:00:00Z", "with 1 from the closed day 2026-10-01 (国庆节)"},
		{"0 9 3 * *", cn, schedule.ClosedNext, "2026-09-30T10:00:00Z", "moved from 2026-10-03: cn is closed (国庆节)"},
		{"0 9 1-3 * *", cn, schedule.ClosedNext, "2026-09-30T10:00:00Z", "moved from 2026-10-03: cn is closed (国庆节); with 2 from closed days 2026-10-01 … 2026-10-02 (国庆节)"},
		{"0 9 * * *", many, schedule.ClosedNext, "2026-09-30T10:00:00Z", "with 5 from closed days 2026-10-01 … 2026-10-05 (a, b, c, …)"},
		{"0 9 * * *", cn, schedule.ClosedNext, "2026-10-08T10:00:00Z", ""},
	} {
		s := parse(t, schedule.Spec{Cron: c.cron, Calendars: []string{"x"}, Closed: c.closed, Resolve: func(string) *schedule.Calendar { return c.cal }}, time.Time{})
		at, _ := s.Next(instant(t, c.after))
		if got := schedule.Note(s, at); got != c.want {
			t.Errorf("%s %s: %v: %q, want %q", c.cron, c.closed, at, got, c.want)
		}
	}
}

// An expression whose years have passed is found.
func TestLintOfThePast(t *testing.T) {
	t.Parallel()
	found := schedule.Lint(parse(t, schedule.Spec{Cron: "0 0 12 1 1 ? 2020", Dialect: schedule.Quartz}, time.Time{}), instant(t, "2026-01-01T00:00:00Z"))
	if len(found) != 1 || found[0].Rule != "never_again" || !strings.Contains(found[0].Text, "never fires again: the last time was 2020-01-01T12:00:00Z") || found[0].Hint == "" {
		t.Errorf("%+v", found)
	}
}

// The place of a fault is told where there is one.
func TestPlacesOfFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"CRON_TZ=Foo/Bar 0 0 * * *": 9, "TZ=": 4, "@every 5m": 1, "@daily 1": 1} {
		_, err := schedule.Parse(schedule.Spec{Cron: text}, time.Time{})
		if e, ok := errors.AsType[*schedule.Error](err); !ok || e.Pos != want {
			t.Errorf("%s: %v, want position %d", text, err, want)
		}
	}
}
