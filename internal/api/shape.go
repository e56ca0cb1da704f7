package api

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// form is what a JSON value has to look like.
type form int

const (
	formFree    form = iota // any JSON value
	formObject              // fields with known names
	formDict                // free names, values of one shape
	formList                // values of one shape
	formString              // a string
	formInstant             // a string in RFC 3339
	formText                // a string that the type itself reads
	formInteger             // a number without fraction that fits
	formNumber              // a number
	formBoolean
)

// shape is what strict JSON is checked against, derived once per type.
type shape struct {
	form   form
	fields map[string]*shape // of formObject, by exact name
	folded map[string]string // of formObject: lower case → exact name
	elem   *shape            // of formDict and formList
	typ    reflect.Type      // of formText and formInteger
}

var (
	rawType     = reflect.TypeFor[json.RawMessage]()
	bytesType   = reflect.TypeFor[[]byte]() // base64
	timeType    = reflect.TypeFor[time.Time]()
	textDecoder = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// shapeOf derives the shape of a request type. Types with a form of their own that is not listed here
// are a wiring mistake and panic at start-up.
func shapeOf(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == rawType:
		return &shape{form: formFree}
	case t == bytesType:
		return &shape{form: formString}
	case t == timeType:
		return &shape{form: formInstant}
	case reflect.PointerTo(t).Implements(textDecoder):
		return &shape{form: formText, typ: t}
	}
	switch t.Kind() {
	case reflect.Struct:
		return structShape(t)
	case reflect.Map:
		return &shape{form: formDict, elem: shapeOf(t.Elem())}
	case reflect.Slice:
		return &shape{form: formList, elem: shapeOf(t.Elem())}
	case reflect.String:
		return &shape{form: formString}
	case reflect.Bool:
		return &shape{form: formBoolean}
	case reflect.Int, reflect.Int64, reflect.Int32:
		return &shape{form: formInteger, typ: t}
	case reflect.Float64:
		return &shape{form: formNumber}
	default:
		panic("api: no JSON shape for " + t.String())
	}
}

func structShape(t reflect.Type) *shape {
	s := &shape{form: formObject, fields: map[string]*shape{}, folded: map[string]string{}}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			panic("api: field without a JSON name: " + t.String() + "." + f.Name)
		}
		s.fields[name] = shapeOf(f.Type)
		s.folded[folded(name)] = name
	}
	return s
}

// folded is a name as encoding/json compares it: each letter by the first of those that differ in case only, also beyond ASCII.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, name)
}
