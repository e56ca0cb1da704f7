package jobfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// nameHint is what namePattern means.
const nameHint = "names are 1 to 63 lower-case letters, digits, '.' and '-', with a letter or digit at both ends"

var listPlace = regexp.MustCompile(`\[\d+\]`)

// schemaAt is what the schema of a document says of the field at a path; nil: nothing.
func schemaAt(reg huma.Registry, s *huma.Schema, path string) *huma.Schema {
	for part := range strings.SplitSeq(listPlace.ReplaceAllString(path, ".[]"), ".") {
		if s == nil {
			return nil
		}
		switch s = resolve(reg, s); part {
		case "":
		case "[]":
			s = s.Items
		default:
			s = propertyOf(s, part)
		}
	}
	if s == nil {
		return nil
	}
	return resolve(reg, s)
}

// absent says what to write for a field that is missing.
func absent(reg huma.Registry, s *huma.Schema, name string) string {
	if s == nil {
		return "write " + name
	}
	text := s.Description
	switch s = resolve(reg, s); {
	case len(s.Enum) == 1:
		return fmt.Sprintf("write %s: %v", name, s.Enum[0])
	case s.Pattern == namePattern:
		return "write " + name + ": and a name; " + nameHint
	case text == "":
		text = s.Description
	}
	return strings.TrimSuffix("write "+name+": and "+kindOfValue(reg, s)+"; "+text, "; ")
}

// instead says what to write for a value that does not fit.
func instead(reg huma.Registry, s *huma.Schema) string {
	if s == nil {
		return "leave it out"
	}
	s = resolve(reg, s)
	bounds := limits(s)
	if len(s.Enum) > 0 {
		return "write " + bounds
	}
	return strings.TrimSuffix("write "+kindOfValue(reg, s)+": "+bounds, ": ")
}

// kindOfValue is what stands in a field, in words.
func kindOfValue(reg huma.Registry, s *huma.Schema) string {
	switch typeOf(reg, s) {
	case "duration":
		return "a length of time such as 90s, 1h30m, 2d or 1w"
	case "instant":
		return "an instant such as 2026-12-31T08:00:00+08:00"
	case "string":
		return "a text"
	case "integer":
		return "a whole number without quotes"
	case "number":
		return "a number without quotes"
	case "boolean":
		return "true or false"
	case "mapping":
		names := writable(s)
		if len(names) == 0 {
			return "a mapping such as {name: value}"
		}
		return "a mapping of " + strings.Join(names, ", ")
	}
	if s.Type == "array" {
		return "a list such as [a, b]"
	}
	return "a value"
}

// writable are the fields of a mapping that a file may hold, in order.
func writable(s *huma.Schema) (names []string) {
	for name, p := range s.Properties {
		if !p.ReadOnly {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
