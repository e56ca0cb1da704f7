package api

import "slices"

// scan reads JSON in one form only: what has it, strictJSON would let pass.
type scan struct {
	b   []byte // what is left
	bad bool   // it has another form
}

// ended tells whether all was read, and had the form.
func (s *scan) ended() bool { return !s.bad && len(s.b) == 0 }

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

// number is a whole number that is not below zero; what follows its digits is not looked at.
func (s *scan) number() int64 {
	const digits = 18 // of which every number fits
	v, n := int64(0), 0
	for n < len(s.b) && n < digits && '0' <= s.b[n] && s.b[n] <= '9' {
		v = v*10 + int64(s.b[n]-'0')
		n++
	}
	s.bad = s.bad || n == 0 || n > 1 && s.b[0] == '0'
	s.b = s.b[n:]
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

// words are what items of reports say.
var words = []string{"done", "success", "started", "checkpoint", "error", "fatal", "snooze", "cancelled", "released", "lease_lost"}

// word is a plain string, which is likely to be one of words.
func (s *scan) word() string {
	text := s.plain()
	for _, w := range words {
		if string(text) == w {
			return w
		}
	}
	return string(text)
}

// value is whatever stands here, as it stands.
func (s *scan) value() []byte {
	n := s.end()
	if s.bad || n == 0 || strictJSON(s.b[:n], free, false) != nil {
		s.bad = true
		return nil
	}
	text := slices.Clone(s.b[:n])
	s.b = s.b[n:]
	return text
}

// scanDepth bounds what is nested in a value: far less than maxDepth, which counts from the begin of the body.
const scanDepth = 32

// end is behind the value that stands here, if it is one.
func (s *scan) end() int {
	depth, n := 0, 0
	for n < len(s.b) {
		switch s.b[n] {
		case '"':
			for n++; n < len(s.b) && s.b[n] != '"'; n++ {
				if s.b[n] == '\\' {
					n++
				}
			}
		case '{', '[':
			depth++
			s.bad = s.bad || depth > scanDepth
		case '}', ']':
			if depth--; depth < 0 {
				return n
			}
		case ',':
			if depth == 0 {
				return n
			}
		case ' ', '\t', '\n', '\r':
			if depth == 0 { // between the value and what follows
				s.bad = true
			}
		}
		n++
	}
	return len(s.b)
}
