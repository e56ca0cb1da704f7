package job

import "encoding/json"

// Scan reads JSON in exactly the form in which this program wrote it, for other packages that store much of it. Whatever
// else it meets makes it fail, and then encoding/json must read the text.
type Scan struct{ s scan }

// NewScan reads text.
func NewScan(text []byte) *Scan { return &Scan{scan{b: text}} }

// Is passes over a text if it stands here.
func (s *Scan) Is(text string) bool { return s.s.is(text) }

// Want passes over a text that must stand here.
func (s *Scan) Want(text string) { s.s.want(text) }

// Number is a whole number.
func (s *Scan) Number() int64 { return s.s.number() }

// Plain is a string without escapes, in ASCII; a part of the text that is read.
func (s *Scan) Plain() []byte { return s.s.plain() }

// Any is a copy of a value, whatever it is.
func (s *Scan) Any() json.RawMessage { return s.s.any() }

// Failed tells that something else stood there than was wanted.
func (s *Scan) Failed() bool { return s.s.bad }

// Done tells whether all was read, and as wanted.
func (s *Scan) Done() bool { return s.s.done() }
