package jobfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
)

const definitions = "#/$defs/"

// Field is one field of a job document, as the server's schema has it.
type Field struct {
	Path     string  `json:"path"` // such as job.spec.retry
	Type     string  `json:"type"`
	Required bool    `json:"required,omitempty"`
	Doc      string  `json:"doc,omitempty"`
	Limits   string  `json:"limits,omitempty"` // such as 1-100
	ReadOnly bool    `json:"readOnly,omitempty"`
	Fields   []Field `json:"fields,omitempty"` // of a mapping, by name; theirs are left out
}

// jobSchema is what the API's schema says of a job; building it takes longer than using it.
var jobSchema = sync.OnceValues(func() (huma.Registry, *huma.Schema) {
	registry := huma.NewMapRegistry(definitions, huma.DefaultSchemaNamer)
	return registry, registry.Schema(reflect.TypeFor[takt.Job](), true, "Job")
})

// Schema is the JSON Schema of documents of a kind, job or calendar, for editors; false: there is no such kind.
func Schema(kind string) (text []byte, known bool, err error) {
	schema := schemas[kind]
	if schema == nil {
		return nil, false, nil
	}
	registry, root := schema()
	text, err = json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Takt " + kind, "$ref": root.Ref, "$defs": registry.Map(),
	}, "", "  ")
	if err != nil {
		return nil, true, fmt.Errorf("write the schema: %w", err)
	}
	return append(text, '\n'), true, nil
}

// Explain tells about one field, by a path such as job.spec.retry. The error names what is known there.
func Explain(path string) (Field, error) {
	names := strings.Split(path, ".")
	schema := schemas[names[0]]
	if schema == nil {
		return Field{}, fmt.Errorf("%.80q: a path begins with job or calendar", path)
	}
	registry, root := schema()
	at, required, self := resolve(registry, root), true, root
	for i, name := range names[1:] {
		next, there := at.Properties[name]
		if !there {
			around := strings.Join(names[:i+1], ".")
			hint := knownFields(registry, at, "", name)
			if len(at.Properties) == 0 {
				hint = "it has no fields"
			}
			return Field{}, fmt.Errorf("%s has no field %.40q: %s", around, name, hint)
		}
		required, self = slices.Contains(at.Required, name), next
		at = inner(registry, next)
	}
	f := field(registry, path, self, required)
	for _, name := range slices.Sorted(maps.Keys(at.Properties)) {
		f.Fields = append(f.Fields, field(registry, path+"."+name, at.Properties[name], slices.Contains(at.Required, name)))
	}
	return f, nil
}

func resolve(r huma.Registry, s *huma.Schema) *huma.Schema {
	for s.Ref != "" {
		s = r.SchemaFromRef(s.Ref)
	}
	return s
}

// inner is what the fields of s are looked for in: of a list, its items.
func inner(r huma.Registry, s *huma.Schema) *huma.Schema {
	if s = resolve(r, s); s.Items != nil {
		s = resolve(r, s.Items)
	}
	return s
}

func field(r huma.Registry, path string, s *huma.Schema, required bool) Field {
	f := Field{Path: path, Required: required, Doc: s.Description, ReadOnly: s.ReadOnly}
	s = resolve(r, s)
	if f.Doc == "" {
		f.Doc = s.Description
	}
	f.Type, f.Limits = typeOf(r, s), limits(s)
	return f
}

func isDuration(s *huma.Schema) bool {
	return s.Pattern == takt.DurationPattern || s.Pattern == takt.LengthPattern
}

func typeOf(r huma.Registry, s *huma.Schema) string {
	switch {
	case isDuration(s):
		return "duration"
	case s.Format == "date-time":
		return "instant"
	case s.Type == "array" && s.Items != nil:
		return "list of " + typeOf(r, resolve(r, s.Items))
	case s.Type == "object":
		return "mapping"
	case s.Type == "":
		return "any value"
	}
	return s.Type
}

func limits(s *huma.Schema) string {
	number := func(bound float64) string { return strconv.FormatFloat(bound, 'f', -1, 64) }
	var all []string
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		all = append(all, number(*s.Minimum)+"-"+number(*s.Maximum))
	case s.Minimum != nil:
		all = append(all, "at least "+number(*s.Minimum))
	case s.Maximum != nil:
		all = append(all, "at most "+number(*s.Maximum))
	}
	if s.MaxLength != nil {
		all = append(all, fmt.Sprintf("at most %d characters", *s.MaxLength))
	}
	if s.MaxItems != nil {
		all = append(all, fmt.Sprintf("at most %d items", *s.MaxItems))
	}
	if s.MaxProperties != nil {
		all = append(all, fmt.Sprintf("at most %d entries", *s.MaxProperties))
	}
	if len(s.Enum) > 0 {
		var words []string
		for _, v := range s.Enum {
			words = append(words, fmt.Sprint(v))
		}
		all = append(all, "one of "+strings.Join(words, ", "))
	}
	if s.Pattern == takt.LengthPattern {
		all = append(all, "more than 0s")
	} else if s.Pattern != "" && !isDuration(s) {
		all = append(all, "matches "+s.Pattern)
	}
	return strings.Join(all, "; ")
}
