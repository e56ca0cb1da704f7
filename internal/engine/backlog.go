package engine

import (
	"bytes"

	"github.com/taktsched/takt/internal/job"
)

// Queued executions that do not fit into memory stay in the database and are paged in when there is room
// (R14). Room is counted by line (pool and handler), so that one without workers takes nothing from the
// others; the pages run over all lines in the order of work, and each line remembers how far it has seen.

// backlog is what a line has left in the database.
type backlog struct {
	left   bool       // there may be queued executions that are not in memory …
	after  backlogKey // … all of them behind this one
	unseen int64      // the newest batch that left one: an older page does not show it; 0: a page has shown them all
	first  backlogKey // … the first that none has shown
	need   int        // shards of the execution that found no room there; 0: not known
}

type backlogKey struct {
	at job.Instant
	id job.ExecutionID
}

func (k backlogKey) less(o backlogKey) bool {
	return k.at < o.at || k.at == o.at && bytes.Compare(k.id[:], o.id[:]) < 0
}

// before is a key that lies before k, and before what shares its instant.
func (k backlogKey) before() backlogKey { return backlogKey{at: k.at - 1} }

// holds tells whether n new queued shards may stay in memory. While others wait in the database, new ones
// may not take the room that their page needs: they would overtake them for ever.
func (e *Engine) holds(l *line, n int) bool {
	if l.backlog.left {
		return len(l.shards) == 0 || len(l.shards)+n <= e.cfg.ReadyMax/2 && e.light(l, 2)
	}
	return e.room(l, n)
}

// room tells whether n more shards fit in. The first execution always does.
func (e *Engine) room(l *line, n int) bool {
	return len(l.shards) == 0 || len(l.shards)+n <= e.cfg.ReadyMax && e.light(l, 1)
}

// light tells whether l uses up less than a part (1, or 1/2 …) of the bytes that it may hold: a small share
// of its own, and while it has workers whatever all lines together leave.
func (e *Engine) light(l *line, part int) bool {
	return l.bytes < e.cfg.ReadyBytes/64/part || l.offers > 0 && e.ready < e.cfg.ReadyBytes/part
}

// hungry tells that l's workers could soon run out of work that the database may have, and that the next
// of it would find room.
func (e *Engine) hungry(l *line) bool {
	switch {
	case !l.backlog.left || l.offers == 0:
		return false
	case len(l.shards) == 0:
		return true
	}
	return len(l.shards) < e.cfg.ReadyMax/2 && e.light(l, 2) && e.room(l, l.backlog.need)
}

// watch keeps the lines that may get hungry: those with workers and something left.
func (p *pageBook) watch(l *line) {
	if l.backlog.left && l.offers > 0 && l.pool.lines[l.handler] == l {
		p.behind[l] = true
	} else {
		delete(p.behind, l)
	}
}

// join takes over what another line knew.
func (b *backlog) join(o backlog) {
	if !o.left {
		return
	}
	if !b.left || o.after.less(b.after) {
		b.after = o.after
	}
	if o.unseen > 0 && (b.unseen == 0 || o.first.less(b.first)) {
		b.first = o.first
	}
	b.unseen = max(b.unseen, o.unseen)
	b.left = true
}

// leave notes a queued execution that stays in the database, where the batch of that number puts it. A page may be read
// before that, even one that is asked for later: while a commit takes long, pages are read all the same.
func (b *backlog) leave(k backlogKey, batch int64) {
	if b.unseen == 0 || k.less(b.first) {
		b.first = k
	}
	b.unseen = max(b.unseen, batch)
	if !b.left || !b.after.less(k) {
		b.after, b.need = k.before(), 0
	}
	b.left = true
}

// wantBacklog asks for the next page, when a line is hungry or nothing was looked at since the load.
func (e *Engine) wantBacklog() *WantBacklog {
	p := &e.pages
	late := p.askedBack > 0 && e.now.Mono >= p.askedBack+askAgain
	if p.askedBack > 0 && !late {
		return nil
	}
	p.askedBack = 0
	from, wanted := backlogKey{}, p.fresh
	for l := range p.behind {
		if !p.fresh && e.hungry(l) && (!wanted || l.backlog.after.less(from)) {
			from, wanted = l.backlog.after, true
		}
	}
	if !wanted {
		return nil
	}
	p.askedBack, p.backFrom = max(e.now.Mono, 1), from
	return &WantBacklog{PlannedAt: from.at, ID: from.id, Limit: e.cfg.PageSize}
}

// full is where a line's part of a page ended for want of room.
type full struct {
	before backlogKey // the place before the first row that found none
	need   int        // its shards
}

// backlogPage takes queued executions out of the database, as far as their lines have room. Those in
// memory, and those changed since the page was read, are dropped. What a line has left before the page's
// begin comes first: its rows are dropped, too.
func (e *Engine) backlogPage(ev BacklogPage) {
	p := &e.pages
	sure := p.askedBack > 0 && ev.After == Place{p.backFrom.at, p.backFrom.id} // else it answers an earlier question, or is a part of a page
	if sure {
		p.askedBack = 0
	}
	if p.tooOld(ev.Seq) {
		return // asked again by want
	}
	skipped := map[*line]full{}
	last := p.backFrom
	for _, row := range ev.Rows {
		x, before := &row.Execution, last
		last = backlogKey{x.PlannedAt, x.ID}
		if e.executions[x.ID] != nil || p.changed(x.ID, ev.Seq) || x.State != job.ExecutionQueued || !e.usable(&row) {
			continue
		}
		l := e.lineOf(x)
		if _, is := skipped[l]; is || sure && l.backlog.left && l.backlog.after.less(p.backFrom) {
			e.tidy(l)
			continue
		}
		if !e.room(l, x.ShardTotal) {
			skipped[l] = full{before, x.ShardTotal}
			continue
		}
		held := e.holdQueued(row)
		if goesWithJob(row.Definition) {
			e.cancel(held, Entry{Definition: row.Definition})
		}
		e.heldNow(row)
	}
	if ev.Through != (Place{}) {
		last = backlogKey{ev.Through.At, ev.Through.ID}
	}
	if sure {
		p.fresh = false
		e.seen(ev.Seq, last, ev.Partial, skipped)
	}
	p.read(ev.Seq)
}

// seen notes for every line that had reached the page's begin how far it has seen now.
func (e *Engine) seen(seq int64, last backlogKey, partial bool, skipped map[*line]full) {
	from := e.pages.backFrom
	e.pages.others.seen(seq, from, last, partial)
	for _, pool := range e.pools {
		for _, l := range pool.lines {
			if f, is := skipped[l]; is {
				l.backlog.seen(seq, from, f.before, true)
				l.backlog.need = f.need
			} else {
				l.backlog.seen(seq, from, last, partial)
			}
			e.pages.watch(l)
		}
	}
}

// seen: a page from … to has shown all that batches up to seq left there; there is nothing behind it unless it is partial.
func (b *backlog) seen(seq int64, from, to backlogKey, partial bool) {
	if !b.left || b.after.less(from) {
		return
	}
	b.left = partial
	if b.after.less(to) {
		b.after, b.need = to, 0
	}
	if b.unseen <= seq {
		b.unseen = 0
	} else {
		b.leave(b.first, b.unseen)
	}
}
