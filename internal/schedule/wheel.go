package schedule

import "math/bits"

const (
	wheelLevels = 6 // 64^6 ms are two years; what lies beyond waits at the end of the last level
	wheelBits   = 6
	wheelSlots  = 1 << wheelBits
	wheelReach  = int64(1) << (wheelBits * wheelLevels)
)

// Wheel holds values with instants in milliseconds, and gives out those that are due. Insert and Cancel take a
// constant time, however many there are; a value moves at most wheelLevels times before it is due. It is a
// hierarchical timing wheel (Varghese and Lauck, 1987). A cancelled value keeps its place until its slot comes. See
// NewWheel for the first one. It is not safe for several goroutines.
type Wheel[T any] struct {
	now      int64 // what is due up to here was given out
	slots    [wheelLevels][wheelSlots][]wheelEntry[T]
	occupied [wheelLevels]uint64 // slots that hold something, cancelled or not
	late     []wheelEntry[T]     // due already when it came
	lives    []uint32            // by timer; odd while it is held
	free     []int32             // timers that may be used again
	size     int
}

// wheelEntry carries all that moving it needs, so that a slot is read from front to back.
type wheelEntry[T any] struct {
	at    int64
	timer Timer
	value T
}

// Timer names an inserted value. The zero Timer names none.
type Timer struct {
	n    int32
	life uint32
}

// NewWheel makes an empty wheel that stands at now.
func NewWheel[T any](now int64) *Wheel[T] { return &Wheel[T]{now: now} }

// Len is how many values are held.
func (w *Wheel[T]) Len() int { return w.size }

// Insert puts in a value that is due at the given instant; one that has passed is due at the next Advance.
func (w *Wheel[T]) Insert(at int64, value T) Timer {
	var n int32
	if last := len(w.free) - 1; last >= 0 {
		n = w.free[last]
		w.free = w.free[:last]
	} else {
		n = int32(len(w.lives))
		w.lives = append(w.lives, 0)
	}
	w.lives[n]++
	t := Timer{n, w.lives[n]}
	w.place(wheelEntry[T]{at, t, value})
	w.size++
	return t
}

// Cancel takes a value out and tells whether it was still there.
func (w *Wheel[T]) Cancel(t Timer) bool {
	if t.life&1 == 0 || int(t.n) >= len(w.lives) || w.lives[t.n] != t.life {
		return false
	}
	w.lives[t.n]++
	w.size--
	return true
}

// Next is the instant up to which nothing is due: the earliest instant held, or one before it at which Advance has
// to move values nearer. false when the wheel is empty.
func (w *Wheel[T]) Next() (int64, bool) {
	if w.size == 0 {
		return 0, false
	}
	if len(w.late) > 0 {
		return w.now, true
	}
	_, _, at, ok := w.earliest()
	return at, ok
}

// Advance moves the wheel to now and gives out what is due: what was late when it came first, then by instant. due may
// insert and cancel.
func (w *Wheel[T]) Advance(now int64, due func(at int64, value T)) {
	w.fireLate(due)
	for {
		level, slot, at, ok := w.earliest()
		if !ok || at > now {
			break
		}
		w.now = max(w.now, at)
		// Detach the slot first: what lies beyond the last level comes back into it, and due may insert.
		entries := w.slots[level][slot]
		w.slots[level][slot] = nil
		w.occupied[level] &^= 1 << slot
		for i := range entries {
			switch e := &entries[i]; {
			case w.lives[e.timer.n] != e.timer.life:
				w.free = append(w.free, e.timer.n)
			case level == 0:
				w.fire(e, due)
			default:
				w.place(*e)
			}
		}
		if w.slots[level][slot] == nil && cap(entries) <= keptSlot {
			clear(entries)
			w.slots[level][slot] = entries[:0]
		}
		w.fireLate(due)
	}
	w.now = max(w.now, now)
}

// keptSlot bounds the memory that an empty slot keeps, in values.
const keptSlot = 1024

func (w *Wheel[T]) fireLate(due func(int64, T)) {
	for len(w.late) > 0 {
		entries := w.late
		w.late = nil
		for i := range entries {
			if e := &entries[i]; w.lives[e.timer.n] == e.timer.life {
				w.fire(e, due)
			} else {
				w.free = append(w.free, e.timer.n)
			}
		}
	}
}

func (w *Wheel[T]) fire(e *wheelEntry[T], due func(int64, T)) {
	w.lives[e.timer.n]++
	w.free = append(w.free, e.timer.n)
	w.size--
	due(e.at, e.value)
}

// earliest finds the first slot that holds something, and the instant at which it begins.
func (w *Wheel[T]) earliest() (level, slot int, at int64, ok bool) {
	for level = range wheelLevels {
		if w.occupied[level] == 0 {
			continue
		}
		turn := w.now >> (wheelBits * level)
		here := int(turn & (wheelSlots - 1))
		ahead := bits.TrailingZeros64(bits.RotateLeft64(w.occupied[level], -here))
		if ahead == 0 && level > 0 {
			ahead = 1 // the slot of this instant was emptied when it came: what is in it lies a whole turn ahead, behind all others
		}
		return level, (here + ahead) & (wheelSlots - 1), (turn + int64(ahead)) << (wheelBits * level), true
	}
	return 0, 0, 0, false
}

// place puts an entry into the slot that its distance says.
func (w *Wheel[T]) place(e wheelEntry[T]) {
	if e.at < w.now {
		w.late = append(w.late, e)
		return
	}
	at := min(e.at, w.now+wheelReach-1)
	differ := uint64(w.now^at) | (wheelSlots - 1)
	level := min((63-bits.LeadingZeros64(differ))/wheelBits, wheelLevels-1)
	slot := int(at>>(wheelBits*level)) & (wheelSlots - 1)
	w.occupied[level] |= 1 << slot
	w.slots[level][slot] = append(w.slots[level][slot], e)
}
