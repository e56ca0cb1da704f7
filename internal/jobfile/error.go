package jobfile

import (
	"fmt"
	"strings"
)

// Error is one fault of a job file.
type Error struct {
	File    string
	Line    int    // from 1; 0: the whole file
	Column  int    // from 1, in characters
	Field   string // path such as spec.retry.maxAttempts; empty for a syntax error
	Message string
	Hint    string // what to do; may be empty
}

// Error is "file:line:column: field: message".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// Errors are all the faults of some files, in the order of the text.
type Errors []*Error

// Error is one line per fault.
func (es Errors) Error() string {
	lines := make([]string, 0, len(es))
	for _, e := range es {
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}
