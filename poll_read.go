package takt

import (
	"bytes"
	"encoding/json"
)

// The answers to polls are most of what a busy worker reads, so what has exactly the form in which servers write it is
// read by hand. Anything else is left to encoding/json: what is read never depends on who has read it.

// quick is an answer that can be read by hand; false: encoding/json must read it, into a value that is as it was.
type quick interface{ quick(text []byte) bool }

func (r *PollResponse) quick(text []byte) bool {
	s := scan{b: bytes.TrimSuffix(text, []byte("\n"))}
	var all PollResponse
	s.want(`{`)
	if s.is(`"$schema":`) { // where the answer's description is found
		s.plain()
		s.want(",")
	}
	s.want(`"epoch":`)
	all.Epoch = s.number()
	if s.is(`,"assignments":[`) {
		all.Assignments = make([]Assignment, 0, bytes.Count(s.b, []byte(`{"namespace":`)))
		for more := true; more; more = s.is(",") {
			all.Assignments = append(all.Assignments, s.assignment(all.Assignments))
		}
		s.want("]")
	}
	s.want("}") // an answer that also stops something is rare
	if s.bad || len(s.b) > 0 {
		return false
	}
	*r = all
	return true
}

// assignment reads one; its names are mostly those of the one before.
func (s *scan) assignment(before []Assignment) (a Assignment) {
	var like Assignment
	if n := len(before); n > 0 {
		like = before[n-1]
	}
	s.want(`{"namespace":`)
	a.Namespace = s.name(like.Namespace)
	s.want(`,"job":`)
	a.Job = s.name(like.Job)
	s.want(`,"revision":`)
	a.Revision = s.number()
	s.want(`,"execution":`)
	a.Execution = string(s.plain())
	s.want(`,"handler":`)
	a.Handler = s.name(like.Handler)
	s.want(`,"plannedAt":`)
	s.bad = s.bad || a.PlannedAt.UnmarshalText(s.plain()) != nil
	s.want(`,"shard":`)
	a.Shard = int(s.number())
	s.want(`,"shardTotal":`)
	a.ShardTotal = int(s.number())
	s.want(`,"attempt":`)
	a.Attempt = int(s.number())
	s.want(`,"token":`)
	a.Token = s.number()
	s.want(`,"leaseCall":`)
	a.LeaseCall = s.number()
	if s.is(`,"timeoutMs":`) {
		a.TimeoutMs = s.number()
	}
	if s.is(`,"params":`) {
		a.Params = s.value()
	}
	if s.is(`,"checkpoint":`) {
		a.Checkpoint = s.value()
	}
	if s.is(`,"checkpointSeq":`) {
		a.CheckpointSeq = s.number()
	}
	s.want(`,"key":`)
	a.Key = string(s.plain())
	s.want("}") // parents are rare
	return a
}

// scan reads JSON in one form only.
type scan struct {
	b   []byte // what is left
	bad bool   // it has another form
}

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

// value is a copy of an object, the usual parameters; of anything else it says that it has another form.
func (s *scan) value() json.RawMessage {
	depth := 0
	for n := 0; n < len(s.b) && !s.bad; n++ {
		switch s.b[n] {
		case '"':
			for n++; n < len(s.b) && s.b[n] != '"'; n++ {
				if s.b[n] == '\\' {
					n++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth == 0 && n == 0 {
			break // no object
		}
		if depth == 0 && n < len(s.b) {
			text := s.b[:n+1]
			s.b = s.b[n+1:]
			s.bad = !json.Valid(text)
			return bytes.Clone(text)
		}
	}
	s.bad = true
	return nil
}
