package jobfile

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/taktsched/takt/internal/job"
)

// Error is one fault of a job file.
type Error struct {
	File    string
	Line    int    // from 1; 0: the whole file
	Column  int    // from 1, in characters
	Field   string // path such as spec.retry.maxAttempts; empty for a syntax error
	Message string
	Hint    string // what to do; may be empty
	Excerpt string // the line of the file and a mark below the column; may be empty

	lacks string // the field below Field that is missing
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

// has tells whether a field has a fault.
func (es Errors) has(field string) bool {
	return field != "" && slices.ContainsFunc(es, func(e *Error) bool { return e.Field == field })
}

// below tells whether a field or one inside it has a fault.
func (es Errors) below(field string) bool {
	return slices.ContainsFunc(es, func(e *Error) bool {
		rest, ok := strings.CutPrefix(e.Field, field)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// inOrder sorts by the places in the text.
func (es Errors) inOrder() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	return es
}

// show adds the lines of the file that the faults are in.
func (es Errors) show(text []byte) Errors {
	for _, e := range es {
		e.Excerpt = excerpt(text, place{e.Line, e.Column})
	}
	return es
}

// excerpt is the line at p with a mark below its column; "" when there is no such line. What is long is cut
// around the mark, whose place is counted in display cells by the width of what stands before it.
func excerpt(text []byte, p place) string {
	const most = 100
	if p.line <= 0 {
		return ""
	}
	for range p.line - 1 {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			return ""
		}
		text = text[i+1:]
	}
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		text = text[:i]
	}
	if job.SecretName(string(text)) {
		return "" // what may be a secret is shown to nobody, also not to who reads the log of a pipeline
	}
	line := []rune(strings.ReplaceAll(strings.TrimRight(string(text), "\r"), "\t", " "))
	at := min(max(p.column-1, 0), len(line))
	head := ""
	if at > most/2 {
		head, line, at = "…", line[at-most/2:], most/2
	}
	tail := ""
	if len(line) > most {
		tail, line = "…", line[:most]
	}
	blank := strings.Repeat(" ", runewidth.StringWidth(head+string(line[:at])))
	return head + string(line) + tail + "\n" + blank + "^"
}
