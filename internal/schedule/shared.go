package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"sync"
	"weak"
)

// openings are the calendars that some schedule keeps to, by what they say: the schedules of all jobs that name one share it
// while one of them lives. What a calendar says does not change, a change makes another one.
var openings sync.Map // calendarKey → weak.Pointer[opening]

type calendarKey [sha256.Size]byte

// ready gives the calendar made ready.
func (c *Calendar) ready() (*opening, *Error) {
	key := c.key()
	if p, known := openings.Load(key); known {
		if o := p.(weak.Pointer[opening]).Value(); o != nil { //nolint:forcetypeassert // nothing else is stored
			return o, nil
		}
	}
	o, err := c.compile()
	if err != nil {
		return nil, err
	}
	p := weak.Make(o)
	openings.Store(key, p) // two at once: each keeps its own, once
	runtime.AddCleanup(o, func(k calendarKey) { openings.CompareAndDelete(k, p) }, key)
	return o, nil
}

func (c *Calendar) key() calendarKey {
	var all []byte
	text := func(s string) { all = append(binary.AppendUvarint(all, uint64(len(s))), s...) }
	size := func(n int) { all = binary.AppendUvarint(all, uint64(n)) }
	text(c.Name)
	text(c.TimeZone)
	size(len(c.Weekly))
	for _, s := range c.Weekly {
		text(s)
	}
	size(len(c.Daily))
	for _, w := range c.Daily {
		text(w.From)
		text(w.To)
	}
	for _, dates := range [][]Dates{c.Open, c.Closed} {
		size(len(dates))
		for _, d := range dates {
			text(string(d.From))
			text(string(d.To))
			text(d.Name)
		}
	}
	return sha256.Sum256(all)
}
