package job

import (
	"fmt"
	"strings"
)

// SetError is the refusal of a set of documents: nothing was written. Its Items are in the order of the set.
type SetError struct{ Items []ItemError }

// ItemError is what is wrong with one document of a set.
type ItemError struct {
	Index    int
	Calendar bool // Index counts the calendars of the set
	Err      *Error
}

// Add notes that the document at index is refused; an error without a kind is one of ours.
func (s *SetError) Add(index int, err *Error) {
	s.Items = append(s.Items, ItemError{Index: index, Err: err})
}

// AddCalendar notes that the calendar at index is refused.
func (s *SetError) AddCalendar(index int, err *Error) {
	s.Items = append(s.Items, ItemError{Index: index, Calendar: true, Err: err})
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
func (s *SetError) Unwrap() []error {
	all := make([]error, len(s.Items))
	for i := range s.Items {
		all[i] = s.Items[i].Err
	}
	return all
}
