package job

import (
	"strconv"
	"strings"
)

// InstantRange is the instants of a schedule from one to another, both included.
type InstantRange struct{ From, To Instant }

// MaxOwed bounds the ranges that one cursor owes.
const MaxOwed = 16

// OwedRanges lists what c owes, the oldest range first. What lies between two of them was decided in its time.
func (c *Cursor) OwedRanges() (all []InstantRange) {
	if c.Owed == 0 {
		return nil
	}
	all = append(all, InstantRange{c.Owed, c.OwedTo})
	for rest := c.OwedLater; rest != ""; {
		var r InstantRange
		if r, rest = cutRange(rest); r.To != 0 {
			all = append(all, r)
		}
	}
	return all
}

// Owes tells whether an instant of the schedule lies in what c owes.
func (c *Cursor) Owes(at Instant) bool {
	for _, r := range c.OwedRanges() {
		if r.From <= at && at <= r.To {
			return true
		}
	}
	return false
}

// Owe adds a range behind all that c owes.
func (c *Cursor) Owe(r InstantRange) {
	if c.Owed == 0 {
		c.Owed, c.OwedTo = r.From, r.To
		return
	}
	if c.OwedLater != "" {
		c.OwedLater += ","
	}
	c.OwedLater += strconv.FormatInt(int64(r.From), 10) + "-" + strconv.FormatInt(int64(r.To), 10)
}

// OweOn lets the newest range end later.
func (c *Cursor) OweOn(to Instant) {
	if c.OwedLater == "" {
		c.OwedTo = to
		return
	}
	c.OwedLater = c.OwedLater[:strings.LastIndexByte(c.OwedLater, '-')+1] + strconv.FormatInt(int64(to), 10)
}

// OwesOn goes on behind the instants of the oldest range that were paid or given up: at next, or with the next range when
// next is 0 or lies behind it.
func (c *Cursor) OwesOn(next Instant) {
	if next != 0 && next <= c.OwedTo {
		c.Owed = next
		return
	}
	c.Owed, c.OwedTo = 0, 0
	for c.Owed == 0 && c.OwedLater != "" {
		var r InstantRange
		r, c.OwedLater = cutRange(c.OwedLater)
		c.Owed, c.OwedTo = r.From, r.To
	}
}

// cutRange reads the first range of a text; 0: it is none.
func cutRange(s string) (r InstantRange, rest string) {
	one, rest, _ := strings.Cut(s, ",")
	from, to, _ := strings.Cut(one, "-")
	f, err := strconv.ParseInt(from, 10, 64)
	t, err2 := strconv.ParseInt(to, 10, 64)
	if err != nil || err2 != nil || f <= 0 || t < f {
		return InstantRange{}, rest
	}
	return InstantRange{Instant(f), Instant(t)}, rest
}
