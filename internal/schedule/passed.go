package schedule

import "time"

// Passed names the field because of which a schedule has no instant after now: "at", "endAt" or "cron"; "" when it has one, or
// may have one, which the anchor or the seed of its job decides. Calendars are not asked. Whoever writes such a schedule
// mostly did not mean it.
func Passed(spec Spec, now time.Time) (field string) {
	spec.Calendars, spec.Closed = nil, ""
	if spec.Cron == "" {
		spec.TimeZone = "" // it was theirs
	}
	if !spec.End.IsZero() && !spec.End.After(now) {
		return "endAt"
	}
	if spec.Delay != 0 {
		return "" // it counts from an end that is to come
	}
	if spec.Every != 0 && spec.Phase == 0 || spec.Seed == "" && (spec.Jitter > 0 && spec.At.IsZero() || hashed(spec.Cron)) {
		return ""
	}
	s, err := Parse(spec, now)
	if err != nil {
		return "" // that is told elsewhere
	}
	if _, ok := s.Next(now); ok {
		return ""
	}
	switch {
	case !spec.At.IsZero():
		return "at"
	case !spec.End.IsZero():
		return "endAt"
	}
	return "cron"
}

// PassedText says what Passed means.
func PassedText(field string) (message, hint string) {
	if field == "at" {
		return "this instant has passed: the schedule does not fire (again)", "name an instant that lies ahead"
	}
	if field == "endAt" {
		return "no planned instant lies between now and this end: the schedule does not fire (again)", "name an end that lies further ahead"
	}
	return "no instant that this expression names lies ahead: the schedule does not fire (again)", "name a year that lies ahead"
}
