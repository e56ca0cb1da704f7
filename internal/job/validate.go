package job

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/taktsched/takt/internal/schedule"
)

// Bounds of a job's spec.
const (
	MaxParams   = 256 << 10 // bytes of params
	MaxShards   = 10_000
	MaxRetries  = 100 // attempts by the handler's fault
	MaxFactor   = 10
	MaxDuration = schedule.MaxEvery // any length of time in a spec

	MaxSchedules   = 32
	MaxTitle       = 256 // characters of title and owner
	MaxDescription = 4 << 10
)

// MainSchedule is the name of the schedule that a document calls `schedule`; those under `schedules` have
// their own.
const MainSchedule = "main"

var (
	namePattern    = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
	handlerPattern = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,128}$`)
)

// ValidName tells whether s can name a namespace, pool, job or schedule: 1 to 63 lower-case letters,
// digits, '.' and '-', with a letter or digit at both ends.
func ValidName(s string) bool { return namePattern.MatchString(s) }

// Validate checks everything in the spec that can be checked without looking elsewhere; seed is that of its job, see
// Seed. The error is of Faults, see Faults.Err: each of KindInvalid or KindTooLarge with a Field that is the path in a job
// document, such as "spec.retry.backoff.factor".
func (s *Spec) Validate(seed string) error {
	var all Faults
	if !ValidName(s.Pool) {
		all = append(all, badName("spec.pool", s.Pool))
	}
	if !handlerPattern.MatchString(s.Handler) {
		all = append(all, invalid("bad_name", "spec.handler", "%.64q is no name of a handler", s.Handler).
			WithHint("1 to 128 letters, digits and _ . : / -"))
	}
	if s.Shards < 0 || s.Shards > MaxShards {
		all = append(all, invalid("out_of_range", "spec.shards.count", "%d is out of range 1-%d", s.Shards, MaxShards).WithHint("write a number from 1 to %d", MaxShards))
	}
	for _, found := range []Faults{s.validateTexts(), s.validateParams(), s.validateSchedules(seed), s.Retry.validate(),
		s.Timeout.validate(), s.validateAfter(), s.Overlap.validate(), s.Misfire.validate(), s.AutoPause.validate()} {
		all = append(all, found...)
	}
	return all.Err()
}

func (s *Spec) validateParams() (all Faults) {
	if len(s.Params) > MaxParams {
		return Faults{Errorf(KindTooLarge, "params_too_large", "params have %d bytes, at most %d are taken", len(s.Params), MaxParams).
			WithField("spec.params").WithHint("keep large inputs in your own storage and pass a reference")}
	}
	if len(s.Params) > 0 && !ValidJSON(s.Params) {
		return Faults{invalid("bad_json", "spec.params", "this is no JSON value").WithHint("write an object such as {\"month\": \"2026-11\"}")}
	}
	if e := CheckMasked("spec.params", s.Params); e != nil {
		all = append(all, e)
	}
	return all
}

// validateTexts checks what only people read.
func (s *Spec) validateTexts() (all Faults) {
	for _, x := range []struct {
		field, text string
		most        int
	}{{"spec.title", s.Title, MaxTitle}, {"spec.owner", s.Owner, MaxTitle}, {"spec.description", s.Description, MaxDescription}} {
		if n := utf8.RuneCountInString(x.text); n > x.most {
			all = append(all, invalid("too_long", x.field, "it has %d characters, at most %d are taken", n, x.most).WithHint("shorten it"))
		} else if !utf8.ValidString(x.text) || strings.ContainsRune(x.text, 0) {
			all = append(all, invalid("bad_text", x.field, "it holds NUL or bytes that are not UTF-8").WithHint("write plain text, as UTF-8"))
		}
	}
	return all
}

func (s *Spec) validateSchedules(seed string) (all Faults) {
	if len(s.Schedules) > MaxSchedules {
		return Faults{invalid("too_many_schedules", "spec.schedules", "a job has at most %d schedules", MaxSchedules).WithHint("one cron expression may name several times (0 9,12,18 * * *); or use several jobs")}
	}
	seen := map[string]bool{}
	named := 0 // of spec.schedules
	for i := range s.Schedules {
		one := &s.Schedules[i]
		field := "spec.schedule"
		if one.ID != MainSchedule {
			field = fmt.Sprintf("spec.schedules[%d]", named)
			named++
		}
		switch {
		case !ValidName(one.ID):
			all = append(all, badName(field+".name", one.ID))
		case seen[one.ID]:
			all = append(all, invalid("bad_name", field+".name", "another schedule has the name %s", one.ID).WithHint("names are single in a job"))
		}
		seen[one.ID] = true
		all = append(all, one.validate(field, seed)...)
	}
	return all
}

func (s *Schedule) validate(field, seed string) (all Faults) {
	if s.MaxRuns < 0 || s.MaxRuns > MaxRuns {
		all = append(all, invalid("out_of_range", field+".maxRuns", "%d is out of range 1-%d", s.MaxRuns, MaxRuns).WithHint("write a number from 1 to %d, or leave it out for no bound", MaxRuns))
	}
	named := len(all)
	for i, name := range s.Calendars {
		switch at := fmt.Sprintf("%s.calendars[%d]", field, i); {
		case !ValidName(name):
			all = append(all, badName(at, name))
		case slices.Contains(s.Calendars[:i], name):
			all = append(all, invalid("bad_name", at, "the calendar %q is there twice", name).WithHint("keep one of them"))
		}
	}
	planned := s.Spec
	planned.Seed = seed // as the engine reads it: some values of H never come
	planned.Resolve = alwaysOpen
	if len(all) > named {
		planned.Calendars = nil // the calculus would tell of them again
	}
	for _, bad := range schedule.Faults(planned, time.Time{}) {
		all = append(all, badSchedule(field, bad))
	}
	return all
}

// alwaysOpen stands for the calendars of a spec that is judged by itself.
func alwaysOpen(string) *schedule.Calendar { return &schedule.Calendar{} }

// badSchedule is an error of the calculus about the schedule at field.
func badSchedule(field string, err error) *Error {
	bad, ok := errors.AsType[*schedule.Error](err)
	if !ok {
		return invalid("bad_schedule", field, "%v", err).WithHint("`takt cron next` shows what a schedule means")
	}
	code := "schedule_not_single"
	if bad.Field != "" {
		code, field = "bad_schedule", field+"."+bad.Field
	}
	message := bad.Message
	if bad.Pos > 0 {
		message += fmt.Sprintf(" (at position %d)", bad.Pos)
	}
	return invalid(code, field, "%s", message).WithHint("%s", bad.Hint)
}

func (r Retry) validate() (all Faults) {
	if r.MaxAttempts < 0 || r.MaxAttempts > MaxRetries {
		all = append(all, invalid("out_of_range", "spec.retry.maxAttempts", "%d is out of range 1-%d", r.MaxAttempts, MaxRetries).WithHint("write a number from 1 (no second attempt) to %d", MaxRetries))
	}
	if r.Factor != 0 && !(r.Factor >= 1 && r.Factor <= MaxFactor) { // also NaN
		all = append(all, invalid("out_of_range", "spec.retry.backoff.factor", "%v is out of range 1-%d", r.Factor, MaxFactor).WithHint("write a number from 1 (the same pause each time) to %d", MaxFactor))
	}
	if r.Jitter != "" && r.Jitter != JitterFull && r.Jitter != JitterNone {
		all = append(all, invalid("bad_jitter", "spec.retry.backoff.jitter", "%.64q is neither full nor none", r.Jitter).WithHint("write full or none"))
	}
	return append(all, badDurations(
		bounded{"spec.retry.backoff.initial", r.Initial},
		bounded{"spec.retry.backoff.max", r.Max},
	)...)
}

func (t *Timeout) validate() Faults {
	return badDurations(
		bounded{"spec.timeout.attempt", t.Attempt},
		bounded{"spec.timeout.stall", t.Stall},
		bounded{"spec.timeout.grace", t.Grace},
	)
}

type bounded struct {
	field string
	is    time.Duration
}

func badDurations(of ...bounded) (all Faults) {
	for _, d := range of {
		if d.is < 0 || d.is > MaxDuration {
			all = append(all, invalid("out_of_range", d.field, "%s is negative or more than ten years", schedule.Length(d.is)).WithHint("from 0s to 3660d, such as 90s, 1h30m or 2d"))
		} else if d.is%time.Millisecond != 0 {
			all = append(all, invalid("out_of_range", d.field, "%s has a fraction of a millisecond", schedule.Length(d.is)).WithHint("durations are whole milliseconds"))
		}
	}
	return all
}

func invalid(code, field, format string, args ...any) *Error {
	return Errorf(KindInvalid, code, format, args...).WithField(field)
}

// FitsFloat tells whether a number of JSON is one of 64 bits too, as most readers of JSON take it: neither beyond the
// greatest, nor so small that only zero is left. Digits may be lost.
func FitsFloat(number string) bool {
	f, err := strconv.ParseFloat(number, 64)
	digits, _, _ := strings.Cut(strings.ToLower(number), "e")
	return err == nil && (f != 0 || !strings.ContainsAny(digits, "123456789"))
}
