package schedule

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestRecentIsTheTail compares with a walk over everything.
func TestRecentIsTheTail(t *testing.T) {
	specs := []Spec{
		{Every: time.Second}, {Every: 7 * time.Minute}, {Cron: "* * * * *"}, {Cron: "*/5 9-10 * * *"}, {Cron: "*/3 * 2 * * *"},
		{Cron: "0 0 1 1 *"}, {Cron: "30 2 * * *", TimeZone: "Europe/Berlin"}, {Cron: "* * * * * *", Start: time.Unix(86400*20, 0)},
		{At: time.Unix(86400*3, 0)}, {Every: time.Minute, Jitter: time.Hour, Seed: "x"},
	}
	rapid.Check(t, func(t *rapid.T) {
		s, err := Parse(rapid.SampledFrom(specs).Draw(t, "spec"), time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		from := time.Unix(rapid.Int64Range(0, 86400*40).Draw(t, "from"), 0).UTC()
		before := from.Add(time.Duration(rapid.Int64Range(0, 3*86400).Draw(t, "length")) * time.Second)
		n := rapid.IntRange(0, 40).Draw(t, "n")
		var all []time.Time
		for at, ok := s.Next(from.Add(-time.Nanosecond)); ok && at.Before(before); at, ok = s.Next(at) {
			all = append(all, at)
		}
		want := all[max(len(all)-n, 0):]
		if got := Recent(s, from, before, n); !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Fatalf("got %v, want %v of %d", got, want, len(all))
		}
	})
}

// counted tells how often it was asked.
type counted struct {
	Schedule
	asked int
}

func (c *counted) Next(after time.Time) (time.Time, bool) {
	c.asked++
	return c.Schedule.Next(after)
}

// TestRecentIsCheap: ten years of seconds, and of clusters of them.
func TestRecentIsCheap(t *testing.T) {
	for _, expr := range []string{"* * * * * *", "* * 3 * * *", "*/2 0 0 1 * *"} {
		s, err := Parse(Spec{Cron: expr}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		c := &counted{Schedule: s}
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if all := Recent(c, from, from.AddDate(10, 0, 0), 100); len(all) != 100 || c.asked > 100*100 {
			t.Errorf("%s: %d instants, Next was asked %d times", expr, len(all), c.asked)
		}
	}
}
