package schedule_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/schedule"
)

func parse(t testing.TB, spec schedule.Spec, anchor time.Time) schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(spec, anchor)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func instant(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestEvery(t *testing.T) {
	t.Parallel()
	anchor := instant(t, "2026-01-01T00:00:00.250999Z") // counts from whole milliseconds
	s := parse(t, schedule.Spec{Every: 90 * time.Second}, anchor)
	for _, c := range []struct{ after, want string }{
		{"2025-06-01T00:00:00Z", "2026-01-01T00:01:30.250Z"},         // the first is one period after the anchor
		{"2026-01-01T00:00:00.250Z", "2026-01-01T00:01:30.250Z"},     // the anchor is not due
		{"2026-01-01T00:01:30.249999Z", "2026-01-01T00:01:30.250Z"},  // just before
		{"2026-01-01T00:01:30.250Z", "2026-01-01T00:03:00.250Z"},     // strictly after
		{"2026-01-01T00:01:30.250001Z", "2026-01-01T00:03:00.250Z"},  // just after
		{"2126-01-01T00:00:00Z", "2126-01-01T00:00:00.250Z"},         // a century later
		{"2026-01-01T00:02:00+01:00", "2026-01-01T00:01:30.250000Z"}, // zones of arguments do not matter
	} {
		if got, ok := s.Next(instant(t, c.after)); !ok || !got.Equal(instant(t, c.want)) {
			t.Errorf("after %s: %v, %v; want %s", c.after, got, ok, c.want)
		}
	}
	if got, ok := s.Next(time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)); ok {
		t.Errorf("at the end of time: %v", got)
	}
}

// A rate with a phase counts from 1970 whatever the anchor; a whole period as its phase is none of it.
func TestPhase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		phase time.Duration
		want  string
	}{
		{10 * time.Minute, "2026-01-01T00:10:00Z"},
		{time.Hour, "2026-01-01T01:00:00Z"},
		{time.Millisecond, "2026-01-01T01:00:00.001Z"},
	} {
		s := parse(t, schedule.Spec{Every: time.Hour, Phase: c.phase}, instant(t, "2026-01-01T00:07:31.250Z"))
		if got, ok := s.Next(instant(t, "2026-01-01T00:07:31.250Z")); !ok || !got.Equal(instant(t, c.want)) {
			t.Errorf("phase %s: %v, %v; want %s", c.phase, got, ok, c.want)
		}
	}
}

func TestAt(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{At: instant(t, "2026-05-05T12:00:00.0005+02:00")}, time.Time{})
	want := instant(t, "2026-05-05T10:00:00Z") // whole milliseconds, so that the instant is after itself in no reading
	if got, ok := s.Next(want.Add(-time.Nanosecond)); !ok || !got.Equal(want) {
		t.Errorf("before: %v, %v; want %v", got, ok, want)
	}
	if got, ok := s.Next(want); ok {
		t.Errorf("at the instant: %v", got)
	}
}

func TestZonePrefix(t *testing.T) {
	t.Parallel()
	for _, spec := range []schedule.Spec{
		{Cron: "CRON_TZ=Europe/Berlin 30 2 * * *"},
		{Cron: "TZ=Europe/Berlin\t30 2 * * *", TimeZone: "Europe/Berlin"},
		{Cron: "30 2 * * *", TimeZone: "Europe/Berlin"},
	} {
		got, ok := parse(t, spec, time.Time{}).Next(instant(t, "2026-07-01T00:00:00Z"))
		if want := instant(t, "2026-07-01T00:30:00Z"); !ok || !got.Equal(want) {
			t.Errorf("%+v: %v, %v; want %v", spec, got, ok, want)
		}
	}
}

func TestNextFarAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expr, after, want string }{
		{"0 0 29 2 *", "2096-02-29T12:00:00Z", "2104-02-29T00:00:00Z"},   // 2100 is no leap year
		{"0 0 29 2 */7", "2088-02-29T12:00:00Z", "2128-02-29T00:00:00Z"}, // a Sunday again after 40 years
		{"@yearly", "9998-01-01T12:00:00Z", "9999-01-01T00:00:00Z"},
		{"@yearly", "9999-01-01T12:00:00Z", ""},
		{"@hourly", "9999-12-31T00:00:00Z", ""},
	} {
		got, ok := parse(t, schedule.Spec{Cron: c.expr, TimeZone: "America/New_York"}, time.Time{}).Next(instant(t, c.after))
		if !ok || c.want == "" {
			if ok != (c.want != "") {
				t.Errorf("%s after %s: %v, %v; want %q", c.expr, c.after, got, ok, c.want)
			}
			continue
		}
		zone, err := time.LoadLocation("America/New_York")
		if err != nil {
			t.Fatal(err)
		}
		if local := got.In(zone).Format("2006-01-02T15:04:05Z"); local != c.want {
			t.Errorf("%s after %s: %v; want %s local", c.expr, c.after, local, c.want)
		}
	}
}

func TestMacros(t *testing.T) {
	t.Parallel()
	for macro, want := range map[string]string{
		"@hourly": "2026-05-05T11:00:00Z", "@Daily": "2026-05-06T00:00:00Z", "@midnight": "2026-05-06T00:00:00Z",
		"@weekly": "2026-05-10T00:00:00Z", "@monthly": "2026-06-01T00:00:00Z",
		"@yearly": "2027-01-01T00:00:00Z", "@ANNUALLY": "2027-01-01T00:00:00Z",
	} {
		got, ok := parse(t, schedule.Spec{Cron: macro}, time.Time{}).Next(instant(t, "2026-05-05T10:31:00Z"))
		if !ok || !got.Equal(instant(t, want)) {
			t.Errorf("%s: %v, %v; want %s", macro, got, ok, want)
		}
	}
}

// Count of a fixed rate and of a walk agree, whatever the limit: a stopped count goes on from last.
func TestCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		anchor := time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "anchor"))
		every := rapid.IntRange(1, 4000).Draw(t, "every")
		spec := schedule.Spec{Every: time.Duration(every) * time.Second}
		s, err := schedule.Parse(spec, anchor)
		if err != nil {
			t.Fatal(err)
		}
		after := anchor.Add(time.Duration(rapid.Int64Range(-1e9, 1e14).Draw(t, "after")))
		until := after.Add(time.Duration(rapid.Int64Range(-1e9, 1e13).Draw(t, "length")))
		n, last, done := schedule.Count(s, after, until, 1)
		if !done {
			t.Fatal("a fixed rate is always counted to the end")
		}
		walked, at := 0, after
		var newest time.Time
		for limit, ended := rapid.IntRange(1, 50).Draw(t, "limit"), false; !ended; {
			var part int
			var partLast time.Time
			part, partLast, ended = schedule.Count(walk{s}, at, until, limit)
			if part > limit || !ended && part != limit {
				t.Fatalf("walked %d of at most %d, done %v", part, limit, ended)
			}
			walked += part
			if part > 0 {
				newest, at = partLast, partLast
			}
		}
		if n != walked || !last.Equal(newest) {
			t.Fatalf("counted %d up to %v, walked %d up to %v", n, last, walked, newest)
		}
	})
}

// walk hides what a schedule is, so that Count walks it.
type walk struct{ schedule.Schedule }

func TestCountLongGap(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Spec{Every: time.Second}, instant(t, "2000-01-01T00:00:00Z"))
	n, last, done := schedule.Count(s, instant(t, "2001-01-01T00:00:00Z"), instant(t, "2101-01-01T00:00:00Z"), 10)
	if want := 36524 * 86400; n != want || !last.Equal(instant(t, "2101-01-01T00:00:00Z")) || !done {
		t.Errorf("a century of seconds: %d, %v, %v; want %d", n, last, done, want)
	}
	c := parse(t, schedule.Spec{Cron: "* * * * *"}, time.Time{})
	n, last, done = schedule.Count(c, instant(t, "2026-01-01T00:00:00Z"), instant(t, "2026-01-01T00:10:00Z"), 10)
	if n != 10 || !last.Equal(instant(t, "2026-01-01T00:10:00Z")) || !done {
		t.Errorf("just the limit: %d, %v, %v", n, last, done)
	}
}

func TestNote(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expr, zone, after, want string }{
		{"30 2 * * *", "America/New_York", "2025-03-09T00:00:00-05:00", "moved: 02:30 does not exist, the clock goes from 02:00 to 03:00"},
		{"30 2 * * *", "America/New_York", "2025-03-10T00:00:00-04:00", ""},
		{"30 1 * * *", "America/New_York", "2025-11-02T00:00:00-04:00", "01:30 comes twice: fires the first time only"},
		{"0 * * * *", "America/New_York", "2025-11-02T00:30:00-04:00", "first 01:00: the clock goes back and it comes again"},
		{"0 * * * *", "America/New_York", "2025-11-02T01:00:00-04:00", "second 01:00: the clock went back"},
		{"15 30 * * * *", "America/New_York", "2025-03-09T01:45:00-05:00", "dropped before it: 02:30:15 does not exist, the clock goes from 02:00 to 03:00"},
		{"15 30 * * * *", "America/New_York", "2025-03-09T03:45:00-04:00", ""},
		{"0 3 * * *", "America/New_York", "2025-03-09T00:00:00-05:00", ""},
	} {
		s := parse(t, schedule.Spec{Cron: c.expr, TimeZone: c.zone}, time.Time{})
		at, _ := s.Next(instant(t, c.after))
		if got := schedule.Note(s, at); got != c.want {
			t.Errorf("%s at %v: %q, want %q", c.expr, at, got, c.want)
		}
	}
	if got := schedule.Note(parse(t, schedule.Spec{Every: time.Hour}, time.Time{}), time.Time{}); got != "" {
		t.Errorf("a fixed rate has no notes: %q", got)
	}
}

// What parses fires: after any instant of our age there is a next one, on the right side.
func FuzzParse(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.Expr, v.Zone, v.From.Unix())
	}
	f.Add("TZ=Europe/Berlin 0/7 1-5/2,9 * JAN-mar,12 */2", "", int64(0))
	f.Fuzz(func(t *testing.T, expr, zone string, unix int64) {
		s, err := schedule.Parse(schedule.Spec{Cron: expr, TimeZone: zone}, time.Time{})
		if err != nil {
			return
		}
		from := time.Unix(unix%7e10, 1)
		next, ok := s.Next(from)
		if ok != (from.Year() < 9960) && from.Year() < 9960 {
			t.Fatalf("%q in %q never fires after %v", expr, zone, from)
		}
		if ok && !next.After(from) {
			t.Fatalf("%q in %q: %v is not after %v", expr, zone, next, from)
		}
		schedule.Note(s, next)
	})
}

func BenchmarkParse(b *testing.B) {
	spec := schedule.Spec{Cron: "*/5 8-18 * * MON-FRI", TimeZone: "Europe/Berlin"}
	b.ReportAllocs()
	for b.Loop() {
		parse(b, spec, time.Time{})
	}
}

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct{ name, expr, zone string }{
		{"minutely", "* * * * *", "Europe/Berlin"},
		{"daily", "30 2 * * *", "America/New_York"},
		{"leap day", "0 0 29 2 *", "Europe/Berlin"},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := parse(b, schedule.Spec{Cron: c.expr, TimeZone: c.zone}, time.Time{})
			from := instant(b, "2025-01-01T00:00:00Z")
			at := from
			for b.Loop() {
				next, ok := s.Next(at)
				if !ok || next.Year() > 2060 {
					next = from
				}
				at = next
			}
		})
	}
}

// A walk that begins inside the second pass of an overlap (a restart, say) does not fire readings again.
func TestNextFromInsideOverlap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expr, zone, after, want string }{
		{"0,30 1 * * *", "America/New_York", "2025-11-02T01:10:00-05:00", "2025-11-03T01:00:00-05:00"},
		{"30 1 * * *", "America/New_York", "2025-11-02T01:00:00-05:00", "2025-11-03T01:30:00-05:00"},
		{"30 1 * * *", "America/New_York", "2025-11-02T01:29:59.999-05:00", "2025-11-03T01:30:00-05:00"},
		{"30 1,2 * * *", "America/New_York", "2025-11-02T01:10:00-05:00", "2025-11-02T02:30:00-05:00"},
		{"30 2 * * *", "Antarctica/Troll", "2025-10-26T02:10:00+00:00", "2025-10-27T02:30:00+00:00"},
		{"*/30 1 * * *", "America/New_York", "2025-11-02T01:10:00-05:00", "2025-11-02T01:30:00-05:00"},
	} {
		got, ok := parse(t, schedule.Spec{Cron: c.expr, TimeZone: c.zone}, time.Time{}).Next(instant(t, c.after))
		if !ok || !got.Equal(instant(t, c.want)) {
			t.Errorf("%s in %s after %s: %v, %v; want %s", c.expr, c.zone, c.after, got, ok, c.want)
		}
	}
}
