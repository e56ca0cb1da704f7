// Package schedule is the calculus of planned instants: cron expressions, fixed rates, one-shots, time
// zones and catch-up arithmetic. It is pure: it reads no clock and starts no goroutine; every function
// takes the instant it works from.
package schedule

import "time"

// Spec says when a job is due. Exactly one of Cron, Every, Delay and At is set.
type Spec struct {
	Cron     string        `json:"cron,omitempty"`     // in a dialect, see ParseExpression
	Dialect  Dialect       `json:"dialect,omitempty"`  // of Cron; "" means what DialectOf says
	TimeZone string        `json:"timeZone,omitempty"` // IANA name, for Cron; "" means UTC
	DST      DST           `json:"dst,omitzero"`       // what steps of the clock do to times of day, for Cron
	Every    time.Duration `json:"every,omitempty"`    // fixed rate from the anchor, ≥ 1 s, whole milliseconds
	Phase    time.Duration `json:"phase,omitempty"`    // of Every, up to one period: counts from 1970-01-01T00:00:00Z + Phase in place of the anchor; 0: from the anchor, and a whole period is what a phase of nothing is
	Delay    time.Duration `json:"delay,omitempty"`    // from the end of the last run, ≥ 1 s, whole milliseconds: see DelayOf
	At       time.Time     `json:"at,omitzero"`        // once

	Start     time.Time     `json:"start,omitzero"`      // nothing before
	End       time.Time     `json:"end,omitzero"`        // nothing after
	Jitter    time.Duration `json:"jitter,omitempty"`    // each instant moves later by up to this, as Seed and the instant say; ≤ MaxJitter
	Calendars []string      `json:"calendars,omitempty"` // names; instants keep to all of them
	Closed    ClosedPolicy  `json:"closed,omitempty"`    // for instants on days that a calendar closes; "" means skip

	// Seed gives H in Cron and Jitter their values: what names the job, and stays. It is not part of what a person wrote.
	Seed string `json:"-"`
	// Resolve finds a calendar by name; nil when there is none. A nil Resolve finds no calendar.
	Resolve func(name string) *Calendar `json:"-"`
}

// DST is what steps of the wall clock (daylight saving, changes of a zone) do to an expression that names
// times of day. Expressions whose minute or hour holds * or / are intervals and do not ask: they fire at
// every matching reading that a clock shows.
type DST struct {
	Gap     GapPolicy     `json:"gap,omitempty"`     // "" means next
	Overlap OverlapPolicy `json:"overlap,omitempty"` // "" means first
}

// GapPolicy is what becomes of readings that a step forward skipped.
type GapPolicy string

// The gap policies.
const (
	GapNext  GapPolicy = "next"  // they fire together, once, at the first instant after the step
	GapShift GapPolicy = "shift" // each fires later by the length of the step: 02:30 at 03:30
	GapSkip  GapPolicy = "skip"  // they do not fire
)

// OverlapPolicy is what becomes of readings that a step back repeats.
type OverlapPolicy string

// The overlap policies.
const (
	OverlapFirst OverlapPolicy = "first" // they fire the first time only
	OverlapLast  OverlapPolicy = "last"  // they fire the last time only
	OverlapBoth  OverlapPolicy = "both"  // they fire each time
)

// filled puts in the defaults.
func (d DST) filled() DST {
	if d.Gap == "" {
		d.Gap = GapNext
	}
	if d.Overlap == "" {
		d.Overlap = OverlapFirst
	}
	return d
}

func (d DST) check() *Error {
	switch d.Gap {
	case GapNext, GapShift, GapSkip:
	default:
		return policyError("dst.gap", string(d.Gap), "next, shift or skip")
	}
	switch d.Overlap {
	case OverlapFirst, OverlapLast, OverlapBoth:
	default:
		return policyError("dst.overlap", string(d.Overlap), "first, last or both")
	}
	return nil
}

// Schedule yields planned instants.
type Schedule interface {
	// Next is the first planned instant strictly after the given one; false when there is none.
	Next(after time.Time) (time.Time, bool)
}
