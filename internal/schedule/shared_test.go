package schedule

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"
)

// holidays is a calendar as large as n closed days.
func holidays(n int) *Calendar {
	c := &Calendar{Name: "cn", TimeZone: "Asia/Shanghai", Weekly: []string{"MON-FRI"}, Closed: []Dates{{From: "10-01", To: "10-07", Name: "National Day"}}}
	for d := range n {
		c.Closed = append(c.Closed, Dates{From: Date(time.Date(2026, 1, 1+2*d, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)), Name: "holiday"})
	}
	return c
}

func keeping(t testing.TB, c *Calendar, n int) []Schedule {
	t.Helper()
	all := make([]Schedule, n)
	for i := range all {
		spec := Spec{Cron: fmt.Sprintf("%d 9 * * *", i%60), TimeZone: "Asia/Shanghai", Calendars: []string{"cn"}, Resolve: func(string) *Calendar {
			again := *c // as each page of rows brings its own
			return &again
		}}
		var err error
		if all[i], err = Parse(spec, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestSharedCalendar: 10,000 schedules of one calendar hold it once, one that says anything else is another one, and none is
// held when nothing keeps to it any more.
func TestSharedCalendar(t *testing.T) {
	c := holidays(200)
	before := heap()
	all := keeping(t, c, 10_000)
	each := (heap() - before) / int64(len(all))
	t.Logf("%d bytes for each of %d schedules", each, len(all))
	if first := all[0].(*closing).calendars[0]; first != all[9999].(*closing).calendars[0] {
		t.Error("two schedules have two copies of one calendar")
	}
	if each > 3000 {
		t.Errorf("a schedule takes %d bytes, of one calendar that all share", each)
	}
	runtime.KeepAlive(all)
	key := c.key()
	for end := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		runtime.GC()
		if _, held := openings.Load(key); !held {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a calendar that no schedule keeps to is held")
		}
	}
}

// TestCalendarKey: each part of a calendar makes it another one.
func TestCalendarKey(t *testing.T) {
	base := Calendar{Name: "n", TimeZone: "UTC", Weekly: []string{"MON"}, Daily: []Window{{"09:00", "10:00"}}, Open: []Dates{{"2026-01-01", "2026-01-02", "x"}}, Closed: []Dates{{"2026-01-03", "2026-01-04", "y"}}}
	seen := map[calendarKey]string{base.key(): "nothing"}
	add := func(what string, c Calendar) {
		if was, is := seen[c.key()]; is {
			t.Errorf("a calendar that changed in %s is taken for one that changed in %s", what, was)
		}
		seen[c.key()] = what
	}
	kind := reflect.TypeFor[Calendar]()
	for i := range kind.NumField() {
		c := base
		f := reflect.ValueOf(&c).Elem().Field(i)
		f.SetZero()
		add(kind.Field(i).Name, c)
	}
	moved := base
	moved.Open, moved.Closed = base.Closed, base.Open
	add("what is open and what is closed", moved)
	for i, d := range []Dates{{"2026-01-02", "2026-01-02", "x"}, {"2026-01-01", "2026-01-03", "x"}, {"2026-01-01", "2026-01-02", "z"}, {"2026-01-01", "2026-01-02x", ""}} {
		c := base
		c.Open = []Dates{d}
		add(fmt.Sprint("date ", i), c)
	}
	for i, w := range []Window{{"09:01", "10:00"}, {"09:00", "10:01"}} {
		c := base
		c.Daily = []Window{w}
		add(fmt.Sprint("window ", i), c)
	}
}

func BenchmarkKeepTo(b *testing.B) {
	c := holidays(200)
	kept := keeping(b, c, 1)
	for b.Loop() {
		keeping(b, c, 1)
	}
	runtime.KeepAlive(kept)
}
