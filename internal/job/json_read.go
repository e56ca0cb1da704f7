package job

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A new owner reads what was written here for 100,000 shards, so what has exactly the form in which it is written is read by
// hand as well. Anything else is left to encoding/json: a value, or an error, never depends on who has read it.

// ReadAttempts reads what AppendAttempts has written. worker is the name that most of them have, if it is known.
func ReadAttempts(text []byte, worker string) ([]Attempt, error) {
	s := scan{b: text}
	if all := s.attempts(worker); s.done() {
		return all, nil
	}
	var all []Attempt
	err := json.Unmarshal(text, &all)
	return all, err
}

// scan reads the form in which this package writes JSON.
type scan struct {
	b   []byte // what is left
	bad bool   // it has another form
}

func (s *scan) done() bool { return !s.bad && len(s.b) == 0 }

// is passes over a text if it stands here.
func (s *scan) is(text string) bool {
	if len(s.b) < len(text) || string(s.b[:len(text)]) != text {
		return false
	}
	s.b = s.b[len(text):]
	return true
}

func (s *scan) want(text string) {
	if !s.is(text) {
		s.bad = true
	}
}

func (s *scan) number() int64 {
	const digits = 18 // of which every number fits
	negative := s.is("-")
	v, n := int64(0), 0
	for n < len(s.b) && n < digits && '0' <= s.b[n] && s.b[n] <= '9' {
		v = v*10 + int64(s.b[n]-'0')
		n++
	}
	if n == 0 || n > 1 && s.b[0] == '0' || negative && v == 0 {
		s.bad = true
	}
	s.b = s.b[n:] // what follows is no digit, or not what is wanted
	if negative {
		return -v
	}
	return v
}

// plain is a string without escapes, in ASCII.
func (s *scan) plain() []byte {
	if s.want(`"`); s.bad {
		return nil
	}
	for n, c := range s.b {
		if c == '"' {
			text := s.b[:n]
			s.b = s.b[n+1:]
			return text
		}
		if c < ' ' || c > '~' || c == '\\' {
			break
		}
	}
	s.bad = true
	return nil
}

// name is a plain string that is likely to be known.
func (s *scan) name(known string) string {
	if b := s.plain(); string(b) != known {
		return string(b)
	}
	return known
}

func (s *scan) attempts(worker string) []Attempt {
	if s.is("[]") {
		return []Attempt{}
	}
	all := make([]Attempt, 0, bytes.Count(s.b, []byte(`{"n":`)))
	s.want("[")
	for !s.bad {
		all = append(all, s.attempt(worker))
		if s.is("]") {
			break
		}
		s.want(",")
	}
	return all
}

func (s *scan) attempt(worker string) (a Attempt) {
	s.want(`{"n":`)
	a.Number = int(s.number())
	s.want(`,"token":`)
	a.Token = Token(s.number())
	s.want(`,"worker":`)
	a.Worker = s.name(worker)
	s.want(`,"state":`)
	a.State = AttemptState(s.name(string(AttemptRunning)))
	if s.is(`,"reason":`) {
		a.Reason = Reason(s.plain())
	}
	if s.is(`,"resumedFrom":`) {
		a.ResumedFrom = s.number()
	}
	s.want(`,"startedAt":`)
	a.StartedAt = Instant(s.number())
	if s.is(`,"endedAt":`) {
		a.EndedAt = Instant(s.number())
	}
	if s.is(`,"error":`) {
		a.Error = s.failure()
	}
	s.want("}")
	return a
}

func (s *scan) failure() *Failure {
	f := &Failure{}
	if s.want("{"); s.is(`"class":`) {
		f.Class = string(s.plain())
		s.want(",")
	}
	s.want(`"message":`)
	f.Message = string(s.plain())
	s.want("}")
	return f
}

// shard reads what AppendShard has written.
func (s *scan) shard() (p packedShard) {
	if s.is("{}") {
		return p
	}
	s.want("{")
	m := members{scan: s}
	p.Reason, p.Token, p.Session = Reason(m.text(`"reason":`)), Token(m.number(`"token":`)), SessionID(m.text(`"session":`))
	p.Worker, p.Closed, p.Confirmed = m.text(`"worker":`), m.flag(`"closed":`), m.flag(`"confirmed":`)
	p.Attempt, p.Faults, p.Losses = int(m.number(`"attempt":`)), int(m.number(`"faults":`)), int(m.number(`"losses":`))
	p.LeasedAt, p.StartedAt, p.EndedAt = m.instant(`"leasedAt":`), m.instant(`"startedAt":`), m.instant(`"endedAt":`)
	p.TimeoutAt, p.RetryAt, p.StopBy = m.instant(`"timeoutAt":`), m.instant(`"retryAt":`), m.instant(`"stopBy":`)
	p.ReportSeq, p.CheckpointSeq = m.number(`"reportSeq":`), m.number(`"checkpointSeq":`)
	p.Done, p.Total, p.Note = m.number(`"done":`), m.number(`"total":`), m.text(`"note":`)
	p.Checkpoint, p.Result = m.value(`"checkpoint":`), m.value(`"result":`)
	if m.has(`"error":`) {
		p.Error = s.failure()
	}
	if m.has(`"attempts":`) {
		p.Attempts = s.attempts(p.Worker)
	}
	s.want("}")
	return p
}

// members are those of an object, in the order in which they are asked for; what is zero is not there.
type members struct {
	*scan
	some bool
}

func (m *members) has(key string) bool {
	before := m.b
	if (!m.some || m.is(",")) && m.is(key) {
		m.some = true
		return true
	}
	m.b = before
	return false
}

func (m *members) text(key string) string {
	if !m.has(key) {
		return ""
	}
	return string(m.plain())
}

func (m *members) number(key string) int64 {
	if !m.has(key) {
		return 0
	}
	return m.scan.number()
}

func (m *members) instant(key string) Instant { return Instant(m.number(key)) }

func (m *members) flag(key string) bool {
	if !m.has(key) {
		return false
	}
	m.want("true")
	return true
}

func (m *members) value(key string) json.RawMessage {
	if !m.has(key) {
		return nil
	}
	return m.any()
}

// any is a JSON value as it stands here.
func (s *scan) any() json.RawMessage {
	n := valueEnd(s.b)
	if s.bad = s.bad || !ValidJSON(s.b[:n]); s.bad {
		return nil
	}
	value := bytes.Clone(s.b[:n])
	s.b = s.b[n:]
	return value
}

// valueEnd is where the value that begins a text ends, if it is one; 0: it is none.
func valueEnd(b []byte) int {
	depth := 0
	for n := 0; n < len(b); n++ {
		switch b[n] {
		case '"':
			for n++; n < len(b) && b[n] != '"'; n++ {
				if b[n] == '\\' {
					n++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ' ', '\t', '\n', '\r':
			if n == 0 {
				return 0
			}
			continue
		default:
			if n+1 < len(b) && strings.IndexByte(",}] \t\n\r", b[n+1]) < 0 {
				continue // within a number or a word
			}
		}
		if depth <= 0 {
			return min(n+1, len(b))
		}
	}
	return 0
}
