package control

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

const (
	deskChunks  = 2000    // of one transaction
	deskBytes   = 1 << 20 // of lines of one transaction, which holds the writer while it packs them
	deskTimeout = 10 * time.Second
)

// logDesk makes one transaction of the log calls that come while another one is written. It starts no goroutine:
// the first caller writes for those behind it and passes the desk on.
type logDesk struct {
	mu      sync.Mutex
	busy    bool
	waiting []*logCall
}

// logCall is one caller's chunks.
type logCall struct {
	chunks []store.LogChunk
	size   int       // bytes of lines
	turn   chan bool // gets true when the caller is to write, false when it is answered
	leads  bool      // guarded by the desk's lock
	out    []store.LogAppended
	err    error
}

type logWriter func(context.Context, []store.LogChunk) ([]store.LogAppended, error)

// append hands chunks in and waits for the answer. When ctx ends first they may or may not be written.
func (d *logDesk) append(ctx context.Context, chunks []store.LogChunk, write logWriter) ([]store.LogAppended, error) {
	call := &logCall{chunks: chunks, turn: make(chan bool, 1)}
	for i := range chunks {
		for n := range chunks[i].Lines {
			call.size += len(chunks[i].Lines[n].Bytes)
		}
	}
	d.mu.Lock()
	d.waiting = append(d.waiting, call)
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
func (d *logDesk) leave(call *logCall) bool {
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
func (d *logDesk) lead(ctx context.Context, own *logCall, write logWriter) {
	d.mu.Lock()
	n, chunks, size := 0, 0, 0
	for ; n < len(d.waiting); n++ {
		chunks += len(d.waiting[n].chunks)
		size += d.waiting[n].size
		if n > 0 && (chunks > deskChunks || size > deskBytes) {
			break
		}
	}
	batch := slices.Clone(d.waiting[:n])
	d.waiting = slices.Delete(d.waiting, 0, n)
	d.mu.Unlock()
	defer d.pass()
	defer func() { // also when the store panics
		for _, c := range batch {
			if c != own {
				c.turn <- false
			}
		}
	}()
	for _, c := range batch {
		c.err = job.Errorf(job.KindInternal, "not_written", "the log was not written")
	}

	// The others' chunks are in it: the leader's end is not theirs.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deskTimeout)
	defer cancel()
	writeAll(ctx, batch, write)
}

// writeAll writes a batch, and one by one if the database refuses what one of them says.
func writeAll(ctx context.Context, batch []*logCall, write logWriter) {
	var all []store.LogChunk
	for _, c := range batch {
		all = append(all, c.chunks...)
	}
	out, err := write(ctx, all)
	if job.KindOf(err) == job.KindRejected && len(batch) > 1 {
		for i := range batch {
			writeAll(ctx, batch[i:i+1], write)
		}
		return
	}
	for _, c := range batch {
		if c.err = err; err == nil {
			c.out, out = out[:len(c.chunks)], out[len(c.chunks):]
		}
	}
}

// pass gives the desk to the next one.
func (d *logDesk) pass() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy = len(d.waiting) > 0; d.busy {
		d.waiting[0].leads = true
		d.waiting[0].turn <- true
	}
}
