package ical

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxSize bounds the text, in bytes.
const MaxSize = 4 << 20

// Fault is what cannot be taken, and where it stands.
type Fault struct {
	Line    int
	Message string
	Hint    string
}

// Error is the fault with its line.
func (f *Fault) Error() string { return fmt.Sprintf("line %d: %s", f.Line, f.Message) }

func faultf(line int, hint, format string, args ...any) *Fault {
	return &Fault{Line: line, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// property is one content line, unfolded.
type property struct {
	line   int // its first
	name   string
	params map[string]string
	value  string
}

// properties cuts a text into content lines: folded ones are joined, blank ones left out.
func properties(text string) (all []property, faults []*Fault) {
	if len(text) > MaxSize {
		return nil, []*Fault{faultf(1, "keep only the events that matter", "the file has more than %d MiB", MaxSize>>20)}
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, []*Fault{faultf(1, "write the file as UTF-8", "it holds NUL or bytes that are not UTF-8")}
	}
	text = strings.TrimPrefix(text, "\uFEFF")
	type folded struct {
		line int
		text strings.Builder
	}
	var lines []*folded
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		switch {
		case (strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")) && len(lines) > 0:
			lines[len(lines)-1].text.WriteString(line[1:])
		case strings.TrimSpace(line) != "":
			f := &folded{line: n}
			f.text.WriteString(line)
			lines = append(lines, f)
		}
	}
	for _, f := range lines {
		p, fault := parseLine(f.line, f.text.String())
		if fault != nil {
			faults = append(faults, fault)
			continue
		}
		all = append(all, p)
	}
	return all, faults
}

// parseLine reads NAME;PARAM=value;PARAM="quoted value":value.
func parseLine(n int, text string) (property, *Fault) {
	p := property{line: n, params: map[string]string{}}
	bad := faultf(n, "a line is NAME:value, such as DTSTART;VALUE=DATE:20261001", "%.40q is no line of iCalendar", text)
	end := strings.IndexAny(text, ";:")
	if end <= 0 {
		return p, bad
	}
	p.name, text = strings.ToUpper(text[:end]), text[end:]
	for strings.HasPrefix(text, ";") {
		name, rest, ok := strings.Cut(text[1:], "=")
		if !ok {
			return p, bad
		}
		value := ""
		if strings.HasPrefix(rest, `"`) {
			if value, rest, ok = strings.Cut(rest[1:], `"`); !ok {
				return p, bad
			}
		} else if i := strings.IndexAny(rest, ";:"); i >= 0 {
			value, rest = rest[:i], rest[i:]
		}
		p.params[strings.ToUpper(name)], text = value, rest
	}
	if !strings.HasPrefix(text, ":") {
		return p, bad
	}
	p.value = text[1:]
	return p, nil
}

// plain is a text value without its escapes, on one line.
func plain(value string) string {
	text := strings.NewReplacer(`\\`, `\`, `\n`, " ", `\N`, " ", `\;`, ";", `\,`, ",").Replace(value)
	return strings.Join(strings.Fields(text), " ")
}
