package schedule_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

func TestQuartzRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cron  string
		field string
		pos   int
	}{
		{"0 0 0 * * *", "cron", 11},              // both days
		{"0 0 0 ? * ?", "cron", 11},              // neither
		{"0 0 0 1 * MON", "cron", 11},            // both
		{"0 0 0 ? *", "cron", 10},                // five fields: behind them
		{"0 0 0 ? * 0", "cron", 11},              // Sunday is 1
		{"0 0 0 ? * 8", "cron", 11},              //
		{"0 0 0 ? * 6#6", "cron", 13},            // no sixth Friday
		{"0 0 0 ? * 6#0", "cron", 13},            //
		{"0 0 0 ? * #2", "cron", 11},             // no weekday
		{"0 0 0 ? * 8L", "cron", 11},             //
		{"0 0 0 32W * ?", "cron", 7},             //
		{"0 0 0 0W * ?", "cron", 7},              //
		{"0 0 0 W * ?", "cron", 7},               // of what
		{"0 0 0 1-5W * ?", "cron", 7},            // no list of days
		{"0 0 0 L-31 * ?", "cron", 7},            //
		{"0 0 0 L+3 * ?", "cron", 7},             //
		{"0 0 0 LL * ?", "cron", 7},              //
		{"0 0 0 15,LX * ?", "cron", 10},          // the item, not the field
		{"0 0 0 ?,1 * MON", "cron", 13},          // ? is a whole field
		{"0 0 0 30W 2 ?", "cron", 7},             // never
		{"0 0 0 29 2 ? 2027", "cron", 7},         // no leap year
		{"0 0 0 ? 2 1#5 2027-2031", "cron", 7},   // never five Sundays in those
		{"0 0 0 1 1 ? 1969", "cron", 13},         //
		{"0 0 0 1 1 ? 2100", "cron", 13},         //
		{"0 0 0 1 1 ? 2030-2029", "cron", 13},    // years do not wrap
		{"0 0 0 1 1 ? 2030/0", "cron", 18},       //
		{"0 0 0 1 1 ? 2030/x", "cron", 18},       //
		{"0 0 0 L-30 2 ?", "cron", 7},            //
		{"0 60 0 ? * MON", "cron", 3},            //
		{"0 0 0 1 1 ? 2030 7", "cron", 18},       // the eighth
		{"0 0 0 1 JAN-FOO ?", "cron", 13},        //
		{"0 0 0 C * ?", "cron", 7},               // Quartz's calendars
		{"CRON_TZ=UTC 0 0 0 32 * ?", "cron", 19}, // place in the whole text
	} {
		_, err := schedule.Parse(schedule.Spec{Cron: c.cron, Dialect: schedule.Quartz}, time.Time{})
		e, ok := errors.AsType[*schedule.Error](err)
		if !ok || e.Field != c.field || e.Pos != c.pos || e.Message == "" {
			t.Errorf("%s: %+v, want one of field %s at %d", c.cron, err, c.field, c.pos)
		}
	}
	for _, spec := range []schedule.Spec{
		{Cron: "* * * * *", Dialect: "cronie"}, {Cron: "* * * * *", Dialect: schedule.Seconds6}, {Cron: "0 * * * * *", Dialect: schedule.Unix5},
		{Every: time.Minute, Dialect: schedule.Unix5}, {Every: time.Minute, DST: schedule.DST{Gap: schedule.GapSkip}},
		{Cron: "* * * * *", DST: schedule.DST{Gap: "never"}}, {Cron: "* * * * *", DST: schedule.DST{Overlap: "second"}},
	} {
		if _, err := schedule.Parse(spec, time.Time{}); err == nil {
			t.Errorf("%+v was taken", spec)
		}
	}
}

// H is one value per seed, at the same place whenever it is asked, inside its range, and jobs are spread.
func TestHashSpread(t *testing.T) {
	t.Parallel()
	from := instant(t, "2025-12-31T23:59:59Z")
	next := func(cron, seed string) time.Time {
		at, ok := parse(t, schedule.Spec{Cron: cron, Seed: seed}, time.Time{}).Next(from)
		if !ok {
			t.Fatalf("%s of %s never fires", cron, seed)
		}
		return at
	}
	minutes := map[int]int{}
	for i := range 600 {
		seed := fmt.Sprintf("ns/job-%d", i)
		at := next("H H * * *", seed)
		if again := next("H H * * *", seed); !again.Equal(at) {
			t.Fatalf("%s: %v, then %v", seed, at, again)
		}
		minutes[at.Minute()]++
		if m := next("H(10-19) 3 * * *", seed); m.Minute() < 10 || m.Minute() > 19 || m.Hour() != 3 {
			t.Errorf("H(10-19) of %s: %v", seed, m)
		}
		first := next("H/15 * * * *", seed)
		second, _ := parse(t, schedule.Spec{Cron: "H/15 * * * *", Seed: seed}, time.Time{}).Next(first)
		if first.Minute() >= 15 || second.Sub(first) != 15*time.Minute {
			t.Errorf("H/15 of %s: %v, %v", seed, first, second)
		}
		if m := next("H(0-29)/10 * * * *", seed).Minute(); m >= 10 {
			t.Errorf("H(0-29)/10 of %s begins at %d", seed, m)
		}
		if d := next("0 0 H 2 *", seed).Day(); d > 28 {
			t.Errorf("H as a day of %s: %d", seed, d)
		}
		if d := next("0 0 * * H", seed).Weekday(); d < 0 || d > 6 {
			t.Errorf("H as a weekday of %s: %d", seed, d)
		}
	}
	if len(minutes) < 55 {
		t.Errorf("600 jobs fall on %d minutes only", len(minutes))
	}
	for minute, n := range minutes {
		if n > 40 {
			t.Errorf("%d of 600 jobs fall on minute %d", n, minute)
		}
	}
	for _, bad := range []string{"H( * * * *", "H(9-5) * * * *", "H(0-60) * * * *", "H(0-9)/11 * * * *", "H/61 * * * *", "H/0 * * * *", "HH * * * *", "H-5 * * * *"} {
		if _, err := schedule.Parse(schedule.Spec{Cron: bad}, time.Time{}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// What each policy makes of one step forward and one step back.
func TestDSTPolicies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cron, after  string
		dst          schedule.DST
		want, reason string
	}{
		{"30 2 * * *", "2025-03-09T00:00:00-05:00", schedule.DST{Gap: schedule.GapShift}, "2025-03-09T03:30:00-04:00", "moved: 02:30 does not exist, the clock goes from 02:00 to 03:00"},
		{"30 2 * * *", "2025-03-09T00:00:00-05:00", schedule.DST{Gap: schedule.GapSkip}, "2025-03-10T02:30:00-04:00", "dropped before it: 02:30 does not exist, the clock goes from 02:00 to 03:00"},
		{"30 2,3 * * *", "2025-03-09T00:00:00-05:00", schedule.DST{Gap: schedule.GapShift}, "2025-03-09T03:30:00-04:00", "moved: 02:30 does not exist, the clock goes from 02:00 to 03:00"},
		{"30 2,3 * * *", "2025-03-09T03:30:00-04:00", schedule.DST{Gap: schedule.GapShift}, "2025-03-10T02:30:00-04:00", ""},
		{"0,30 2 * * *", "2025-03-09T00:00:00-05:00", schedule.DST{Gap: schedule.GapNext}, "2025-03-09T03:00:00-04:00", "moved: 02:00 does not exist, the clock goes from 02:00 to 03:00"},
		{"0,30 2 * * *", "2025-03-09T03:00:00-04:00", schedule.DST{Gap: schedule.GapNext}, "2025-03-10T02:00:00-04:00", ""},
		{"30 1 * * *", "2025-11-02T00:00:00-04:00", schedule.DST{Overlap: schedule.OverlapLast}, "2025-11-02T01:30:00-05:00", "01:30 comes twice: fires the last time only"},
		{"30 1 * * *", "2025-11-02T00:00:00-04:00", schedule.DST{Overlap: schedule.OverlapBoth}, "2025-11-02T01:30:00-04:00", "first 01:30: the clock goes back and it comes again"},
		{"30 1 * * *", "2025-11-02T01:30:00-04:00", schedule.DST{Overlap: schedule.OverlapBoth}, "2025-11-02T01:30:00-05:00", "second 01:30: the clock went back"},
		{"30 1 * * *", "2025-11-02T01:40:00-04:00", schedule.DST{Overlap: schedule.OverlapLast}, "2025-11-02T01:30:00-05:00", "01:30 comes twice: fires the last time only"},
	} {
		s := parse(t, schedule.Spec{Cron: c.cron, TimeZone: "America/New_York", DST: c.dst}, time.Time{})
		at, ok := s.Next(instant(t, c.after))
		if !ok || !at.Equal(instant(t, c.want)) {
			t.Errorf("%s %+v after %s: %v, want %s", c.cron, c.dst, c.after, at, c.want)
			continue
		}
		if got := schedule.Note(s, at); got != c.reason {
			t.Errorf("%s %+v at %v: %q, want %q", c.cron, c.dst, at, got, c.reason)
		}
	}
}

func TestPrev(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cron, before, want string }{
		{"0 0 29 2 *", "2104-02-28T00:00:00Z", "2096-02-29T00:00:00Z"},
		{"* * * * *", "2026-01-01T00:00:00.001Z", "2026-01-01T00:00:00Z"},
		{"* * * * *", "2026-01-01T00:00:00Z", "2025-12-31T23:59:00Z"}, // strictly before
		{"0 0 0 1 1 ? 2027", "2099-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"0 0 0 1 1 ? 2027", "2027-01-01T00:00:00Z", ""},
	} {
		got, ok := schedule.Prev(parse(t, schedule.Spec{Cron: c.cron}, time.Time{}), instant(t, c.before))
		if ok != (c.want != "") || ok && !got.Equal(instant(t, c.want)) {
			t.Errorf("%s before %s: %v, %v; want %q", c.cron, c.before, got, ok, c.want)
		}
	}
}

// Every zone of the database: next rises, is an instant of the schedule, and the instant before it is found back.
func TestAllZones(t *testing.T) {
	t.Parallel()
	for _, zone := range zoneNames(t) {
		for _, cron := range []string{"30 2 * * *", "*/20 * * * *", "0 0 0 L * ?"} {
			s := parse(t, schedule.Spec{Cron: cron, TimeZone: zone}, time.Time{})
			at := instant(t, "2025-10-20T00:00:00Z")
			for range 40 {
				next, ok := s.Next(at)
				if !ok || !next.After(at) || !schedule.Matches(s, next) || schedule.Matches(s, next.Add(time.Second)) {
					t.Fatalf("%s in %s after %v: %v, %v", cron, zone, at, next, ok)
				}
				at = next
			}
		}
	}
}
