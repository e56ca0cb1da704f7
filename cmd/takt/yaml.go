package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// yamlOf writes a value as block YAML, its fields in the order of its JSON. Strings are written so that every
// reader takes them for strings: plain only when nothing else can be meant, as a block when they have lines,
// else as in JSON.
func yamlOf(v any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write as YAML: %w", err)
	}
	y := yamlWriter{in: json.NewDecoder(&text)}
	y.in.UseNumber()
	if err := y.value("", atTop); err != nil {
		return nil, fmt.Errorf("write as YAML: %w", err)
	}
	return y.out.Bytes(), nil
}

// spot is where a value stands.
type spot int

const (
	atTop spot = iota
	behindKey
	behindDash
)

type yamlWriter struct {
	in  *json.Decoder
	out bytes.Buffer
}

// value writes the next value.
func (y *yamlWriter) value(indent string, at spot) error {
	t, err := y.in.Token()
	if err != nil {
		return err
	}
	if t == json.Delim('{') || t == json.Delim('[') {
		return y.collection(indent, at, t == json.Delim('{'))
	}
	if at != atTop {
		y.out.WriteByte(' ')
	}
	y.out.WriteString(scalar(t, indent) + "\n")
	return nil
}

func (y *yamlWriter) collection(indent string, at spot, mapping bool) error {
	empty := map[bool]string{true: " {}\n", false: " []\n"}[mapping]
	if !y.in.More() {
		y.out.WriteString(empty)
		_, err := y.in.Token()
		return err
	}
	before := indent
	switch {
	case at == behindDash && mapping: // its first field stands on the line of the dash
		before = " "
	case at != atTop:
		y.out.WriteByte('\n')
	}
	for y.in.More() {
		y.out.WriteString(before)
		before = indent
		next := behindDash
		if mapping {
			key, err := y.in.Token()
			if err != nil {
				return err
			}
			y.out.WriteString(quoted(fmt.Sprint(key)) + ":")
			next = behindKey
		} else {
			y.out.WriteByte('-')
		}
		if err := y.value(indent+"  ", next); err != nil {
			return err
		}
	}
	_, err := y.in.Token()
	return err
}

func scalar(t json.Token, indent string) string {
	switch v := t.(type) {
	case nil:
		return "null"
	case string:
		if strings.Contains(v, "\n") && blockSafe(v) {
			return block(v, indent)
		}
		return quoted(v)
	default:
		return fmt.Sprint(v) // a number as it was, or a boolean
	}
}

var (
	plainWord = regexp.MustCompile(`^[\p{L}/]([\p{L}\p{N} _./@+-]*[\p{L}\p{N}_./@+-])?$`)
	notWords  = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
)

// quoted is a string on one line.
func quoted(s string) string {
	if plainWord.MatchString(s) && !slices.Contains(notWords, strings.ToLower(s)) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// blockSafe tells that a text of several lines keeps every character as a block.
func blockSafe(s string) bool {
	body := strings.TrimSuffix(s, "\n")
	if body == "" || strings.HasSuffix(body, "\n") {
		return false
	}
	for line := range strings.SplitSeq(body, "\n") {
		if line == "" || line != strings.TrimSpace(line) {
			return false
		}
	}
	return !strings.ContainsFunc(body, func(r rune) bool {
		return r != '\n' && r != ' ' && (!unicode.IsGraphic(r) || unicode.IsSpace(r))
	})
}

func block(s, indent string) string {
	head := "|-"
	if strings.HasSuffix(s, "\n") {
		head = "|"
	}
	return head + "\n" + indent + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n"+indent)
}
