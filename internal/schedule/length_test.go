package schedule_test

import (
	"math"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

// Lengths of time are written in one way: days are days, what is rounded up carries, and nothing is zero but the whole.
func TestLengths(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for d, want := range map[time.Duration][2]string{ // exact, and for people
		0:                      {"0s", "0s"},
		250 * time.Millisecond: {"250ms", "250ms"},
		3200*time.Millisecond + 400*time.Microsecond: {"3.2004s", "3.2s"},
		4 * time.Minute:                     {"4m", "4m"},
		time.Hour + 200*time.Millisecond:    {"1h200ms", "1h"},
		90 * time.Minute:                    {"1h30m", "1h30m"},
		26 * time.Hour:                      {"1d2h", "1d2h"},
		365*day - time.Second:               {"364d23h59m59s", "365d"},
		365 * day:                           {"365d", "365d"},
		-365*day + time.Second:              {"-364d23h59m59s", "-365d"},
		-90 * time.Second:                   {"-1m30s", "-1m30s"},
		math.MinInt64:                       {"-106751d23h47m16.854775807s", "-106751d23h47m16.854775807s"},
		48*time.Hour - 200*time.Millisecond: {"1d23h59m59.8s", "2d"},
	} {
		if got := [2]string{schedule.Length(d), schedule.Span(d)}; got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
