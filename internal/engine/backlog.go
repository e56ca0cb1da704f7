package engine

import (
	"bytes"

	"github.com/taktsched/takt/internal/job"
)

// Queued executions that do not fit into memory stay in the database and are paged in when there is room
// (R14). Room is counted by pool, so that a pool without workers takes nothing from the others; the pages
// run over all pools in the order of work, and each pool remembers how far it has seen.

// backlog is what a pool has left in the database.
type backlog struct {
	left   bool       // there may be queued executions that are not in memory …
	after  backlogKey // … all of them behind this one
	unseen bool       // one was left while a page was on its way, which may not show it …
	first  backlogKey // … the first such
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

// holds tells whether n more queued shards fit into memory. While others wait in the database, new ones
// may not take the room that their page needs: they would overtake them for ever.
func (p *pool) holds(n, most int) bool {
	if p.backlog.left {
		most /= 2
	}
	return p.queued == 0 || p.queued+n <= most
}

// hungry tells that p's workers could soon run out of work that the database may have.
func (p *pool) hungry(most int) bool {
	return p.backlog.left && len(p.sessions) > 0 && p.queued < max(most/2, 1)
}

// leave notes a queued execution that stays in the database.
func (b *backlog) leave(k backlogKey, onWay bool) {
	if onWay && (!b.unseen || k.less(b.first)) {
		b.unseen, b.first = true, k
	}
	if !b.left || !b.after.less(k) {
		b.after = k.before()
	}
	b.left = true
}

// wantBacklog asks for the next page, when a pool is hungry or nothing was looked at since the load.
func (e *Engine) wantBacklog() *WantBacklog {
	p := &e.pages
	late := p.askedBack > 0 && e.now.Mono >= p.askedBack+askAgain
	if p.askedBack > 0 && !late {
		return nil
	}
	p.askedBack = 0
	from, wanted := backlogKey{}, p.fresh
	for _, pool := range e.pools {
		if !p.fresh && pool.hungry(e.cfg.ReadyMax) && (!wanted || pool.backlog.after.less(from)) {
			from, wanted = pool.backlog.after, true
		}
	}
	if !wanted {
		return nil
	}
	if late {
		p.distrust = 3 // the late one may still come, before the one that is asked for now
	}
	p.askedBack, p.backFrom = max(e.now.Mono, 1), from
	return &WantBacklog{PlannedAt: from.at, ID: from.id, Limit: e.cfg.PageSize}
}

// backlogPage takes queued executions out of the database, as far as their pools have room. Those in
// memory, and those changed since the page was read, are dropped.
func (e *Engine) backlogPage(ev BacklogPage) {
	p := &e.pages
	sure := p.askedBack > 0 && p.distrust == 0
	p.askedBack, p.distrust = 0, max(p.distrust-1, 0)
	if p.tooOld(ev.Seq) {
		return // asked again by want
	}
	skipped := map[*pool]backlogKey{} // the place before the first row that found no room
	last := p.backFrom
	for _, row := range ev.Rows {
		x, before := &row.Execution, last
		last = backlogKey{x.PlannedAt, x.ID}
		if e.executions[x.ID] != nil || p.changed(x.ID, ev.Seq) || x.State != job.ExecutionQueued {
			continue
		}
		pool := e.pool(x.Namespace, x.Pool)
		if _, full := skipped[pool]; full || pool.queued > 0 && pool.queued+x.ShardTotal > e.cfg.ReadyMax {
			if !full {
				skipped[pool] = before
			}
			continue
		}
		for _, s := range e.hold(row).shards {
			if s.State == job.ShardQueued {
				e.enqueue(s)
			}
		}
	}
	if sure {
		p.fresh = false
		e.seen(last, ev.Partial, skipped)
	}
	p.read(ev.Seq)
}

// seen notes for every pool that had reached the page's begin how far it has seen now.
func (e *Engine) seen(last backlogKey, partial bool, skipped map[*pool]backlogKey) {
	from := e.pages.backFrom
	e.pages.others.seen(from, last, partial)
	for _, pool := range e.pools {
		if before, full := skipped[pool]; full {
			pool.backlog.seen(from, before, true)
		} else {
			pool.backlog.seen(from, last, partial)
		}
	}
}

// seen: a page from … to has shown all that is left there; there is nothing behind it unless it is partial.
func (b *backlog) seen(from, to backlogKey, partial bool) {
	if !b.left || b.after.less(from) {
		return
	}
	b.left = partial
	if b.after.less(to) {
		b.after = to
	}
	if b.unseen {
		b.unseen = false
		b.leave(b.first, false)
	}
}
