package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Dialect is a way to write a cron expression.
type Dialect string

// The dialects. A text without a declared one is read as DialectOf says.
const (
	Unix5    Dialect = "unix5"    // minute hour day-of-month month day-of-week
	Seconds6 Dialect = "seconds6" // second, then as unix5
	Quartz   Dialect = "quartz"   // second minute hour day-of-month month day-of-week [year]; Sunday is 1
)

// Dialects are all of them, for messages.
var Dialects = []Dialect{Unix5, Seconds6, Quartz}

// Expression is a parsed cron expression: a set of wall-clock readings, without a time zone.
type Expression struct {
	dialect              Dialect
	second, minute, hour uint64    // bit n stands for the value n
	month                uint64    // bits 1..12
	day                  uint32    // bits 1..31
	byWeekday            [7]uint32 // days of a month that fall on a wanted weekday, by the weekday of its 1st
	either               bool      // a day needs to match one of the two day fields, not both
	years                *yearSet  // nil: every year
	special              []dayRule // of Quartz, further days beside those of day; they depend on the month
	interval             bool      // minute or hour is a pattern, not a list: see cron.Next
	words                [7]string // the fields as written, second first, for explanations; the year may be ""
}

// Dialect is the one that the text was read in.
func (e *Expression) Dialect() Dialect { return e.dialect }

const (
	example       = "five fields: minute hour day-of-month month day-of-week, such as 30 2 * * 1-5; with six, seconds come first"
	quartzExample = "six or seven fields: second minute hour day-of-month month day-of-week [year], one of the two days is ?, such as 0 30 2 ? * MON-FRI"
)

// field is what may stand at one place of an expression.
type field struct {
	name     string
	min, max int
	names    []string // of the values from min on; nil: numbers only
	wraps    bool     // a range that runs backwards goes over the end (Quartz)
	hashMax  int      // largest value that a lone H may mean; 0: max
}

var (
	months   = []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}
	weekdays = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

	secondField = field{name: "second", min: 0, max: 59}
	minuteField = field{name: "minute", min: 0, max: 59}
	hourField   = field{name: "hour", min: 0, max: 23}
	dayField    = field{name: "day of month", min: 1, max: 31, hashMax: 28} // a day that every month has
	monthField  = field{name: "month", min: 1, max: 12, names: months}
	weekField   = field{name: "day of week", min: 0, max: 7, names: weekdays, hashMax: 6} // 7 is Sunday too
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

// ParseExpression reads a cron expression in a dialect. A macro such as @daily is a word of all of them.
// seed gives the values of H (spread by hash): the same seed, the same values; a text with H and without a
// seed is read all the same, as one among many, of which another may fire when it never does.
func ParseExpression(text string, dialect Dialect, seed string) (*Expression, *Error) {
	if len(text) > MaxText {
		return nil, cronError(MaxText+1, "write ranges and steps in place of long lists, or several schedules", "longer than %d bytes", MaxText)
	}
	fields, dialect, err := fieldsOf(text, dialect)
	if err != nil {
		return nil, err
	}
	e := Expression{dialect: dialect}
	for i, w := range fields {
		e.words[i] = w.text
	}
	if dialect == Quartz {
		err = e.readQuartz(fields, seed)
	} else {
		err = e.readVixie(fields, seed)
	}
	if err != nil {
		return nil, err
	}
	minute, hour, day := fields[1], fields[2], fields[3]
	e.interval = strings.ContainsAny(minute.text+hour.text, "*/")
	if !e.canFire() && (seed != "" || !hashed(text)) {
		hint, when := "name a day that the month has", "months"
		if e.years != nil {
			hint, when = "name a day that the month has in one of these years", "months and years"
		}
		return nil, cronError(day.pos, hint, "this day never comes in the given %s, so the job would never run", when)
	}
	return &e, nil
}

// Hashed tells whether an expression holds an H, whose value a seed chooses.
func Hashed(text string) bool { return hashed(text) }

// hashed tells whether an expression holds an H, which no name of a month or weekday begins with.
func hashed(text string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToUpper(text), func(r rune) bool { return strings.ContainsRune(" \t,", r) }),
		func(item string) bool { return item[0] == 'H' })
}

// readVixie reads the six fields of seconds6 by Vixie's rules.
func (e *Expression) readVixie(fields []word, seed string) (err *Error) {
	var days, weekSet uint64
	day, weekday := fields[3], fields[5]
	for _, part := range []struct {
		into *uint64
		of   field
		word word
	}{
		{&e.second, secondField, fields[0]}, {&e.minute, minuteField, fields[1]}, {&e.hour, hourField, fields[2]},
		{&days, dayField, day}, {&e.month, monthField, fields[4]}, {&weekSet, weekField, weekday},
	} {
		if *part.into, err = part.of.parse(part.word, seed); err != nil {
			return err
		}
	}
	e.day = uint32(days)
	e.either = !strings.HasPrefix(day.text, "*") && !strings.HasPrefix(weekday.text, "*")
	e.setWeekdays(weekSet)
	return nil
}

// fieldsOf cuts text into fields, second first; for unix5 the second is 0. A macro is read as unix5.
func fieldsOf(text string, dialect Dialect) ([]word, Dialect, *Error) {
	if !slices.Contains(Dialects, dialect) {
		return nil, "", &Error{Field: "dialect", Message: fmt.Sprintf("%.32q is no dialect", dialect), Hint: "one of unix5, seconds6, quartz"}
	}
	fields := split(text)
	if len(fields) > 0 && strings.HasPrefix(fields[0].text, "@") {
		body, ok := macros[strings.ToLower(fields[0].text)]
		if ok && len(fields) > 1 {
			return nil, "", cronError(fields[0].pos, "leave out what follows it", "%.32q stands alone", fields[0].text)
		}
		if !ok {
			return nil, "", cronError(fields[0].pos, "known are @hourly @daily @midnight @weekly @monthly @yearly @annually; for a fixed rate use every",
				"%.32q is no macro", fields[0].text)
		}
		fields, dialect = split(body), Unix5
	}
	switch n := len(fields); {
	case dialect == Quartz && n != 6 && n != 7:
		return nil, "", cronError(miscount(fields, 7), quartzExample, "quartz needs 6 or 7 fields, there are %d", n)
	case dialect == Unix5 && n != 5:
		return nil, "", cronError(miscount(fields, 5), example, "5 fields are needed, there are %d", n)
	case dialect == Seconds6 && n != 6:
		return nil, "", cronError(miscount(fields, 6), example, "6 fields are needed, there are %d", n)
	}
	if dialect == Unix5 {
		fields = append([]word{{text: "0"}}, fields...)
	}
	return fields, dialect, nil
}

// miscount is the place of the first field too many, or the one behind the last of too few.
func miscount(fields []word, most int) int {
	switch n := len(fields); {
	case n == 0:
		return 1
	case n > most:
		return fields[most].pos
	default:
		return fields[n-1].pos + len(fields[n-1].text)
	}
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

func cronError(pos int, hint, format string, args ...any) *Error {
	return &Error{Field: "cron", Message: fmt.Sprintf(format, args...), Hint: hint, Pos: pos}
}
