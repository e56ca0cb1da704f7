package partition

import (
	"log/slog"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/store"
)

// Core lets tests drive the runner with a core of their own.
type Core = core

// WithCore makes a node build its cores with f.
func WithCore(c *Config, f func(engine.Config) Core) { c.newCore = f }

// Watch is the judge of one partition row.
type Watch struct{ w watch }

// See takes in a read from asked to got and tells how long the row has stood still.
func (w *Watch) See(row store.PartitionRow, asked, got time.Duration) time.Duration {
	return w.w.see(row, asked, got).still
}

// MayTake is the rule of the keeper.
func MayTake(l Lease, row store.PartitionRow, still time.Duration, self string, rank int, sole bool) bool {
	return l.mayTake(sighting{row: row, still: still}, self, rank, sole)
}

// HolderDeadline is the owner's own deadline after a call sent at before.
func HolderDeadline(l Lease, before time.Duration) time.Duration { return l.holderDeadline(before) }

// Wall is a wall clock as an engine sees it.
func Wall(read func() time.Time) func(mono time.Duration) int64 {
	w := wall{planned: stepper{read: read}, log: slog.New(slog.DiscardHandler)}
	return func(mono time.Duration) int64 { return int64(w.now(mono)) }
}

// Candidate is a live server with its marks, for Sitters.
type Candidate struct {
	Name  string // incarnation and name alike
	Marks []string
}

// Sitters are those who have to sit out.
func Sitters(all []Candidate) []string {
	var cs []candidate
	for _, c := range all {
		cs = append(cs, candidate{c.Name, c.Name, c.Marks})
	}
	return sitters(cs)
}

// OutageLines tells which lines of a database's trouble are written.
func OutageLines() func(text, code string, now time.Duration) (leftOut int, write bool) {
	return newOutage().may
}

// Digest cuts a page as a tenure does; careful: while events run one by one. The rows of setAside are left out.
func Digest(page engine.Event, careful bool, setAside ...engine.Event) []engine.Event {
	s := &seat{n: &Node{start: time.Now()}, skip: map[string]bool{}}
	for _, bad := range setAside {
		for _, key := range keysOf(bad) {
			s.skip[key] = true
		}
	}
	if careful {
		s.careful = time.Hour
	}
	return (&tenure{seat: s}).digestible(page)
}
