package filter

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Error is a text that is no filter.
type Error struct {
	Position int // byte of the text where the fault begins, from 0
	Message  string
	Hint     string
}

// Error says where and what.
func (e *Error) Error() string { return fmt.Sprintf("at character %d: %s", e.Position+1, e.Message) }

type parser struct {
	text string
	at   int
	now  time.Time
}

func (p *parser) skip() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t' || p.text[p.at] == '\n' || p.text[p.at] == '\r') {
		p.at++
	}
}

// term reads [-]field op value[,value]….
func (p *parser) term() (Term, error) {
	var t Term
	if p.text[p.at] == '-' {
		t.Not = true
		p.at++
	}
	begin := p.at
	for p.at < len(p.text) && (p.text[p.at] >= 'a' && p.text[p.at] <= 'z' || p.text[p.at] == '_') {
		p.at++
	}
	t.Field = p.text[begin:p.at]
	k, known := fields[t.Field]
	if !known {
		return t, p.noField(begin)
	}
	opAt := p.at
	if t.Op = p.op(); t.Op == "" {
		return t, &Error{opAt, fmt.Sprintf("after %s comes : or a comparison", t.Field), "such as " + t.Field + example[k]}
	}
	if k < isNumber && t.Op != Is {
		return t, &Error{opAt, t.Field + " can only be compared with :", "such as " + t.Field + example[k]}
	}
	err := p.values(&t, k)
	return t, err
}

var example = map[kind]string{isText: ":billing-*", isState: ":failed,timed_out", isTrigger: ":schedule", isNumber: ">8", isLength: ">30s",
	isInstant: ">2h, or " + "<2026-11-01T00:00:00Z"}

func (p *parser) noField(begin int) error {
	end := begin
	for end < len(p.text) && end < begin+40 && !strings.ContainsRune(" \t\n\r:<>=", rune(p.text[end])) {
		end++
	}
	return &Error{begin, fmt.Sprintf("%q is no field", strings.ToValidUTF8(p.text[begin:end], "\uFFFD")),
		"the fields are " + strings.Join(slices.Sorted(maps.Keys(fields)), ", ")}
}

func (p *parser) op() Op {
	for _, op := range []Op{AtMost, AtLeast, Less, More, Is} {
		if strings.HasPrefix(p.text[p.at:], string(op)) {
			p.at += len(op)
			return op
		}
	}
	return ""
}

// values reads what a field is compared with.
func (p *parser) values(t *Term, k kind) error {
	for {
		begin := p.at
		v, err := p.value()
		if err != nil {
			return err
		}
		if v == "" {
			return &Error{begin, "a value is missing", "such as " + t.Field + example[k]}
		}
		if k >= isNumber {
			n, fault := p.number(v, k, &t.Op)
			if fault != "" {
				return &Error{begin, fmt.Sprintf("%.60q is %s", v, fault), "such as " + t.Field + example[k]}
			}
			t.Number = n
		} else {
			if list := words[k]; list != nil && !slices.Contains(list, v) {
				return &Error{begin, fmt.Sprintf("%.60q is no %s", v, t.Field), "one of " + strings.Join(list, ", ")}
			}
			t.Texts = append(t.Texts, v)
		}
		if p.at == len(p.text) || p.text[p.at] != ',' {
			return p.boundary()
		}
		if k >= isNumber {
			return &Error{p.at, t.Field + " is compared with one value", "write two terms"}
		}
		p.at++
	}
}

// boundary: a blank or the end stands between terms.
func (p *parser) boundary() error {
	if at := p.at; at < len(p.text) {
		if p.skip(); p.at == at {
			return &Error{at, "a blank is missing between two terms", ""}
		}
	}
	return nil
}

// value reads a word, or a text in quotes, in which \" and \\ stand for " and \.
func (p *parser) value() (string, error) {
	begin := p.at
	if p.at == len(p.text) || p.text[p.at] != '"' {
		for p.at < len(p.text) && !strings.ContainsRune(" \t\n\r,\"", rune(p.text[p.at])) {
			p.at++
		}
		return checked(p.text[begin:p.at], begin)
	}
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return checked(b.String(), begin)
		case c == '\\' && p.at+1 < len(p.text):
			p.at++
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	return "", &Error{begin, "the quotes are not closed", ""}
}

func checked(v string, at int) (string, error) {
	if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
		return "", &Error{at, "the value is no UTF-8 text", ""}
	}
	return v, nil
}

// number reads a value that is compared. An age turns the comparison round: planned>2h is before now−2h.
func (p *parser) number(v string, k kind, op *Op) (n int64, fault string) {
	switch k {
	case isNumber:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 {
			return 0, "no whole number"
		}
		return n, ""
	case isLength:
		ms, ok := length(v)
		if !ok {
			return 0, "no length of time"
		}
		return ms, ""
	}
	if ms, ok := length(v); ok {
		if *op == Is {
			return 0, "an age, which is compared with < or >"
		}
		*op = map[Op]Op{Less: More, AtMost: AtLeast, More: Less, AtLeast: AtMost}[*op]
		return p.now.UnixMilli() - ms, ""
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, v); err == nil {
			return at.UnixMilli(), ""
		}
	}
	return 0, "neither an instant nor an age"
}

var units = []struct {
	name string
	ms   int64
}{{"ms", 1}, {"s", 1000}, {"m", 60_000}, {"h", 3_600_000}, {"d", 86_400_000}, {"w", 604_800_000}}

// length reads 90s, 1h30m, 2d in milliseconds, at most some hundred years.
func length(v string) (ms int64, ok bool) {
	for v != "" {
		digits := 0
		for digits < len(v) && v[digits] >= '0' && v[digits] <= '9' {
			digits++
		}
		n, err := strconv.ParseInt(v[:digits], 10, 64)
		if err != nil || n > math.MaxInt32 {
			return 0, false
		}
		v = v[digits:]
		unit := int64(0)
		for _, u := range units { // ms before m
			if rest, found := strings.CutPrefix(v, u.name); found {
				unit, v = u.ms, rest
				break
			}
		}
		if unit == 0 || n > maxLength/unit || ms > maxLength-n*unit {
			return 0, false
		}
		ms += n * unit
		ok = true
	}
	return ms, ok
}

const maxLength = 400 * 365 * 86_400_000
