package partition

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// The kinds of pages. At most one of each is being read at a time.
const (
	pageInbox = iota
	pageDue
	pageBacklog
	pageScheduled
	pageExecutions
	pageShards
	pageUpstream
	pageAwaiting
	pageKinds
)

// These bound one read by id.
const (
	executionsAtOnce = 256
	shardsAtOnce     = 1024
	upstreamAtOnce   = 256
)

// reading is what is being read and what is to be read. The runner's goroutine owns it; the readers only
// send their page.
type reading struct {
	ctx      context.Context
	busy     [pageKinds]bool
	queued   [pageKinds]int // page events in the queue
	wanted   [pageKinds]bool
	retry    [pageKinds]time.Duration // mono before which a kind is not read again: it failed
	due      engine.WantDue
	backlog  engine.WantBacklog
	waiting  engine.WantScheduled
	ids      wishes[job.ExecutionID]
	shards   wishes[engine.ShardRef]
	upstream wishes[engine.UpstreamAsk]
	awaiting engine.WantAwaiting
	stuck    int                     // entries of the newest inbox page that stay there: unknown to the engine, set aside, or waiting
	since    map[int64]time.Duration // mono when those of that page were first seen
	inboxDue time.Duration           // mono when the inbox is read unasked
	begun    time.Duration           // mono when the newest reader was started
	inbox    bool                    // it was read to its end once
	asked    bool                    // the engine wants a page of it, also one with nothing in it
}

// inboxFirst is how long after the load what is due may wait for what people have asked before: a reschedule or a cancel that was stored
// while nobody owned the partition.
const inboxFirst = time.Second

// waits tells that a kind of page is not read yet: its rows act by themselves, and the inbox may say otherwise.
func (t *tenure) waits(kind int, now time.Duration) bool {
	return (kind == pageScheduled || kind == pageBacklog) && !t.reading.inbox && now < t.loaded+inboxFirst
}

// wishes are ids that are to be read, and those that are being read.
type wishes[K comparable] struct{ next, asked []K }

// add tells whether there is something new.
func (w *wishes[K]) add(ids []K) bool {
	was := len(w.next)
	for _, id := range ids {
		if !slices.Contains(w.next, id) && !slices.Contains(w.asked, id) {
			w.next = append(w.next, id)
		}
	}
	return len(w.next) > was
}

// take begins to read up to n; more tells that others are left.
func (w *wishes[K]) take(n int) (ids []K, more bool) {
	n = min(len(w.next), n)
	w.asked, w.next = slices.Clone(w.next[:n]), slices.Clone(w.next[n:])
	return w.asked, len(w.next) > 0
}

// done ends the read; what it did not come to is wished for again. It tells whether there is such.
func (w *wishes[K]) done(came []K) bool {
	var left []K
	for _, id := range w.asked {
		if !slices.Contains(came, id) {
			left = append(left, id)
		}
	}
	w.next, w.asked = append(left, w.next...), nil
	return len(left) > 0
}

// page is what a reader brought.
type page struct {
	kind  int
	event engine.Event
	full  bool // an inbox page that ended at its limit
	err   error
}

// want notes what the engine asked for. What is being read already is not read twice.
func (t *tenure) want(w engine.Want) {
	r := &t.reading
	if w.Inbox {
		r.wanted[pageInbox], r.asked = true, true
	}
	if w.Due != nil {
		r.due, r.wanted[pageDue] = *w.Due, true
	}
	if w.Backlog != nil {
		r.backlog, r.wanted[pageBacklog] = *w.Backlog, true
	}
	if w.Scheduled != nil {
		r.waiting, r.wanted[pageScheduled] = *w.Scheduled, true
	}
	if r.ids.add(w.Executions) {
		r.wanted[pageExecutions] = true
	}
	if r.shards.add(w.Shards) {
		r.wanted[pageShards] = true
	}
	if r.upstream.add(w.Upstream) {
		r.wanted[pageUpstream] = true
	}
	if w.Awaiting != nil {
		r.awaiting, r.wanted[pageAwaiting] = *w.Awaiting, true
	}
}

// reads tells whether a page is being read.
func (r *reading) reads() bool { return r.busy != [pageKinds]bool{} }

// soon tells whether a page that is being read is worth waiting for before the next step: it usually
// arrives within the time that a step may gather anyhow, and then neither the commit of the step races
// with the page, nor does the page miss the step.
func (r *reading) soon(now, gather time.Duration) bool { return r.untilLate(now, gather) > 0 }

func (r *reading) untilLate(now, gather time.Duration) time.Duration {
	if !r.reads() {
		return 0
	}
	return r.begun + gather - now
}

// read starts the readers that are due: while no commit is on the way, so that few rows have changed
// since (R14), or when that has not happened for a whole look.
func (t *tenure) read() {
	r, now := &t.reading, t.seat.n.mono()
	if (t.flight != nil || t.prepared != nil) && now < r.begun+2*t.cfg.Lease.Look {
		return
	}
	if now >= r.inboxDue {
		r.wanted[pageInbox] = true
	}
	for kind := range pageKinds {
		if r.wanted[kind] && r.free(kind) && now >= r.retry[kind] && !t.waits(kind, now) {
			r.wanted[kind], r.busy[kind], r.begun = false, true, now
			t.startReader(kind, now)
		}
	}
}

func (t *tenure) startReader(kind int, now time.Duration) {
	r, st, p := &t.reading, t.cfg.Store, t.seat.partition
	var get func(ctx context.Context) (engine.Event, bool, error)
	switch kind {
	case pageInbox:
		r.inboxDue = now + t.seat.n.inboxEach() + t.cfg.Jitter()
		limit := t.cfg.InboxPage + r.stuck // what stays must not take the place of what is newer
		get = func(ctx context.Context) (engine.Event, bool, error) {
			pg, err := st.InboxPage(ctx, p, limit)
			return pg, pg.Partial, err
		}
	case pageDue:
		w := r.due
		get = func(ctx context.Context) (engine.Event, bool, error) {
			pg, err := st.DuePage(ctx, p, w)
			return pg, false, err
		}
	case pageBacklog:
		w := r.backlog
		get = func(ctx context.Context) (engine.Event, bool, error) {
			pg, err := st.BacklogPage(ctx, p, w)
			return pg, false, err
		}
	case pageScheduled:
		w := r.waiting
		get = func(ctx context.Context) (engine.Event, bool, error) {
			pg, err := st.ScheduledPage(ctx, p, w)
			return pg, false, err
		}
	case pageExecutions:
		ids, more := r.ids.take(executionsAtOnce)
		r.wanted[kind] = more
		get = func(ctx context.Context) (engine.Event, bool, error) {
			pg, err := st.ExecutionPage(ctx, p, ids)
			return pg, false, err
		}
	case pageShards:
		refs, more := r.shards.take(shardsAtOnce)
		r.wanted[kind] = more
		get = func(ctx context.Context) (engine.Event, bool, error) {
			pg, err := st.ShardPage(ctx, p, refs)
			return pg, false, err
		}
	case pageUpstream:
		asks, more := r.upstream.take(upstreamAtOnce)
		r.wanted[kind] = more
		get = func(ctx context.Context) (engine.Event, bool, error) {
			pg, err := st.UpstreamPage(ctx, p, asks)
			return pg, false, err
		}
	case pageAwaiting:
		w := r.awaiting
		get = func(ctx context.Context) (engine.Event, bool, error) {
			pg, err := st.AwaitingPage(ctx, p, w)
			return pg, false, err
		}
	}
	ctx := r.ctx
	t.wg.Go(func() {
		ev, full, err := get(ctx)
		t.pages <- page{kind: kind, event: ev, full: full, err: err} // has room for one of each kind
	})
}

// arrived queues a page as an event. A failed read is tried again a look later.
func (t *tenure) arrived(p page) {
	r := &t.reading
	r.busy[p.kind] = false
	switch ev := p.event.(type) { // the zero value when the read failed
	case engine.ExecutionPage:
		r.wanted[p.kind] = r.ids.done(ev.Asked) || r.wanted[p.kind]
	case engine.ShardPage:
		r.wanted[p.kind] = r.shards.done(ev.Asked) || r.wanted[p.kind]
	case engine.UpstreamPage:
		r.wanted[p.kind] = r.upstream.done(ev.Asked) || r.wanted[p.kind]
	}
	if p.err != nil {
		r.wanted[p.kind] = true
		r.retry[p.kind] = t.seat.n.mono() + t.cfg.Lease.Look
		if r.ctx.Err() == nil {
			t.seat.n.trouble(t.log, slog.LevelError, "a page could not be read; reading it again shortly", p.err, "page", kindOf(p.event))
		}
		return
	}
	if inbox, is := p.event.(engine.InboxPage); is {
		r.inbox = r.inbox || !p.full
		was := r.stuck
		stuck, fresh := t.stuck(inbox.Entries)
		if r.stuck = stuck; !fresh && p.full { // what is in the way may be on its way out, or wait: no reason to look without end
			r.retry[pageInbox] = t.seat.n.mono() + t.cfg.Lease.Look/10
		}
		r.wanted[pageInbox] = r.wanted[pageInbox] || p.full && (len(inbox.Entries) > r.stuck || r.stuck > was)
	}
	all := t.digestible(p.event)
	if p.kind == pageInbox {
		if page, is := p.event.(engine.InboxPage); is && r.asked && len(all) == 0 { // what is left out of it stays out
			all = append(all, engine.InboxPage{Seq: page.Seq})
		}
		r.asked = false
	}
	for _, ev := range all {
		r.queued[p.kind]++
		t.queue = append(t.queue, item{event: ev, kind: kindOf(ev), at: t.seat.n.mono()})
	}
}

// untilRead is the time until a reader is to be started by the clock.
func (t *tenure) untilRead(now time.Duration) time.Duration {
	r := &t.reading
	d := time.Hour
	if r.free(pageInbox) {
		d = max(r.inboxDue, r.retry[pageInbox]) - now
	}
	for kind := range pageKinds {
		if r.wanted[kind] && r.free(kind) {
			at := r.retry[kind]
			if t.waits(kind, now) {
				at = max(at, t.loaded+inboxFirst)
			}
			d = min(d, at-now)
		}
	}
	if t.flight != nil || t.prepared != nil {
		d = max(d, r.begun+2*t.cfg.Lease.Look-now)
	}
	return d
}

// free tells that no page of a kind is being read or waits to be stepped.
func (r *reading) free(kind int) bool { return !r.busy[kind] && r.queued[kind] == 0 }

// pageKind is the kind of a page event; false for other events.
func pageKind(ev engine.Event) (int, bool) {
	switch ev.(type) {
	case engine.InboxPage:
		return pageInbox, true
	case engine.DuePage:
		return pageDue, true
	case engine.BacklogPage:
		return pageBacklog, true
	case engine.ScheduledPage:
		return pageScheduled, true
	case engine.ExecutionPage:
		return pageExecutions, true
	case engine.ShardPage:
		return pageShards, true
	case engine.UpstreamPage:
		return pageUpstream, true
	case engine.AwaitingPage:
		return pageAwaiting, true
	default:
		return 0, false
	}
}
