package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Dialect is a way to write a cron expression.
type Dialect string

// The dialects. Quartz (`?`, `L`, `W`, `#`, years, Sunday = 1) is recognised and refused: it is not
// supported yet.
const (
	Unix5    Dialect = "unix5"    // minute hour day-of-month month day-of-week
	Seconds6 Dialect = "seconds6" // second, then as unix5
	Quartz   Dialect = "quartz"
)

// Expression is a parsed cron expression: a set of wall-clock readings, without a time zone.
type Expression struct {
	second, minute, hour uint64    // bit n stands for the value n
	month                uint64    // bits 1..12
	day                  uint32    // bits 1..31
	byWeekday            [7]uint32 // days of a month that fall on a wanted weekday, by the weekday of its 1st
	either               bool      // a day needs to match one of the two day fields, not both
	interval             bool      // minute or hour is a pattern, not a list: see cron.Next
}

const example = "five fields: minute hour day-of-month month day-of-week, such as 30 2 * * 1-5; with six, seconds come first"

// field is what may stand at one place of an expression.
type field struct {
	name     string
	min, max int
	names    []string // of the values from min on; nil: numbers only
}

var (
	months   = []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}
	weekdays = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

	secondField = field{name: "second", min: 0, max: 59}
	minuteField = field{name: "minute", min: 0, max: 59}
	hourField   = field{name: "hour", min: 0, max: 23}
	dayField    = field{name: "day of month", min: 1, max: 31}
	monthField  = field{name: "month", min: 1, max: 12, names: months}
	weekField   = field{name: "day of week", min: 0, max: 7, names: weekdays} // 7 is Sunday too
)

var macros = map[string]string{
	"@hourly":   "0 * * * *",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly":   "0 0 * * 0",
	"@monthly":  "0 0 1 * *",
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
}

// word is a piece of an expression with its place, counted from 1.
type word struct {
	text string
	pos  int
}

// DialectOf tells how a text without a declared dialect is read: by its number of fields, unless it can
// only be Quartz.
func DialectOf(text string) Dialect {
	fields := split(text)
	if len(fields) == 7 || len(fields) == 6 && onlyQuartz(fields[3].text, fields[5].text) || strings.ContainsAny(text, "?#") {
		return Quartz
	}
	if len(fields) == 6 {
		return Seconds6
	}
	return Unix5
}

// onlyQuartz finds L and W in the day fields, where no name of a weekday or number holds them.
func onlyQuartz(day, weekday string) bool {
	if strings.ContainsAny(day, "LlWw") {
		return true
	}
	return slices.ContainsFunc(strings.Split(strings.ToUpper(weekday), ","), func(item string) bool {
		return strings.HasSuffix(item, "L")
	})
}

// ParseExpression reads a cron expression in a dialect. A macro such as @daily is a word of both
// supported ones.
func ParseExpression(text string, dialect Dialect) (*Expression, *Error) {
	if len(text) > MaxText {
		return nil, cronError(0, "", "longer than %d bytes", MaxText)
	}
	fields, err := fieldsOf(text, dialect)
	if err != nil {
		return nil, err
	}
	second, minute, hour := fields[0], fields[1], fields[2]
	day, month, weekday := fields[3], fields[4], fields[5]
	var e Expression
	var days, weekSet uint64
	for _, part := range []struct {
		into *uint64
		of   field
		word word
	}{
		{&e.second, secondField, second}, {&e.minute, minuteField, minute}, {&e.hour, hourField, hour},
		{&days, dayField, day}, {&e.month, monthField, month}, {&weekSet, weekField, weekday},
	} {
		if *part.into, err = part.of.parse(part.word); err != nil {
			return nil, err
		}
	}
	e.day = uint32(days)
	e.either = !strings.HasPrefix(day.text, "*") && !strings.HasPrefix(weekday.text, "*")
	e.interval = strings.ContainsAny(minute.text+hour.text, "*/")
	e.setWeekdays(weekSet)
	if !e.canFire() {
		return nil, cronError(day.pos, "name a day that the month has", "this day never comes in the given months, so the job would never run")
	}
	return &e, nil
}

// fieldsOf cuts text into the six fields of seconds6; for unix5 the second is 0.
func fieldsOf(text string, dialect Dialect) ([]word, *Error) {
	want := map[Dialect]int{Unix5: 5, Seconds6: 6}[dialect]
	if want == 0 {
		return nil, cronError(0, "write the days as numbers, ranges and names; "+example,
			"this is the Quartz dialect (7 fields, or one of ? L W #), which is not supported yet")
	}
	fields := split(text)
	if len(fields) == 1 && strings.HasPrefix(fields[0].text, "@") {
		body, ok := macros[strings.ToLower(fields[0].text)]
		if !ok {
			return nil, cronError(fields[0].pos, "known are @hourly @daily @midnight @weekly @monthly @yearly @annually; for a fixed rate use every",
				"%.32q is no macro", fields[0].text)
		}
		fields, want = split(body), 5
	}
	if len(fields) != want {
		return nil, cronError(0, example, "%d fields are needed, there are %d", want, len(fields))
	}
	if want == 5 {
		fields = append([]word{{text: "0"}}, fields...)
	}
	return fields, nil
}

func split(text string) []word {
	var words []word
	start := -1
	for i := 0; i <= len(text); i++ {
		blank := i == len(text) || text[i] == ' ' || text[i] == '\t'
		if blank && start >= 0 {
			words = append(words, word{text[start:i], start + 1})
			start = -1
		} else if !blank && start < 0 {
			start = i
		}
	}
	return words
}

// parse reads a comma list of *, a, a-b, each with an optional /step, as a set of bits.
func (f field) parse(w word) (uint64, *Error) {
	var set uint64
	pos := w.pos
	for item := range strings.SplitSeq(w.text, ",") {
		bits, err := f.parseItem(word{item, pos})
		if err != nil {
			return 0, err
		}
		set |= bits
		pos += len(item) + 1
	}
	return set, nil
}

func (f field) parseItem(w word) (uint64, *Error) {
	span, stepText, stepped := strings.Cut(w.text, "/")
	low, high, err := f.parseRange(word{span, w.pos}, stepped)
	if err != nil {
		return 0, err
	}
	step := 1
	if stepped {
		n, ok := number(stepText)
		if !ok || n == 0 {
			return 0, cronError(w.pos+len(span)+1, "", "%s: the step %.32q is no number from 1 on", f.name, stepText)
		}
		step = n
	}
	var set uint64
	for v := low; v <= high; v += step {
		set |= 1 << v
	}
	return set, nil
}

// parseRange reads *, a or a-b. A lone value with a step reaches to the end of the field.
func (f field) parseRange(w word, stepped bool) (low, high int, err *Error) {
	if w.text == "*" {
		return f.min, f.max, nil
	}
	from, to, ranged := strings.Cut(w.text, "-")
	if low, err = f.value(word{from, w.pos}); err != nil {
		return 0, 0, err
	}
	switch {
	case !ranged && stepped:
		return low, f.max, nil
	case !ranged:
		return low, low, nil
	}
	if high, err = f.value(word{to, w.pos + len(from) + 1}); err != nil {
		return 0, 0, err
	}
	if high < low {
		return 0, 0, cronError(w.pos, fmt.Sprintf("write two ranges with a comma, from %d and up to %d", low, high),
			"%s: the range %.32q runs backwards", f.name, w.text)
	}
	return low, high, nil
}

func (f field) value(w word) (int, *Error) {
	if n, ok := number(w.text); ok {
		if n < f.min || n > f.max {
			return 0, cronError(w.pos, "", "%s: %.32s is out of range %d-%d", f.name, w.text, f.min, f.max)
		}
		return n, nil
	}
	if i := slices.Index(f.names, strings.ToUpper(w.text)); i >= 0 {
		return f.min + i, nil
	}
	hint := fmt.Sprintf("a number from %d to %d", f.min, f.max)
	if f.names != nil {
		hint += " or a name such as " + f.names[1]
	}
	if w.text == "" {
		return 0, cronError(w.pos, hint, "%s: a value is missing", f.name)
	}
	return 0, cronError(w.pos, hint, "%s: %.32q is no value", f.name, w.text)
}

// number reads 1 to 4 decimal digits.
func number(s string) (int, bool) {
	if s == "" || len(s) > 4 {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

func cronError(pos int, hint, format string, args ...any) *Error {
	return &Error{Field: "cron", Message: fmt.Sprintf(format, args...), Hint: hint, Pos: pos}
}
