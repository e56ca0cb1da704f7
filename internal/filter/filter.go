// Package filter is the one language in which people select executions: terms such as state:failed or
// duration>30s, all of which must hold. It is pure: it reads no clock and looks nothing up.
//
//	state:failed,timed_out job:billing-* -pool:slow duration>30s planned<2h "ended>2026-11-01T00:00:00Z"
package filter

import (
	"math"
	"slices"
	"strings"
	"time"
)

// MaxLength and MaxTerms bound a text.
const (
	MaxLength = 2048
	MaxTerms  = 32
)

// Row is what a query looks at. Instants are Unix milliseconds; 0 is none.
type Row struct {
	State, Job, Pool, Handler, Trigger, Reason string
	Shards, Round                              int64
	Created, Planned, Started, Ended           int64
}

// Query is a parsed text. The zero value selects everything.
type Query struct {
	Terms []Term
	now   int64
}

// Op compares.
type Op string

// The comparisons.
const (
	Is      Op = ":"
	Less    Op = "<"
	AtMost  Op = "<="
	More    Op = ">"
	AtLeast Op = ">="
)

// Term is one condition.
type Term struct {
	Field  string
	Not    bool // it must not hold
	Op     Op
	Texts  []string // of a field of text: one of them, each exact or, with * at its end, a beginning
	Number int64    // of the others: a number, milliseconds of length, or an instant in Unix milliseconds
}

// kind is what a field holds.
type kind int

const (
	isText kind = iota
	isState
	isTrigger
	isNumber
	isLength  // of time
	isInstant // its value is an instant, or a length of time before now
)

var fields = map[string]kind{
	"state": isState, "job": isText, "pool": isText, "handler": isText, "trigger": isTrigger, "reason": isText,
	"shards": isNumber, "round": isNumber, "duration": isLength,
	"created": isInstant, "planned": isInstant, "started": isInstant, "ended": isInstant,
}

var words = map[kind][]string{
	isState:   {"scheduled", "queued", "running", "cancelling", "succeeded", "partially_succeeded", "failed", "timed_out", "cancelled"},
	isTrigger: {"schedule", "request", "catchup", "backfill", "dependency"},
}

// Empty tells that the query selects everything.
func (q *Query) Empty() bool { return len(q.Terms) == 0 }

// Only is the one text that a field must have, when a term says so without * and not; it lets a store use an
// index.
func (q *Query) Only(field string) (string, bool) {
	for _, t := range q.Terms {
		if t.Field == field && !t.Not && len(t.Texts) == 1 && !strings.HasSuffix(t.Texts[0], "*") {
			return t.Texts[0], true
		}
	}
	return "", false
}

// Between is the range, both ends included, outside of which no row matches by what the terms say of a field that is
// an instant or a number; it lets a store use an order.
func (q *Query) Between(field string) (least, most int64) {
	least, most = math.MinInt64, math.MaxInt64
	for _, t := range q.Terms {
		if t.Field != field || t.Not {
			continue
		}
		switch t.Op {
		case Less:
			most = min(most, t.Number-1)
		case AtMost:
			most = min(most, t.Number)
		case More:
			least = max(least, t.Number+1)
		case AtLeast:
			least = max(least, t.Number)
		case Is:
			least, most = max(least, t.Number), min(most, t.Number)
		}
	}
	return least, most
}

// Matches tells whether every term holds. A term about an instant or a length that the row does not have
// does not hold, and neither does its opposite.
func (q *Query) Matches(r *Row) bool {
	for i := range q.Terms {
		if !q.Terms[i].holds(r, q.now) {
			return false
		}
	}
	return true
}

func (t *Term) holds(r *Row, now int64) bool {
	if text, ok := r.text(t.Field); ok {
		return t.Not != slices.ContainsFunc(t.Texts, func(want string) bool { return fits(text, want) })
	}
	n, there := r.number(t.Field, now)
	return there && t.Not != t.Op.compare(n, t.Number)
}

func fits(text, want string) bool {
	if prefix, ok := strings.CutSuffix(want, "*"); ok {
		return strings.HasPrefix(text, prefix)
	}
	return text == want
}

func (op Op) compare(a, b int64) bool {
	switch op {
	case Less:
		return a < b
	case AtMost:
		return a <= b
	case More:
		return a > b
	case AtLeast:
		return a >= b
	}
	return a == b
}

func (r *Row) text(field string) (string, bool) {
	switch field {
	case "state":
		return r.State, true
	case "job":
		return r.Job, true
	case "pool":
		return r.Pool, true
	case "handler":
		return r.Handler, true
	case "trigger":
		return r.Trigger, true
	case "reason":
		return r.Reason, true
	}
	return "", false
}

func (r *Row) number(field string, now int64) (n int64, there bool) {
	switch field {
	case "shards":
		return r.Shards, true
	case "round":
		return r.Round, true
	case "created":
		return r.Created, r.Created != 0
	case "planned":
		return r.Planned, r.Planned != 0
	case "started":
		return r.Started, r.Started != 0
	case "ended":
		return r.Ended, r.Ended != 0
	case "duration":
		end := r.Ended
		if end == 0 {
			end = now // it still runs
		}
		return end - r.Started, r.Started != 0
	}
	return 0, false
}

// Parse reads a text; ages count from now. The error is an *Error.
func Parse(text string, now time.Time) (Query, error) {
	q := Query{now: now.UnixMilli()}
	if len(text) > MaxLength {
		return Query{}, &Error{Position: MaxLength, Message: "the filter is too long", Hint: "at most 2048 bytes"}
	}
	p := parser{text: text, now: now}
	for p.skip(); p.at < len(p.text); p.skip() {
		t, err := p.term()
		if err != nil {
			return Query{}, err
		}
		if q.Terms = append(q.Terms, t); len(q.Terms) > MaxTerms {
			return Query{}, &Error{Position: p.at, Message: "too many terms", Hint: "at most 32"}
		}
	}
	return q, nil
}
