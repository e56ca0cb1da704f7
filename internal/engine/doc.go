// Package engine decides everything about one partition: what is due, who runs what, which lease is
// over, which report counts, what to try again. It is a pure core: Step(now, events) → (writes,
// effects). It starts no goroutine, reads no clock, draws no random bits, touches no socket and no SQL,
// so it replays from text files (testdata/*.txt) and can be run for virtual weeks.
//
// The runner (internal/partition) owns its only goroutine: it gathers events, calls Step, commits the
// batch, and only then performs the effects.
package engine
