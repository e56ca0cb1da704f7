package store

import (
	"errors"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// ErrEnough ends an adapter's walk over rows without being an error.
var ErrEnough = errors.New("enough rows")

// Pageful gathers the rows of a page: at most Limit of them and PageBytes of what may be large in
// them, but at least one. For adapters.
type Pageful[T any] struct {
	Limit int
	Rows  []T
	More  bool // a row did not fit
	bytes int
}

// Take takes a row in if it fits.
func (p *Pageful[T]) Take(row T, size int) bool {
	if len(p.Rows) > 0 && (len(p.Rows) >= p.Limit || p.bytes+size > PageBytes) {
		p.More = true
		return false
	}
	p.Rows = append(p.Rows, row)
	p.bytes += size
	return true
}

// Add is Take for each, which ErrEnough ends.
func (p *Pageful[T]) Add(row T, size int) error {
	if !p.Take(row, size) {
		return ErrEnough
	}
	return nil
}

// AddDue adds a schedule. Those of one job that follow each other share their definition, and count once.
func AddDue(p *Pageful[engine.Due], d engine.Due) error {
	size := SizeOfDefinition(d.Definition)
	if n := len(p.Rows); n > 0 && p.Rows[n-1].Cursor.Job == d.Cursor.Job {
		d.Definition, size = p.Rows[n-1].Definition, 0
	}
	return p.Add(d, size)
}

// Next is the text that leads behind the last row; "" when it is the last there is.
func (p *Pageful[T]) Next(list string, key func(T) any) string {
	if !p.More {
		return ""
	}
	return After(list, key(p.Rows[len(p.Rows)-1]))
}

// RowBytes is what a row takes at least.
const RowBytes = 512

// SizeOf is what may be large in an execution, in bytes; likewise those that follow.
func SizeOf(e *job.Execution) int { return RowBytes + len(e.Params) }

// SizeOfEntry leaves out the definition: entries of one job share it.
func SizeOfEntry(e *engine.Entry) int {
	if e.Request == nil {
		return RowBytes
	}
	return RowBytes + len(e.Request.Params)
}

// SizeOfDefinition is 0 for none.
func SizeOfDefinition(d *job.Definition) int {
	if d == nil {
		return 0
	}
	return RowBytes + len(d.Spec.Params)
}

// SizeOfShard counts its attempts, too.
func SizeOfShard(s *job.Shard) int {
	size := RowBytes + len(s.Checkpoint) + len(s.Result) + sizeOfFailure(s.Error)
	for i := range s.Attempts {
		size += RowBytes + sizeOfFailure(s.Attempts[i].Error)
	}
	return size
}

func sizeOfFailure(f *job.Failure) int {
	if f == nil {
		return 0
	}
	return len(f.Class) + len(f.Message)
}
