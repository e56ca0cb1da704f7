package job

import (
	"encoding/json"
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
// Seed. The error is an
// *Error of KindInvalid or KindTooLarge whose Field is the path in a job document, such as
// "spec.retry.backoff.factor".
func (s *Spec) Validate(seed string) error {
	if !ValidName(s.Pool) {
		return invalid("bad_name", "spec.pool", "%.64q is no name", s.Pool).
			WithHint("names are 1 to 63 lower-case letters, digits, '.' and '-', with a letter or digit at both ends")
	}
	if !handlerPattern.MatchString(s.Handler) {
		return invalid("bad_name", "spec.handler", "%.64q is no name of a handler", s.Handler).
			WithHint("1 to 128 letters, digits and _ . : / -")
	}
	if err := s.validateTexts(); err != nil {
		return err
	}
	if len(s.Params) > MaxParams {
		return Errorf(KindTooLarge, "params_too_large", "params have %d bytes, at most %d are taken", len(s.Params), MaxParams).
			WithField("spec.params").WithHint("keep large inputs in your own storage and pass a reference")
	}
	if len(s.Params) > 0 && !json.Valid(s.Params) {
		return invalid("bad_json", "spec.params", "this is no JSON value")
	}
	if e := CheckMasked("spec.params", s.Params); e != nil {
		return e
	}
	if s.Shards < 0 || s.Shards > MaxShards {
		return invalid("out_of_range", "spec.shards.count", "%d is out of range 1-%d", s.Shards, MaxShards)
	}
	if err := s.validateSchedules(seed); err != nil {
		return err
	}
	for _, check := range []func() error{s.Retry.validate, s.Timeout.validate, s.Overlap.validate, s.Misfire.validate, s.AutoPause.validate} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validateTexts checks what only people read.
func (s *Spec) validateTexts() error {
	for _, x := range []struct {
		field, text string
		most        int
	}{{"spec.title", s.Title, MaxTitle}, {"spec.owner", s.Owner, MaxTitle}, {"spec.description", s.Description, MaxDescription}} {
		if n := utf8.RuneCountInString(x.text); n > x.most {
			return invalid("too_long", x.field, "it has %d characters, at most %d are taken", n, x.most)
		}
		if !utf8.ValidString(x.text) || strings.ContainsRune(x.text, 0) {
			return invalid("bad_text", x.field, "it holds NUL or bytes that are not UTF-8")
		}
	}
	return nil
}

func (s *Spec) validateSchedules(seed string) error {
	if len(s.Schedules) > MaxSchedules {
		return invalid("too_many_schedules", "spec.schedules", "a job has at most %d schedules", MaxSchedules)
	}
	seen := map[string]bool{}
	named := 0 // of spec.schedules
	for _, one := range s.Schedules {
		field := "spec.schedule"
		if one.ID != MainSchedule {
			field = fmt.Sprintf("spec.schedules[%d]", named)
			named++
		}
		if !ValidName(one.ID) || seen[one.ID] {
			return invalid("bad_name", field+".name", "%.64q is no name, or two schedules have it", one.ID)
		}
		seen[one.ID] = true
		if one.MaxRuns < 0 || one.MaxRuns > MaxRuns {
			return invalid("out_of_range", field+".maxRuns", "%d is out of range 1-%d", one.MaxRuns, MaxRuns)
		}
		planned := one.Spec
		planned.Seed = seed // as the engine reads it: some values of H never come
		planned.Resolve = alwaysOpen
		for i, name := range one.Calendars {
			if !ValidName(name) || slices.Contains(one.Calendars[:i], name) {
				return invalid("bad_name", fmt.Sprintf("%s.calendars[%d]", field, i), "%.64q is no name, or it is there twice", name)
			}
		}
		if _, err := schedule.Parse(planned, time.Time{}); err != nil {
			return badSchedule(field, err)
		}
	}
	return nil
}

// alwaysOpen stands for the calendars of a spec that is judged by itself.
func alwaysOpen(string) *schedule.Calendar { return &schedule.Calendar{} }

// badSchedule is an error of the calculus about the schedule at field.
func badSchedule(field string, err error) error {
	bad, ok := errors.AsType[*schedule.Error](err)
	if !ok {
		return invalid("bad_schedule", field, "%v", err)
	}
	if bad.Field != "" {
		field += "." + bad.Field
	}
	message := bad.Message
	if bad.Pos > 0 {
		message += fmt.Sprintf(" (at position %d)", bad.Pos)
	}
	return invalid("bad_schedule", field, "%s", message).WithHint("%s", bad.Hint)
}

func (r Retry) validate() error {
	if r.MaxAttempts < 0 || r.MaxAttempts > MaxRetries {
		return invalid("out_of_range", "spec.retry.maxAttempts", "%d is out of range 1-%d", r.MaxAttempts, MaxRetries)
	}
	if r.Factor != 0 && !(r.Factor >= 1 && r.Factor <= MaxFactor) { // also NaN
		return invalid("out_of_range", "spec.retry.backoff.factor", "%v is out of range 1-%d", r.Factor, MaxFactor)
	}
	if r.Jitter != "" && r.Jitter != JitterFull && r.Jitter != JitterNone {
		return invalid("bad_jitter", "spec.retry.backoff.jitter", "%.64q is neither full nor none", r.Jitter)
	}
	return firstBadDuration(
		bounded{"spec.retry.backoff.initial", r.Initial},
		bounded{"spec.retry.backoff.max", r.Max},
	)
}

func (t *Timeout) validate() error {
	return firstBadDuration(
		bounded{"spec.timeout.attempt", t.Attempt},
		bounded{"spec.timeout.stall", t.Stall},
		bounded{"spec.timeout.grace", t.Grace},
	)
}

type bounded struct {
	field string
	is    time.Duration
}

func firstBadDuration(all ...bounded) error {
	for _, d := range all {
		if d.is < 0 || d.is > MaxDuration {
			return invalid("out_of_range", d.field, "%v is negative or more than ten years", d.is)
		}
		if d.is%time.Millisecond != 0 {
			return invalid("out_of_range", d.field, "%v has a fraction of a millisecond", d.is).WithHint("durations are whole milliseconds")
		}
	}
	return nil
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
