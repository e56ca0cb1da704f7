package schedule

import (
	"fmt"
	"strings"
	"time"
)

// MinuteOffset is RFC 3339 without seconds.
const MinuteOffset = "2006-01-02T15:04Z07:00"

// withOffset are the ways to write an instant with its offset from UTC.
var withOffset = []string{time.RFC3339Nano, MinuteOffset}

// readings are the ways to write an instant as a reading of the clocks of a zone.
var readings = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// ReadInstant reads an instant as people write it: with an offset, or as a reading of the clocks of the zone that stands behind it in
// brackets (2026-03-08T02:30[Asia/Shanghai]), else of the given zone; nil: it has to name one. Of a reading that the clocks show twice
// the first is meant, or the last. One that a step of them skipped is the first instant behind it, and step tells of it. Errors: *Error,
// of the field timeZone when the text names no zone that is known.
func ReadInstant(text string, zone *time.Location, last bool) (at time.Time, step *Step, err error) {
	if bare, name, is := ZoneBehind(text); is {
		own, bad := loadZone(name)
		if bad != nil {
			return at, nil, bad
		}
		text, zone = bare, own
	}
	if reading, is := bareReading(text); is && zone != nil {
		all, step := Readings(zone, reading)
		switch {
		case step != nil:
			return step.At.In(zone), step, nil
		case last:
			return all[len(all)-1].In(zone), nil, nil
		}
		return all[0].In(zone), nil, nil
	}
	for _, layout := range withOffset {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil, nil
		}
	}
	e := &Error{Message: fmt.Sprintf("%.64q is no instant", text), Hint: "write 2026-03-08T02:30:00+08:00, or 2026-03-08T02:30[Asia/Shanghai] on the clocks of a time zone"}
	if zone != nil {
		e.Hint = fmt.Sprintf("write 2026-03-08T02:30:00+08:00, or 2026-03-08T02:30 on the clocks of %s, or 2026-03-08T02:30[Asia/Shanghai] on those of another time zone", zone)
	}
	return at, nil, e
}

// ZoneBehind parts a reading from the time zone that stands behind it, as RFC 9557 has it: 2026-03-08T02:30[Asia/Shanghai]. An
// instant with an offset has none.
func ZoneBehind(text string) (reading, zone string, is bool) {
	reading, zone, _ = strings.Cut(text, "[")
	if zone, is = strings.CutSuffix(zone, "]"); !is {
		return text, "", false
	}
	if _, is = bareReading(reading); !is || zone == "" {
		return text, "", false
	}
	return reading, zone, true
}

// ReadingOf is the reading that text is, whatever zone stands behind it, as if the clocks stood in UTC; false: it is none.
func ReadingOf(text string) (reading time.Time, is bool) {
	text, _, _ = strings.Cut(text, "[")
	return bareReading(text)
}

func bareReading(text string) (reading time.Time, is bool) {
	for _, layout := range readings {
		if reading, err := time.Parse(layout, text); err == nil {
			return reading, true
		}
	}
	return time.Time{}, false
}
