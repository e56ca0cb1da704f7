package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/schedule"
)

// lengthOf reads a flag that takes a length of time, more than none.
func lengthOf(flag, text string) (time.Duration, error) {
	d, err := takt.ParseDuration(text)
	if err != nil {
		return 0, usage(flag + ": " + err.Error())
	}
	if d <= 0 {
		return 0, usage(flag + " " + text + ": it must be more than 0, such as 90s, 6h or 7d")
	}
	return d.Std(), nil
}

// lengthOrInstant reads a flag that takes a length of time, or an instant; d is 0 for that.
func lengthOrInstant(flag, text string) (d time.Duration, at time.Time, err error) {
	if at, _, err = schedule.ReadInstant(text, nil, false); err == nil {
		return 0, at, nil
	}
	if bad, ok := errors.AsType[*schedule.Error](err); ok && bad.Field != "" {
		_, _, err = instantOf(flag, text, nil)
		return 0, at, err
	}
	const instant = "an instant such as 2026-11-28T00:00:00+08:00"
	length, err := takt.ParseDuration(text)
	switch {
	case err != nil && strings.Contains(err.Error(), "is no duration"):
		err = usage(fmt.Sprintf("%s %.64q: it must be a length of time such as 7d, or %s", flag, text, instant))
	case err != nil:
		err = usage(fmt.Sprintf("%s: %v; or %s", flag, err, instant))
	case length == 0:
		err = usage(fmt.Sprintf("%s %s: it must be more than 0, such as 90s, 6h or 7d; or %s", flag, text, instant))
	}
	return length.Std(), time.Time{}, err
}

// instantOf reads an instant of a flag; zone nil: it has to name an offset or a time zone. --to is the end of a range: of a reading that
// clocks show twice it means the last.
func instantOf(flag, text string, zone *time.Location) (time.Time, *schedule.Step, error) {
	at, step, err := schedule.ReadInstant(text, zone, flag == "--to")
	if bad, ok := errors.AsType[*schedule.Error](err); ok {
		return at, nil, &failure{code: exitUsage, what: flag + ": " + bad.Message, todo: bad.Hint}
	}
	return at, step, err
}

// onClocks puts the time zone of --tz behind readings of the clocks; an instant with an offset needs none.
func onClocks(zone string, texts ...*string) error {
	if zone == "" {
		return nil
	}
	if _, err := schedule.ZoneNamed(zone); err != nil {
		return usage(fmt.Sprintf("--tz %.64q: it must be an IANA time zone such as Asia/Shanghai", zone))
	}
	read := 0
	for _, text := range texts {
		_, second := time.Parse(time.RFC3339Nano, *text)
		_, minute := time.Parse(schedule.MinuteOffset, *text)
		switch {
		case strings.Contains(*text, "["):
			return usage(fmt.Sprintf("%.64q names a time zone, and so does --tz: say it once", *text))
		case second != nil && minute != nil:
			*text, read = *text+"["+zone+"]", read+1
		}
	}
	if read == 0 {
		return usage("--tz " + zone + " has no meaning: what is given has an offset from UTC")
	}
	return nil
}
