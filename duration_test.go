package takt

import (
	"strings"
	"testing"
	"time"
)

// What is no duration is told why, and what may be written.
func TestParseDurationSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"20y": `the unit "y"`, "1h30min": `the unit "min"`, "5S": `the unit "S"`, "-5m": "is negative", "-1h30m": "is negative", "5": "no unit", "1h30": "no unit",
		"9999d": "more than ten years", "3661d": "at most 3660d", "12345678901ms": "nine digits", "0.1234567s": "six behind the point",
		"": "no duration", "soon": "no duration", "5 m": "no duration", "--5m": "no duration", "m": "no duration", strings.Repeat("9", 100): "no duration",
	} {
		if d, err := ParseDuration(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want an error with %q", text, d, err, want)
		}
	}
	for text, want := range map[string]time.Duration{"0": 0, "3660d": 3660 * 24 * time.Hour, "1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond} {
		if d, err := ParseDuration(text); err != nil || d.Std() != want {
			t.Errorf("%q: %v, %v", text, d, err)
		}
	}
}
