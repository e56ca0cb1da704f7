package api

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/taktsched/takt/internal/job"
)

const (
	maxDepth      = 64 // of nested arrays and objects
	maxFieldShown = 64 // bytes of a name in an error's field path
)

// strictJSON checks a body against a shape before anything decodes it, for encoding/json is too kind:
// it takes a key twice, in any case, and puts U+FFFD for bad UTF-8. Refused: what is no JSON or has
// something behind it, invalid UTF-8, NUL, half surrogates, doubled keys, keys in a wrong case, depth
// over 64, values of a wrong type and, unless lenient, unknown keys. The error names the field and
// never its value.
func strictJSON(body []byte, s *shape, lenient bool) *job.Error {
	if !utf8.Valid(body) {
		return unparsable("invalid_utf8", "the body is not valid UTF-8").WithHint("send UTF-8 without a byte order mark")
	}
	if bytes.IndexByte(body, 0) >= 0 {
		return unparsable("nul_character", "the body holds the character NUL").WithHint("leave it out; encode binary data as base64")
	}
	if !job.ValidJSON(body) {
		return malformed(body)
	}
	w := walker{in: body, lenient: lenient, path: make([]segment, 0, 8), keys: make([][]byte, 0, 32)}
	return w.value(s)
}

func unparsable(code, format string, args ...any) *job.Error {
	return job.Errorf(job.KindInvalid, code, format, args...).WithField("body")
}

func malformed(body []byte) *job.Error {
	at := int64(len(body))
	var whole json.RawMessage
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(body, &whole)); ok {
		at = syntax.Offset
	}
	return unparsable("malformed_json", "the body is no single JSON value: it breaks at byte %d of %d", at, len(body)).
		WithHint("send one JSON object, with nothing behind it")
}

// walker goes once over JSON that is known to be well formed.
type walker struct {
	in      []byte
	at      int
	lenient bool
	path    []segment
	keys    [][]byte // of the objects around and before the value, innermost last
}

// segment is a step into the value: an index, or a key when the index is -1.
type segment struct {
	key   []byte
	index int
}

func (w *walker) value(s *shape) *job.Error {
	if len(w.path) > maxDepth {
		return unparsable("too_deep", "the body is nested deeper than %d", maxDepth).WithHint("flatten it, or pass a string")
	}
	w.space()
	c := w.in[w.at]
	if c == 'n' {
		w.at += len("null")
		return nil // absent, for every shape
	}
	if !s.admits(c) {
		return w.wrong(s)
	}
	switch c {
	case '{':
		return w.object(s)
	case '[':
		return w.list(s)
	case '"':
		text, err := w.text()
		if err != nil {
			return err
		}
		return w.word(s, text)
	case 't':
		w.at += len("true")
	case 'f':
		w.at += len("false")
	default:
		return w.number(s)
	}
	return nil
}

// admits tells whether a value that begins with c can have the shape.
func (s *shape) admits(c byte) bool {
	switch s.form {
	case formFree:
		return true
	case formObject, formDict:
		return c == '{'
	case formList:
		return c == '['
	case formString, formInstant, formText:
		return c == '"'
	case formBoolean:
		return c == 't' || c == 'f'
	default:
		return c == '-' || c >= '0' && c <= '9'
	}
}

var formNames = map[form]string{formObject: "an object", formDict: "an object", formList: "an array", formString: "a string",
	formInstant: "an instant as RFC 3339 text, such as 2026-01-31T08:00:00Z", formText: "a duration such as 90s, 1h30m, 2d or 1w, at most ten years",
	formInteger: "a whole number", formNumber: "a number", formBoolean: "true or false"}

func (w *walker) wrong(s *shape) *job.Error {
	return job.Errorf(job.KindInvalid, "wrong_type", "this field takes %s", formNames[s.form]).WithField(w.field()).
		WithHint("see the schema in /api/v1/openapi.json")
}

func (w *walker) object(s *shape) *job.Error {
	w.at++ // {
	seen := names{w: w, from: len(w.keys)}
	for w.space(); w.in[w.at] != '}'; w.space() {
		if w.in[w.at] == ',' {
			w.at++
			w.space()
		}
		key, err := w.text()
		if err != nil {
			return err
		}
		w.path = append(w.path, segment{key: key, index: -1})
		if !seen.add(key) {
			return job.Errorf(job.KindInvalid, "doubled_key", "this key is there twice").WithField(w.field()).WithHint("keep one of them")
		}
		elem, err := w.member(s, key)
		if err != nil {
			return err
		}
		w.space()
		w.at++ // :
		if err := w.value(elem); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
	}
	w.at++
	w.keys = w.keys[:seen.from]
	return nil
}

// names are the keys of one object so far: a part of the walker's stack, with an index once they are many.
type names struct {
	w     *walker
	from  int
	index map[string]struct{}
}

const manyNames = 16

// add takes a key in; false when it is there already.
func (n *names) add(key []byte) bool {
	if n.index == nil {
		for _, k := range n.w.keys[n.from:] {
			if bytes.Equal(k, key) {
				return false
			}
		}
		n.w.keys = append(n.w.keys, key)
		if len(n.w.keys)-n.from > manyNames {
			n.index = map[string]struct{}{}
			for _, k := range n.w.keys[n.from:] {
				n.index[string(k)] = struct{}{}
			}
		}
		return true
	}
	if _, twice := n.index[string(key)]; twice {
		return false
	}
	n.index[string(key)] = struct{}{}
	return true
}

var free = &shape{form: formFree}

// member finds the shape of a key's value.
func (w *walker) member(s *shape, key []byte) (*shape, *job.Error) {
	switch s.form {
	case formFree:
		return free, nil
	case formDict:
		return s.elem, nil
	}
	if known, ok := s.fields[string(key)]; ok {
		return known, nil
	}
	if exact, ok := s.folded[folded(string(key))]; ok {
		return nil, job.Errorf(job.KindInvalid, "unknown_field", "there is no such field").WithField(w.field()).
			WithHint("names are case-sensitive: write %s", exact)
	}
	if w.lenient {
		return free, nil
	}
	e := job.Errorf(job.KindInvalid, "unknown_field", "there is no such field").WithField(w.field())
	if near := nearest(string(key), s.fields); near != "" {
		return nil, e.WithHint("did you mean %s?", near)
	}
	return nil, e.WithHint("see the schema in /api/v1/openapi.json; a newer field needs a newer server")
}

func (w *walker) list(s *shape) *job.Error {
	elem := free
	if s.form == formList {
		elem = s.elem
	}
	w.at++ // [
	w.space()
	for i := 0; w.in[w.at] != ']'; i++ {
		if w.in[w.at] == ',' {
			w.at++
		}
		w.path = append(w.path, segment{index: i})
		if err := w.value(elem); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
		w.space()
	}
	w.at++
	return nil
}

// text reads a string and refuses what no store and no log can carry.
func (w *walker) text() ([]byte, *job.Error) {
	from, escaped := w.at, false
	for w.at++; w.in[w.at] != '"'; w.at++ {
		if w.in[w.at] == '\\' {
			w.at++
			escaped = true
		}
	}
	w.at++
	raw := w.in[from:w.at]
	if !escaped {
		return raw[1 : len(raw)-1], nil
	}
	if e := w.escapes(raw); e != nil {
		return nil, e
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil, malformed(w.in)
	}
	return []byte(s), nil
}

// escapes looks at the \u escapes of a string: no NUL, no half of a surrogate pair.
func (w *walker) escapes(raw []byte) *job.Error {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		r := hex4(raw[i+1:])
		i += 4
		switch {
		case r == 0:
			return unparsable("nul_character", "a string holds the character NUL").WithField(w.field()).WithHint("leave \\u0000 out; encode binary data as base64")
		case r >= 0xdc00 && r < 0xe000:
			return w.halfSurrogate()
		case r >= 0xd800 && r < 0xdc00:
			if i+6 >= len(raw) || raw[i+1] != '\\' || raw[i+2] != 'u' {
				return w.halfSurrogate()
			}
			if low := hex4(raw[i+3:]); low < 0xdc00 || low >= 0xe000 {
				return w.halfSurrogate()
			}
			i += 6
		}
	}
	return nil
}

func (w *walker) halfSurrogate() *job.Error {
	return unparsable("invalid_utf8", "a string holds half of a surrogate pair").WithField(w.field()).WithHint("send the character itself in UTF-8")
}

func hex4(b []byte) uint64 {
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return 0 // cannot be: the JSON is well formed
	}
	return n
}

// word judges a string by its shape.
func (w *walker) word(s *shape, text []byte) *job.Error {
	switch s.form {
	case formInstant:
		if t, err := time.Parse(time.RFC3339, string(text)); err != nil || t.Year() < 1970 || t.Year() > 9999 {
			return w.wrong(s)
		}
	case formText:
		into, ok := reflect.New(s.typ).Interface().(encoding.TextUnmarshaler)
		if !ok || into.UnmarshalText(text) != nil {
			return w.wrong(s)
		}
	}
	return nil
}

func (w *walker) number(s *shape) *job.Error {
	from := w.at
	for w.at < len(w.in) && strings.IndexByte("+-.0123456789eE", w.in[w.at]) >= 0 {
		w.at++
	}
	raw := w.in[from:w.at]
	var err error
	switch s.form {
	case formInteger:
		_, err = strconv.ParseInt(string(raw), 10, s.typ.Bits())
	case formNumber:
		_, err = strconv.ParseFloat(string(raw), 64)
	case formFree:
		if !w.lenient && !job.FitsFloat(string(raw)) {
			return job.Errorf(job.KindInvalid, "number_out_of_range", "this number is beyond what one of 64 bits holds").WithField(w.field()).
				WithHint("send it as text")
		}
	}
	if err != nil {
		return w.wrong(s)
	}
	return nil
}

func (w *walker) space() {
	for w.at < len(w.in) && (w.in[w.at] == ' ' || w.in[w.at] == '\n' || w.in[w.at] == '\t' || w.in[w.at] == '\r') {
		w.at++
	}
}

// field is the path of the value at hand, "body" for the whole.
func (w *walker) field() string {
	if len(w.path) == 0 {
		return "body"
	}
	var b strings.Builder
	for _, s := range w.path {
		if s.index >= 0 {
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(shown(string(s.key)))
	}
	return b.String()
}

// shown is a caller's name as it may stand in a problem: short and printable.
func shown(key string) string {
	key = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, key)
	if len(key) <= maxFieldShown {
		return key
	}
	cut := maxFieldShown
	for !utf8.RuneStart(key[cut]) {
		cut--
	}
	return key[:cut] + "…"
}
