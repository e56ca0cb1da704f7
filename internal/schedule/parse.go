package schedule

import (
	"fmt"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones are known where the machine has no zone files (Windows, small images)
)

// MaxText bounds the text of a cron expression, in bytes.
const MaxText = 256

// MaxEvery bounds the period of a fixed rate.
const MaxEvery = 3660 * 24 * time.Hour

// Error says what is wrong with a Spec.
type Error struct {
	Field   string // "cron", "dialect", "timeZone", "dst", "dst.gap", "dst.overlap", "every", "delay", "at"; "" when several fields are at odds
	Message string // what is wrong and why
	Hint    string // what to write instead; may be empty
	Pos     int    // of the wrong part in Cron, in bytes, 1 is the first; 0: no single place
}

// Error is the message with its place.
func (e *Error) Error() string {
	s := e.Message
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Pos > 0 {
		s += fmt.Sprintf(" (at position %d)", e.Pos)
	}
	return s
}

// Parse makes the schedule of a spec. anchor is the instant from which `every` counts, cut to whole
// milliseconds: the job's creation. Every error is an *Error.
//
// A schedule is immutable and may be used by several goroutines. Its instants are whole milliseconds in
// UTC, from the year 1 to 9999.
func Parse(spec Spec, anchor time.Time) (Schedule, error) {
	s, err := parseBase(spec, anchor)
	if err != nil {
		return nil, err
	}
	if s, err = keepTo(s, spec); err != nil {
		return nil, err
	}
	if spec.Jitter < 0 || spec.Jitter > MaxJitter || spec.Jitter%time.Millisecond != 0 {
		return nil, &Error{Field: "jitter", Message: fmt.Sprintf("%s is no spread", Length(spec.Jitter)), Hint: "from 1ms to 1h, in whole milliseconds"}
	}
	if spec.Jitter > 0 {
		s = jittered{s, spec.Seed, spec.Jitter.Milliseconds()}
	}
	if spec.Start.IsZero() && spec.End.IsZero() {
		return s, nil
	}
	if !spec.End.IsZero() && spec.End.Before(spec.Start) {
		return nil, &Error{Field: "endAt", Message: "it comes before the start", Hint: "name an end behind startAt, or leave one of the two out"}
	}
	w := window{s, spec.Start, spec.End}
	// What lies in the window is not known to who checks a definition before it has an anchor or a seed.
	_, anchored := base(s).(rate)
	open := anchored && spec.Phase == 0 || spec.Seed == "" && (spec.Jitter > 0 || hashed(spec.Cron))
	if !open && !w.fires() {
		return nil, emptyWindow(&spec)
	}
	return w, nil
}

// emptyWindow says that nothing lies between start and end.
func emptyWindow(spec *Spec) *Error {
	e := &Error{Field: "endAt", Message: "no planned instant lies between start and end, so the job would never run", Hint: "name an end further ahead, or leave endAt out"}
	if spec.End.IsZero() {
		e.Field, e.Message, e.Hint = "startAt", "no planned instant lies behind the start, so the job would never run", "name an earlier start, or leave startAt out"
	}
	if len(spec.Calendars) > 0 {
		e.Hint = "what its calendars close does not count: give them the days to come"
	}
	return e
}

// parseBase reads the one of cron, every and at that is set.
func parseBase(spec Spec, anchor time.Time) (Schedule, error) {
	set := 0
	for _, is := range []bool{spec.Cron != "", spec.Every != 0, spec.Delay != 0, !spec.At.IsZero()} {
		if is {
			set++
		}
	}
	switch {
	case set == 0:
		return nil, &Error{Message: "one of cron, every, delay and at is needed (0s is none)", Hint: "leave the schedule out for a job that runs on request only"}
	case set > 1:
		return nil, &Error{Message: "only one of cron, every, delay and at can be set", Hint: "keep one of them"}
	case spec.Phase != 0 && spec.Every == 0:
		return nil, &Error{Field: "phase", Message: "a phase has a meaning for every only", Hint: "leave phase out, or write every"}
	case spec.Cron != "":
		return parseCron(spec)
	case spec.TimeZone != "" && len(spec.Calendars) == 0:
		return nil, &Error{Field: "timeZone", Message: "a time zone has a meaning for cron and for calendars only", Hint: "leave timeZone out: an instant of at has its offset, a length of time needs none"}
	case spec.Dialect != "":
		return nil, &Error{Field: "dialect", Message: "a dialect has a meaning for cron only", Hint: "leave dialect out"}
	case spec.DST != DST{}:
		return nil, &Error{Field: "dst", Message: "what steps of the clock do has a meaning for cron only", Hint: "leave dst out"}
	case spec.Every != 0:
		return parseEvery(spec, anchor)
	case spec.Delay != 0:
		return parseDelay(spec)
	default:
		return parseAt(spec.At)
	}
}

// keepTo lays calendars over a schedule.
func keepTo(s Schedule, spec Spec) (Schedule, error) {
	if len(spec.Calendars) == 0 {
		if spec.Closed != "" {
			return nil, &Error{Field: "closed", Message: "what becomes of closed days has a meaning with calendars only", Hint: "name calendars, or leave closed out"}
		}
		return s, nil
	}
	if len(spec.Calendars) > MaxCalendars {
		return nil, &Error{Field: "calendars", Message: fmt.Sprintf("at most %d calendars are taken", MaxCalendars), Hint: "put the days of several into one"}
	}
	c := &closing{Schedule: s, zone: Zone(s), policy: spec.Closed}
	switch c.policy {
	case "":
		c.policy = ClosedSkip
	case ClosedSkip, ClosedNext, ClosedPrevious:
	default:
		return nil, policyError("closed", string(spec.Closed), "skip, next or previous")
	}
	if spec.Cron == "" {
		zone, err := loadZone(spec.TimeZone)
		if err != nil {
			return nil, err
		}
		c.zone = zone
	}
	for i, name := range spec.Calendars {
		var cal *Calendar
		if spec.Resolve != nil {
			cal = spec.Resolve(name)
		}
		if cal == nil {
			return nil, &Error{Field: fmt.Sprintf("calendars[%d]", i), Message: fmt.Sprintf("there is no calendar %.64q", name), Hint: "apply it first, or in the same set"}
		}
		named := *cal
		if named.Name == "" {
			named.Name = name
		}
		o, err := named.ready()
		if err != nil {
			return nil, &Error{Field: fmt.Sprintf("calendars[%d]", i), Message: fmt.Sprintf("calendar %s: %s", name, err.Error()), Hint: "mend the calendar, and apply it again"}
		}
		c.calendars = append(c.calendars, o)
	}
	return c, nil
}

func parseCron(spec Spec) (Schedule, error) {
	dst := spec.DST.filled()
	if err := dst.check(); err != nil {
		return nil, err
	}
	text, zone := spec.Cron, spec.TimeZone
	body, pos := text, 0
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		rest, ok := strings.CutPrefix(text, prefix)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(strings.ReplaceAll(rest, "\t", " "), " ")
		if zone != "" && zone != name {
			return nil, &Error{Field: "timeZone", Pos: len(prefix) + 1,
				Message: fmt.Sprintf("the expression says %.64q, the time zone says %.64q", name, zone), Hint: "say it once"}
		}
		if name == "" {
			return nil, &Error{Field: "timeZone", Pos: len(prefix) + 1, Message: "the name of the time zone is missing",
				Hint: "write " + prefix + "Europe/Berlin in front of the expression, or name the time zone beside it"}
		}
		zone, pos = name, len(prefix)+len(name)
		body = text[pos:]
		if strings.Trim(body, " \t") == "" {
			return nil, &Error{Field: "cron", Pos: pos + 1, Message: "a time zone without an expression", Hint: example}
		}
		break
	}
	location, err := loadZone(zone)
	if err != nil {
		if pos > 0 {
			err.Pos = pos - len(zone) + 1
		}
		return nil, err
	}
	dialect := spec.Dialect
	if dialect == "" {
		dialect = DialectOf(body)
	}
	expr, err := ParseExpression(body, dialect, spec.Seed)
	if err != nil {
		if err.Pos > 0 {
			err.Pos += pos
		}
		return nil, err
	}
	return &cron{expr: expr, zone: location, dst: dst}, nil
}

func policyError(field, got, want string) *Error {
	return &Error{Field: field, Message: fmt.Sprintf("%.32q is no policy", got), Hint: "one of " + want}
}

// zones are the locations that were loaded, by name: there are some 600 names, and a location has several
// kilobytes that thousands of jobs would otherwise hold each for itself.
var zones sync.Map

// loadZone finds an IANA zone; "" is UTC.
func loadZone(name string) (*time.Location, *Error) {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil //nolint:forcetypeassert // nothing else is stored
	}
	bad := &Error{Field: "timeZone", Message: fmt.Sprintf("%.64q is no IANA time zone", name),
		Hint: "write a name such as Europe/Berlin or UTC"}
	if name == "Local" { // would be another zone on every server
		return nil, bad
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, bad
	}
	zones.Store(name, location)
	return location, nil
}

// ZoneNamed finds an IANA zone. Errors: *Error.
func ZoneNamed(name string) (*time.Location, error) {
	zone, bad := loadZone(name)
	if bad != nil {
		return nil, bad
	}
	return zone, nil
}

// base is the innermost schedule: without window, spread and calendars.
func base(s Schedule) Schedule {
	for {
		switch outer := s.(type) {
		case window:
			s = outer.Schedule
		case jittered:
			s = outer.Schedule
		case *closing:
			s = outer.Schedule
		default:
			return s
		}
	}
}

// Reading tells in which dialect a schedule's expression was read; "" when it has none.
func Reading(s Schedule) Dialect {
	if c, ok := base(s).(*cron); ok {
		return c.expr.dialect
	}
	return ""
}

// Zone is the time zone of a cron schedule, UTC for others.
func Zone(s Schedule) *time.Location {
	if c, ok := base(s).(*cron); ok {
		return c.zone
	}
	return time.UTC
}
