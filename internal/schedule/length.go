package schedule

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Length writes a length of time for people, exactly and without what is zero of it: 250ms, 3.2s, 4m, 1h30m, 365d.
func Length(d time.Duration) string {
	if d < 0 {
		return "-" + Length(-max(d, -math.MaxInt64))
	}
	var b strings.Builder
	for _, u := range []struct {
		name string
		is   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}} {
		if n := d / u.is; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.name)
			d %= u.is
		}
	}
	if d > 0 || b.Len() == 0 {
		b.WriteString(d.String())
	}
	return b.String()
}

// Span is the Length of so much of a time that has passed, or is to pass, as a person needs.
func Span(d time.Duration) string {
	switch a := d.Abs(); {
	case a < 10*time.Second:
		return Length(d.Round(time.Millisecond))
	case a < 48*time.Hour:
		return Length(d.Round(time.Second))
	default:
		return Length(d.Round(time.Hour))
	}
}
