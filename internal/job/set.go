package job

import (
	"fmt"
	"strings"
)

// SetError is the refusal of a set of documents: nothing was written. Its Items are in the order of the set.
type SetError struct{ Items []ItemError }

// ItemError is one thing that is wrong with one document of a set.
type ItemError struct {
	Index    int
	Calendar bool // Index counts the calendars of the set
	Err      *Error
}

// Add notes what is wrong with the document at index.
func (s *SetError) Add(index int, faults ...*Error) {
	for _, e := range faults {
		s.Items = append(s.Items, ItemError{Index: index, Err: e})
	}
}

// AddCalendar notes what is wrong with the calendar at index.
func (s *SetError) AddCalendar(index int, faults ...*Error) {
	for _, e := range faults {
		s.Items = append(s.Items, ItemError{Index: index, Calendar: true, Err: e})
	}
}

// Faults are those of all documents.
func (s *SetError) Faults() Faults {
	all := make(Faults, len(s.Items))
	for i := range s.Items {
		all[i] = s.Items[i].Err
	}
	return all
}

// Refused counts the documents.
func (s *SetError) Refused() int {
	type document struct {
		calendar bool
		index    int
	}
	all := map[document]bool{}
	for _, x := range s.Items {
		all[document{x.Calendar, x.Index}] = true
	}
	return len(all)
}

// Error is one line for each document.
func (s *SetError) Error() string {
	lines := make([]string, len(s.Items))
	for i, x := range s.Items {
		what := "document"
		if x.Calendar {
			what = "calendar"
		}
		lines[i] = fmt.Sprintf("%s %d: %v", what, x.Index, x.Err)
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the documents' errors, so that KindOf sees the first one's.
func (s *SetError) Unwrap() []error { return s.Faults().Unwrap() }
