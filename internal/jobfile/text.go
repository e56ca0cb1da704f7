package jobfile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// plainText takes off a byte order mark, which editors on Windows write, and refuses bytes that are no text.
func plainText(file string, data []byte) ([]byte, Errors) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	line, column := 1, 1
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == 0:
			return nil, Errors{{File: file, Line: line, Column: column, Message: "NUL in the text", Hint: "is this a text file?"}}
		case r == utf8.RuneError && size == 1:
			return nil, Errors{{File: file, Line: line, Column: column, Message: "the text is not UTF-8", Hint: "save the file as UTF-8"}}
		case r == '\n':
			line, column = line+1, 0
		}
		column++
		rest = rest[size:]
	}
	return data, nil
}

// strict finds what the schema's own judge lets pass: names in another case, and NUL in texts.
func (d *Doc) strict(registry huma.Registry, s *huma.Schema, path string, value any) (faults Errors) {
	for s != nil && s.Ref != "" {
		s = registry.SchemaFromRef(s.Ref)
	}
	switch v := value.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			faults = append(faults, d.At(path, "NUL in the text", "leave it out"))
		}
		if s == nil {
			break
		}
		var e *Error
		switch {
		case isDuration(s):
			e = d.checkDuration(path, v)
		case s.Format == "date-time":
			e = d.checkInstant(path, v)
		}
		if e != nil {
			faults = append(faults, e)
		}
	case []any:
		var items *huma.Schema
		if s != nil {
			items = s.Items
		}
		for i, x := range v {
			faults = append(faults, d.strict(registry, items, fmt.Sprintf("%s[%d]", path, i), x)...)
		}
	case map[string]any:
		for name, x := range v {
			sub := join(path, name)
			var field *huma.Schema
			if s != nil {
				if meant := otherCase(s, name); meant != "" {
					e := d.At(sub, "unknown field", "did you mean "+meant+"?")
					at := d.places.key(sub)
					e.Line, e.Column = at.line, at.column
					faults = append(faults, e)
				}
				field = propertyOf(s, name)
			}
			if strings.ContainsRune(name, 0) {
				faults = append(faults, d.At(path, "NUL in a name", "leave it out"))
			}
			faults = append(faults, d.strict(registry, field, sub, x)...)
		}
	}
	return faults
}

// otherCase is the field whose name differs from a given one by its case alone; "" when there is none.
func otherCase(s *huma.Schema, name string) string {
	if s.Properties[name] != nil {
		return ""
	}
	var meant []string
	for f := range s.Properties {
		if strings.EqualFold(f, name) {
			meant = append(meant, f)
		}
	}
	if len(meant) == 0 {
		return ""
	}
	return slices.Min(meant)
}
