package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/schedule"
)

// The twin knows no calendar arithmetic, no spans and no bit sets: it holds every second or minute of
// time against the expression, remembers what the wall clock has shown, and looks for skipped readings by
// comparing the clock with the tick before.

type twin struct {
	match    [6][64]bool // second minute hour day month weekday
	either   bool
	interval bool
	tick     time.Duration
	dst      schedule.DST
	quartz   *quartzTwin // its days and years, in place of the last fields
}

var limits = [6][2]int{{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}}

func newTwin(text string) twin {
	fields := strings.Fields(text)
	w := twin{tick: time.Second}
	if len(fields) == 5 {
		fields = append([]string{"0"}, fields...)
		w.tick = time.Minute
	}
	for i, f := range fields {
		for item := range strings.SplitSeq(f, ",") {
			var low, high int
			step := 1
			span, steps, stepped := strings.Cut(item, "/")
			if stepped {
				fmt.Sscan(steps, &step)
			}
			switch n, _ := fmt.Sscanf(span, "%d-%d", &low, &high); {
			case span == "*":
				low, high = limits[i][0], limits[i][1]
			case n == 1 && stepped:
				high = limits[i][1]
			case n == 1:
				high = low
			}
			for v := low; v <= high; v += step {
				w.match[i][v] = true
			}
		}
	}
	w.either = fields[3][0] != '*' && fields[5][0] != '*'
	w.interval = strings.ContainsAny(fields[1]+fields[2], "*/")
	return w
}

func (w twin) matches(clock time.Time) bool {
	if !w.match[4][int(clock.Month())] || !w.match[2][clock.Hour()] || !w.match[1][clock.Minute()] || !w.match[0][clock.Second()] {
		return false
	}
	if w.quartz != nil {
		return w.quartz.matches(clock)
	}
	day := w.match[3][clock.Day()]
	weekday := w.match[5][int(clock.Weekday())] || clock.Weekday() == time.Sunday && w.match[5][7]
	if w.either {
		return day || weekday
	}
	return day && weekday
}

// shows is what the wall clock shows, as if it were UTC.
func shows(zone *time.Location, t time.Time) time.Time {
	year, month, day := t.In(zone).Date()
	hour, minute, second := t.In(zone).Clock()
	return time.Date(year, month, day, hour, minute, second, 0, time.UTC)
}

// comesAgain looks for a later tick that shows the same reading.
func comesAgain(zone *time.Location, t time.Time) bool {
	now := shows(zone, t)
	for d := 5 * time.Minute; d < 50*time.Hour; d += 5 * time.Minute {
		if shows(zone, t.Add(d)).Equal(now) {
			return true
		}
	}
	return false
}

// fires are the planned instants in (from, until].
func (w twin) fires(zone *time.Location, from, until time.Time) []time.Time {
	start := from.Truncate(w.tick).Add(-30 * time.Hour) // a shifted reading may come long after the step
	if w.dst.Gap != schedule.GapShift {
		start = from.Truncate(w.tick).Add(-time.Hour)
	}
	latest := shows(zone, start)
	for t := start.Add(-50 * time.Hour); t.Before(start); t = t.Add(time.Minute) { // steps come between minutes
		if end := shows(zone, t.Truncate(time.Minute).Add(time.Minute-w.tick)); end.After(latest) {
			latest = end
		}
	}
	late := map[time.Time]bool{} // shifted by a step
	var fired []time.Time
	for t := start.Add(w.tick); !t.After(until); t = t.Add(w.tick) {
		now := shows(zone, t)
		due := w.matches(now)
		if !w.interval {
			switch w.dst.Overlap {
			case schedule.OverlapLast:
				due = due && !comesAgain(zone, t)
			case schedule.OverlapBoth:
			default:
				due = due && now.After(latest)
			}
			for skipped := latest.Add(w.tick); skipped.Before(now); skipped = skipped.Add(w.tick) {
				if !w.matches(skipped) {
					continue
				}
				switch w.dst.Gap {
				case schedule.GapShift:
					late[t.Add(skipped.Sub(latest.Add(w.tick)))] = true
				case schedule.GapSkip:
				default:
					due = true
				}
			}
			due = due || late[t]
		}
		if now.After(latest) {
			latest = now
		}
		if due && t.After(from) {
			fired = append(fired, t)
		}
	}
	return fired
}

// moments are zones with an instant at which their clocks step.
var moments = []struct {
	zone string
	at   string
}{
	{"America/New_York", "2025-03-09T07:00:00Z"}, {"America/New_York", "2025-11-02T06:00:00Z"},
	{"Europe/Berlin", "2026-03-29T01:00:00Z"}, {"Europe/Berlin", "2026-10-25T01:00:00Z"},
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"}, {"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	{"America/Sao_Paulo", "2018-11-04T03:00:00Z"}, {"America/Santiago", "2025-09-07T04:00:00Z"},
	{"Africa/Cairo", "2025-04-24T22:00:00Z"}, {"Antarctica/Troll", "2025-10-26T01:00:00Z"},
	{"Africa/Casablanca", "2025-02-23T02:00:00Z"}, {"Africa/Casablanca", "2025-04-06T02:00:00Z"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z"}, {"Asia/Kathmandu", "1985-12-31T18:30:00Z"},
	{"Asia/Pyongyang", "2018-05-04T15:00:00Z"}, {"UTC", "2024-02-29T00:00:00Z"},
	{"Europe/London", "2090-03-26T01:00:00Z"}, {"America/Caracas", "2016-05-01T07:00:00Z"},
	{"America/New_York", "2040-12-31T12:00:00Z"}, {"Australia/Lord_Howe", "2044-12-31T00:00:00Z"}, // see spanAt
}

func item(low, high int) *rapid.Generator[string] {
	value := rapid.IntRange(low, high)
	return rapid.Custom(func(t *rapid.T) string {
		a := value.Draw(t, "a")
		switch rapid.IntRange(0, 5).Draw(t, "form") {
		case 0:
			return fmt.Sprintf("%d-%d", a, rapid.IntRange(a, high).Draw(t, "b"))
		case 1:
			return fmt.Sprintf("%d-%d/%d", a, rapid.IntRange(a, high).Draw(t, "b"), rapid.IntRange(1, high).Draw(t, "step"))
		case 2:
			return fmt.Sprintf("%d/%d", a, rapid.IntRange(1, high).Draw(t, "step"))
		default:
			return fmt.Sprint(a)
		}
	})
}

func fieldText(low, high int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 5).Draw(t, "field") {
		case 0, 1:
			return "*"
		case 2:
			return fmt.Sprintf("*/%d", rapid.IntRange(1, high).Draw(t, "step"))
		default:
			return strings.Join(rapid.SliceOfN(item(low, high), 1, 3).Draw(t, "items"), ",")
		}
	})
}

// expression draws one of 5 or 6 fields that has hours near the steps of the clocks more often.
func expression(fields int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := make([]string, 0, 6)
		for _, l := range limits[6-fields:] {
			parts = append(parts, fieldText(l[0], l[1]).Draw(t, "text"))
		}
		if rapid.Bool().Draw(t, "near") {
			parts[len(parts)-4] = rapid.SampledFrom([]string{"0", "1", "2", "1,2", "0-3", "2,3", "23"}).Draw(t, "hour")
		}
		if rapid.Bool().Draw(t, "daily") {
			parts[len(parts)-3], parts[len(parts)-2] = "*", "*"
		}
		return strings.Join(parts, " ")
	})
}

// compare walks a stretch around a step with the schedule and with the twin.
func compare(t *rapid.T, text string, w twin, dialect schedule.Dialect, stretch time.Duration) {
	w.dst = schedule.DST{
		Gap:     rapid.SampledFrom([]schedule.GapPolicy{"", schedule.GapNext, schedule.GapShift, schedule.GapSkip}).Draw(t, "gap"),
		Overlap: rapid.SampledFrom([]schedule.OverlapPolicy{"", schedule.OverlapFirst, schedule.OverlapLast, schedule.OverlapBoth}).Draw(t, "overlap"),
	}
	m := rapid.SampledFrom(moments).Draw(t, "moment")
	step, err := time.Parse(time.RFC3339, m.at)
	if err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation(m.zone)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schedule.Parse(schedule.Spec{Cron: text, Dialect: dialect, TimeZone: m.zone, DST: w.dst}, time.Time{})
	if err != nil {
		if strings.Contains(err.Error(), "never comes") {
			t.Skip("never fires")
		}
		t.Fatal(err)
	}
	reach := rapid.SampledFrom([]time.Duration{stretch / 2, 3 * time.Hour}).Draw(t, "reach")
	from := step.Add(time.Duration(rapid.Int64Range(-int64(reach), int64(reach)).Draw(t, "offset")))
	until := from.Add(stretch)
	want := w.fires(zone, from, until)
	at := from
	for i := 0; ; i++ {
		next, ok := s.Next(at)
		if !ok || next.After(until) {
			if i < len(want) {
				t.Fatalf("%q in %s (%+v) after %v: %v, %v; want %v", text, m.zone, w.dst, at, next, ok, want[i])
			}
			return
		}
		if !next.After(at) {
			t.Fatalf("%q in %s: %v does not come after %v", text, m.zone, next, at)
		}
		if prev, ok := schedule.Prev(s, next); i > 0 && (!ok || !prev.Equal(at)) {
			t.Fatalf("%q in %s (%+v): before %v comes %v, %v; want %v", text, m.zone, w.dst, next, prev, ok, at)
		}
		schedule.Note(s, next)
		if i >= len(want) || !next.Equal(want[i]) {
			t.Fatalf("%q in %s (%+v) after %v: %v; want %v", text, m.zone, w.dst, at, next, want[min(i, len(want)):])
		}
		at = next
	}
}

func TestNextAgainstTwin(t *testing.T) {
	t.Parallel()
	t.Run("minutes", rapid.MakeCheck(func(t *rapid.T) {
		text := expression(5).Draw(t, "expr")
		compare(t, text, newTwin(text), "", 4*24*time.Hour)
	}))
	t.Run("seconds", rapid.MakeCheck(func(t *rapid.T) {
		text := expression(6).Draw(t, "expr")
		compare(t, text, newTwin(text), "", 4*time.Hour)
	}))
	t.Run("quartz", rapid.MakeCheck(func(t *rapid.T) {
		text := quartzExpression().Draw(t, "expr")
		compare(t, text, newQuartzTwin(text), schedule.Quartz, 33*24*time.Hour)
	}))
}
