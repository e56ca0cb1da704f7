package postgres

import (
	"cmp"
	"slices"
	"sync"

	"github.com/taktsched/takt/internal/store"
)

// singles are entries whose rows are known: of the newest page of each inbox those that have a row each, which never changes, and
// those that were written here since. Who consumes nothing else, and of a row that holds many all of them, so that none was taken
// before, need not look for rows.
type singles struct {
	mu   sync.Mutex
	of   map[int]map[int64]bool
	rows map[int]map[int64]*store.BulkRow // by partition and entry
}

// singlesKept bounds what is known of a partition; what somebody else consumes is forgotten so.
const singlesKept = 4096

func (s *singles) note(partition int, entries []entry) {
	ids := map[int64]bool{}
	for i := range entries {
		if entries[i].alone {
			ids[entries[i].ID] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[int]map[int64]bool{}
	}
	s.of[partition] = ids
}

// add keeps entries that were written, and rows that hold many.
func (s *singles) add(partition int, ids []int64, rows []store.BulkRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[int]map[int64]bool{}
	}
	if s.rows == nil {
		s.rows = map[int]map[int64]*store.BulkRow{}
	}
	if of := s.of[partition]; of == nil || len(of) >= singlesKept {
		s.of[partition] = map[int64]bool{}
	}
	if of := s.rows[partition]; of == nil || len(of) >= singlesKept {
		s.rows[partition] = map[int64]*store.BulkRow{}
	}
	for _, id := range ids {
		s.of[partition][id] = true
	}
	for i := range rows {
		for id := rows[i].First(); id <= rows[i].ID; id++ {
			s.rows[partition][id] = &rows[i]
		}
	}
}

// divide gives the rows that are all consumed, and the entries that have a row each; known: there is nothing else.
func (s *singles) divide(partition int, ids []int64) (taken []store.BulkTaken, rest []int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, of := map[int64]bool{}, map[*store.BulkRow]int{}
	for _, id := range ids {
		row := s.rows[partition][id]
		switch {
		case s.of[partition][id]:
			rest = append(rest, id)
		case row == nil || seen[id]:
			return nil, nil, false
		default:
			of[row]++
		}
		seen[id] = true
	}
	for row, n := range of {
		if n != row.Items {
			return nil, nil, false
		}
		taken = append(taken, store.BulkTaken{BulkRow: *row})
	}
	slices.SortFunc(taken, func(a, b store.BulkTaken) int { return cmp.Compare(a.ID, b.ID) })
	return taken, rest, true
}
