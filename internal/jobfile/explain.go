package jobfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/taktsched/takt"
)

// explain words a fault of the schema for the person who wrote the file.
// lengthWanted ends what is said of a text that takt.LengthPattern refuses.
const lengthWanted = "a length of time above 0"

func (d *Doc) explain(err error, reg huma.Registry, schema *huma.Schema) *Error {
	var detail *huma.ErrorDetail
	if !errors.As(err, &detail) {
		return d.At("", err.Error(), "`takt schema` shows what a document holds")
	}
	field, msg := detail.Location, detail.Message
	switch {
	case msg == validation.MsgUnexpectedProperty:
		e := d.At(field, "unknown field", "")
		at := d.places.key(field)
		e.Line, e.Column = at.line, at.column
		around, name := cutLast(field)
		e.Hint = knownFields(reg, schema, around, name)
		return e
	case strings.HasPrefix(msg, "expected required property"):
		name := strings.TrimSuffix(strings.TrimPrefix(msg, "expected required property "), " to be present")
		e := d.At(field, name+" is missing", absent(reg, schemaAt(reg, schema, join(field, name)), name))
		e.lacks = name
		return e
	case msg == validation.MsgExpectedString, msg == validation.MsgExpectedBoolean, msg == validation.MsgExpectedNumber,
		msg == validation.MsgExpectedInteger, msg == validation.MsgExpectedArray, msg == validation.MsgExpectedObject:
		e := d.At(field, fmt.Sprintf("wrong type: %s, got %s", msg, jsonType(detail.Value)), instead(reg, schemaAt(reg, schema, field)))
		switch detail.Value.(type) {
		case float64, bool:
			if msg == validation.MsgExpectedString {
				e.Hint = "put it in quotes"
			}
		}
		return e
	case strings.Contains(msg, takt.DurationPattern), strings.HasSuffix(msg, lengthWanted):
		message, hint := fmt.Sprintf("%v is no duration", detail.Value), "write 90s, 1h30m, 2d or 1w"
		if strings.HasSuffix(msg, lengthWanted) {
			message, hint = fmt.Sprintf("%v is no length of time above 0", detail.Value), hint+", or leave it out for the default"
		}
		if text, ok := detail.Value.(string); ok {
			if _, err := takt.ParseDuration(text); err != nil {
				message, hint, _ = strings.Cut(err.Error(), ": ")
			}
		}
		return d.At(field, message, hint)
	case strings.HasPrefix(msg, "expected string to match pattern "):
		pattern := strings.TrimPrefix(msg, "expected string to match pattern ")
		hint := "it must match " + pattern
		if pattern == namePattern {
			hint = nameHint
		}
		return d.At(field, fmt.Sprintf("%.80q does not fit", detail.Value), hint)
	}
	at := schemaAt(reg, schema, field)
	hint := instead(reg, at)
	if field == "kind" && at != nil && slices.Contains(at.Enum, any("Job")) { // by the schema of a job one of an unknown kind is judged
		hint = "documents of jobs are of kind Job, those of calendars of kind Calendar"
	}
	return d.At(field, msg, hint)
}

// namePattern is what takt.JobMetadata asks of names.
const namePattern = `^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`

func jsonType(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		return fmt.Sprintf("the string %.40q", v)
	case bool:
		return fmt.Sprintf("the boolean %v", v)
	case float64:
		return fmt.Sprintf("the number %v", v)
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}
	return fmt.Sprintf("%T", v)
}

// knownFields names the field that was probably meant, else all that may stand there.
func knownFields(reg huma.Registry, s *huma.Schema, around, name string) string {
	if s = schemaAt(reg, s, around); s == nil {
		return "leave it out"
	}
	names := writable(s)
	best, bestAt := "", 3
	for _, f := range names {
		if n := distance(strings.ToLower(f), strings.ToLower(name)); n < bestAt || n == bestAt && f < best {
			best, bestAt = f, n
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	if len(names) == 0 {
		return "leave it out: nothing stands there"
	}
	return "known here: " + strings.Join(names, ", ")
}

// propertyOf is the schema of a field, or of every value where the names are free.
func propertyOf(s *huma.Schema, name string) *huma.Schema {
	if p := s.Properties[name]; p != nil {
		return p
	}
	values, _ := s.AdditionalProperties.(*huma.Schema)
	return values
}

// distance counts the single-character edits between two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			edit := diagonal
			if a[i-1] != b[j-1] {
				edit++
			}
			diagonal = row[j]
			row[j] = min(edit, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
