package takt

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time in documents: "90s", "1h30m", "2d", "1w". Units: ms, s, m, h, d (24 h),
// w (7 d). It is never negative and at most 10 years.
type Duration time.Duration

// DurationPattern is the regular expression that a duration in a document matches.
const DurationPattern = `^(0|([0-9]{1,9}(\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$`

// LengthPattern is that of a duration for which 0 has no meaning of its own.
const LengthPattern = `^([0-9]{1,9}(\.[0-9]{1,6})?(ms|s|m|h|d|w))*([0-9]*[1-9][0-9]*(\.[0-9]{1,6})?|[0-9]{1,9}\.[0-9]*[1-9][0-9]*)(ms|s|m|h|d|w)([0-9]{1,9}(\.[0-9]{1,6})?(ms|s|m|h|d|w))*$`

var (
	durationWhole = regexp.MustCompile(DurationPattern)
	durationPart  = regexp.MustCompile(`([0-9.]+)(ms|s|m|h|d|w)`)
	durationUnit  = map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute,
		"h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}
)

const maxDuration = 3660 * 24 * time.Hour

// ParseDuration reads the form that documents use. The error says what is wrong, and what may be written.
func ParseDuration(s string) (Duration, error) {
	if !durationWhole.MatchString(s) {
		return 0, noDuration(s)
	}
	var sum float64
	for _, m := range durationPart.FindAllStringSubmatch(s, -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, fmt.Errorf("%.40q is no duration: %w", s, err)
		}
		sum += n * float64(durationUnit[m[2]])
	}
	if sum > float64(maxDuration) {
		return 0, fmt.Errorf("%.40q is more than ten years: at most %s is taken", s, Duration(maxDuration))
	}
	return Duration(sum), nil
}

var (
	durationSigned = regexp.MustCompile(`^-([0-9.]+(ms|s|m|h|d|w))+$`)
	durationPieces = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?[A-Za-zµμ]*)+$`)
	durationName   = regexp.MustCompile(`[0-9]([A-Za-zµμ]*)`)
)

// noDuration says why s is none.
func noDuration(s string) error {
	if durationSigned.MatchString(s) {
		return fmt.Errorf("%.40q is negative: a length of time is 0 or more, such as 90s, 1h30m, 2d or 1w", s)
	}
	if len(s) <= 40 && durationPieces.MatchString(s) {
		for _, m := range durationName.FindAllStringSubmatch(s+" ", -1) {
			if _, known := durationUnit[m[1]]; !known && m[1] != "" {
				return fmt.Errorf("%q has the unit %q, which is none: the units are ms, s, m, h, d and w, the longest duration %s (ten years)", s, m[1], Duration(maxDuration))
			}
		}
		if last := s[len(s)-1]; last >= '0' && last <= '9' {
			return fmt.Errorf("%q has no unit: write %ss, %sm, %sh or %sd", s, s, s, s, s)
		}
		return fmt.Errorf("%q is too long a number: at most nine digits are taken, and six behind the point", s)
	}
	return fmt.Errorf("%.40q is no duration: write 90s, 1h30m, 2d or 1w", s)
}

// Std is d as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String is the shortest form with whole units, such as 1h30m, 250ms or 30d; weeks only where nothing is left over.
func (d Duration) String() string {
	if d == 0 {
		return "0"
	}
	ms := time.Duration(d).Milliseconds()
	var b strings.Builder
	for _, u := range []struct {
		name string
		ms   int64
	}{{"w", 7 * 24 * 3_600_000}, {"d", 24 * 3_600_000}, {"h", 3_600_000}, {"m", 60_000}, {"s", 1_000}, {"ms", 1}} {
		if n := ms / u.ms; n > 0 && (u.name != "w" || ms%u.ms == 0) {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			ms -= n * u.ms
		}
	}
	if b.Len() == 0 {
		return "0"
	}
	return b.String()
}

// MarshalText writes String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := ParseDuration(string(b))
	*d = v
	return err
}
