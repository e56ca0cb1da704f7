package postgres

import (
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// pageful gathers the rows of a page: at most limit of them and store.PageBytes of what may be large in
// them, but at least one.
type pageful[T any] struct {
	limit int
	rows  []T
	bytes int
	more  bool // a row did not fit
}

// take takes a row in if it fits.
func (p *pageful[T]) take(row T, size int) bool {
	if len(p.rows) > 0 && (len(p.rows) >= p.limit || p.bytes+size > store.PageBytes) {
		p.more = true
		return false
	}
	p.rows = append(p.rows, row)
	p.bytes += size
	return true
}

// add is take for each, which errEnough ends.
func (p *pageful[T]) add(row T, size int) error {
	if !p.take(row, size) {
		return errEnough
	}
	return nil
}

// next is the text that leads behind the last row; "" when it is the last there is.
func (p *pageful[T]) next(list string, key func(T) any) string {
	if !p.more {
		return ""
	}
	return store.After(list, key(p.rows[len(p.rows)-1]))
}

// rowBytes is what a row takes at least.
const rowBytes = 512

func sizeOf(e *job.Execution) int { return rowBytes + len(e.Params) }

// sizeOfEntry leaves out the definition: entries of one job share it.
func sizeOfEntry(e *entry) int {
	if e.Request == nil {
		return rowBytes
	}
	return rowBytes + len(e.Request.Params)
}

func sizeOfDefinition(d *job.Definition) int {
	if d == nil {
		return 0
	}
	return rowBytes + len(d.Spec.Params)
}

func sizeOfShard(s *job.Shard) int {
	size := rowBytes + len(s.Checkpoint) + len(s.Result) + sizeOfFailure(s.Error)
	for i := range s.Attempts {
		size += rowBytes + sizeOfFailure(s.Attempts[i].Error)
	}
	return size
}

func sizeOfFailure(f *job.Failure) int {
	if f == nil {
		return 0
	}
	return len(f.Class) + len(f.Message)
}
