// Package schedule is the calculus of planned instants: cron expressions, fixed rates, one-shots, time
// zones and catch-up arithmetic. It is pure: it reads no clock and starts no goroutine; every function
// takes the instant it works from.
package schedule

import "time"

// Spec says when a job is due. Exactly one of Cron, Every and At is set.
type Spec struct {
	Cron     string        `json:"cron,omitempty"`     // 5 fields (unix5) or 6 (seconds6)
	TimeZone string        `json:"timeZone,omitempty"` // IANA name, for Cron; "" means UTC
	Every    time.Duration `json:"every,omitempty"`    // fixed rate from the anchor, ≥ 1 s, whole milliseconds
	At       time.Time     `json:"at,omitzero"`        // once
}

// Schedule yields planned instants.
type Schedule interface {
	// Next is the first planned instant strictly after the given one; false when there is none.
	Next(after time.Time) (time.Time, bool)
}
