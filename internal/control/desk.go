package control

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// desk makes one transaction of the calls that come while another one is written. It starts no goroutine: the first caller
// writes for those behind it and passes the desk on.
type desk[I, O any] struct {
	most    int              // items of one transaction, more only of a single call
	bytes   int              // of items of one transaction, likewise
	timeout time.Duration    // of a transaction
	gather  time.Duration    // how long a crowd waits for more, see await; 0: not at all
	size    func(*I) int     // bytes of an item
	alone   func(error) bool // the error says that one of the calls was refused, and nothing was written

	mu      sync.Mutex
	busy    bool
	waiting []*deskCall[I, O]
	last    int           // calls of the newest transaction
	enough  chan struct{} // closed when as many wait; nil: nobody waits for that
}

// crowd is how many calls make a crowd.
const crowd = 3

// deskCall is one caller's items.
type deskCall[I, O any] struct {
	items []I
	size  int       // bytes of them
	turn  chan bool // gets true when the caller is to write, false when it is answered
	leads bool      // guarded by the desk's lock
	out   []O       // of each item
	err   error
}

// put hands items in and waits for the answer. When ctx ends first they may or may not be written.
func (d *desk[I, O]) put(ctx context.Context, items []I, write func(context.Context, []I) ([]O, error)) ([]O, error) {
	call := &deskCall[I, O]{items: items, turn: make(chan bool, 1)}
	for i := range items {
		call.size += d.size(&items[i])
	}
	d.mu.Lock()
	d.waiting = append(d.waiting, call)
	if d.enough != nil && d.crowded() {
		close(d.enough)
		d.enough = nil
	}
	lead := !d.busy
	call.leads, d.busy = lead, true
	d.mu.Unlock()
	if !lead {
		select {
		case lead = <-call.turn:
		case <-ctx.Done():
			if d.leave(call) {
				return nil, job.Errorf(job.KindUnavailable, "gave_up", "the caller stopped waiting").WithCause(context.Cause(ctx))
			}
			lead = <-call.turn
		}
	}
	if lead {
		d.lead(ctx, call, write)
	}
	return call.out, call.err
}

// leave takes a call out that is not being written; false: it is, or has the desk.
func (d *desk[I, O]) leave(call *deskCall[I, O]) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.waiting, call)
	if i < 0 || call.leads {
		return false
	}
	d.waiting = slices.Delete(d.waiting, i, i+1)
	return true
}

// lead writes what waits, answers, and passes the desk on.
func (d *desk[I, O]) lead(ctx context.Context, own *deskCall[I, O], write func(context.Context, []I) ([]O, error)) {
	d.await()
	batch := d.take()
	defer d.pass()
	defer func() { // also when the store panics
		for _, c := range batch {
			if c != own {
				c.turn <- false
			}
		}
	}()
	for _, c := range batch {
		c.err = job.Errorf(job.KindInternal, "not_written", "nothing was written")
	}

	if len(batch) > 1 { // the leader's end is not that of the others
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	d.write(ctx, batch, write)
}

// await lets more come when the newest transaction had a crowd, until as many wait again or the next one is full: then so many are on
// their way that each transaction costs more of the processors than a moment costs time. Two callers wait for nobody.
func (d *desk[I, O]) await() {
	d.mu.Lock()
	if d.gather == 0 || d.last < crowd || d.crowded() {
		d.mu.Unlock()
		return
	}
	enough := make(chan struct{})
	d.enough = enough
	d.mu.Unlock()
	timer := time.NewTimer(d.gather)
	defer timer.Stop()
	select {
	case <-enough:
	case <-timer.C:
		d.mu.Lock()
		d.enough = nil
		d.mu.Unlock()
	}
}

// crowded tells that as many wait as the newest transaction had, or as fit into one; mu is held.
func (d *desk[I, O]) crowded() bool {
	items := 0
	for _, c := range d.waiting {
		items += len(c.items)
	}
	return len(d.waiting) >= d.last || items >= d.most
}

// take takes the calls out whose items fit into one transaction.
func (d *desk[I, O]) take() []*deskCall[I, O] {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, items, size := 0, 0, 0
	for ; n < len(d.waiting); n++ {
		items += len(d.waiting[n].items)
		size += d.waiting[n].size
		if n > 0 && (items > d.most || size > d.bytes) {
			break
		}
	}
	batch := slices.Clone(d.waiting[:n])
	d.waiting, d.last = slices.Delete(d.waiting, 0, n), n
	return batch
}

// write writes a batch, and by halves if one of them was refused: which takes a few transactions, not one for each call.
func (d *desk[I, O]) write(ctx context.Context, batch []*deskCall[I, O], write func(context.Context, []I) ([]O, error)) {
	all := batch[0].items
	if len(batch) > 1 {
		all = nil
		for _, c := range batch {
			all = append(all, c.items...)
		}
	}
	out, err := write(ctx, all)
	if err != nil && len(batch) > 1 && d.alone(err) {
		half := len(batch) / 2
		d.write(ctx, batch[:half], write)
		d.write(ctx, batch[half:], write)
		return
	}
	for _, c := range batch {
		if c.err = err; err == nil {
			c.out, out = out[:len(c.items):len(c.items)], out[len(c.items):]
		}
	}
}

// pass gives the desk to the next one.
func (d *desk[I, O]) pass() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy = len(d.waiting) > 0; d.busy {
		d.waiting[0].leads = true
		d.waiting[0].turn <- true
	}
}

// desks are desks of a kind, one for each name while somebody is at it: what one name waits for, as a lock on its row, holds up
// nobody else.
type desks[I, O any] struct {
	create func() *desk[I, O]

	mu sync.Mutex
	of map[string]*manned[I, O]
}

type manned[I, O any] struct {
	*desk[I, O]
	callers int
}

// put is desk.put at the desk of a name.
func (d *desks[I, O]) put(ctx context.Context, name string, items []I, write func(context.Context, []I) ([]O, error)) ([]O, error) {
	at := d.enter(name)
	defer d.exit(name)
	return at.put(ctx, items, write)
}

func (d *desks[I, O]) enter(name string) *manned[I, O] {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.of[name]
	if at == nil {
		if d.of == nil {
			d.of = map[string]*manned[I, O]{}
		}
		at = &manned[I, O]{desk: d.create()}
		d.of[name] = at
	}
	at.callers++
	return at
}

func (d *desks[I, O]) exit(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := d.of[name]; at.callers > 1 {
		at.callers--
	} else {
		delete(d.of, name)
	}
}
