package partition

import (
	"fmt"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// carefulFor is how long events run one by one after one of a step could not be decided or stored.
const carefulFor = 10 * time.Second

func poisonError() *job.Error {
	return job.Errorf(job.KindRejected, "poison", "this call can not be carried out: it was set aside and recorded").
		WithHint("sending it again will not help; the server's log has the cause")
}

func isSetAside(it item) bool {
	_, ok := it.event.(engine.SetAside)
	return ok
}

// poisoned ends a tenure whose engine panicked or whose commit was refused for its data, and says what
// the next engine has to run (R3): the events of that step one by one, or, when the step had one event
// alone, the record that it is set aside. Pages are not carried over, they are read again.
func (t *tenure) poisoned(items []item, err error, about engine.About) *ending {
	e := &ending{why: endPoisoned, err: err, about: about}
	if t.careful(t.seat.n.mono()) && len(items) == 1 && t.seat.current.Load() == t {
		if it, ok := t.convict(items[0], err); ok {
			e.carry = append(e.carry, it)
		}
		items = nil
	}
	for _, it := range items {
		e.carry = t.carryOn(e.carry, it)
	}
	if t.careful(t.seat.n.mono()) { // what waits are the other suspects
		for _, it := range t.queue {
			e.carry = t.carryOn(e.carry, it)
		}
		t.queue, t.unread = nil, 0
	}
	return e
}

// carryOn moves a call, or the record of a bad event, to the next engine.
func (t *tenure) carryOn(carry []item, it item) []item {
	if it.call == nil && !isSetAside(it) {
		return carry
	}
	if it.call != nil {
		delete(t.waiters, it.call.reply)
	}
	return append(carry, it)
}

// convict turns the event that failed alone into its record. ok is false when there is nothing to record.
func (t *tenure) convict(it item, err error) (item, bool) {
	if it.call != nil {
		delete(t.waiters, it.call.reply)
	}
	for _, key := range keysOf(it.event) {
		if !isEntry(it.event) {
			t.seat.skip[key] = true // its row stays and would come again with the next page
		}
	}
	if rec, again := it.event.(engine.SetAside); again {
		for _, key := range keysOf(rec.Event) {
			t.seat.skip[key] = true
		}
		t.log.Error("an event could not even be recorded as set aside; it is left out until this server is started again", "kind", kindOf(rec.Event), "err", err)
		if it.call != nil {
			it.call.answer <- answered{err: poisonError()}
		}
		return item{}, false
	}
	t.log.Error("an event is set aside: alone on a fresh engine it could not be decided or stored; the partition goes on without it", "kind", it.kind, "about", keysOf(it.event), "err", err)
	t.seat.tally.eventSetAside()
	ev := engine.SetAside{Event: it.event, Error: err.Error()}
	return item{event: ev, kind: kindOf(ev), call: it.call}, true
}

func isEntry(ev engine.Event) bool {
	_, ok := ev.(engine.InboxPage)
	return ok
}

// keysOf names the rows of a page.
func keysOf(ev engine.Event) []string {
	var keys []string
	switch e := ev.(type) {
	case engine.InboxPage:
		for i := range e.Entries {
			keys = append(keys, entryKey(e.Entries[i].ID))
		}
	case engine.DuePage:
		for i := range e.Items {
			keys = append(keys, dueKey(&e.Items[i]))
		}
	case engine.ScheduledPage:
		for i := range e.Rows {
			keys = append(keys, rowKey(&e.Rows[i]))
		}
	case engine.BacklogPage:
		for i := range e.Rows {
			keys = append(keys, rowKey(&e.Rows[i]))
		}
	case engine.ExecutionPage:
		for i := range e.Rows {
			keys = append(keys, rowKey(&e.Rows[i]))
		}
	case engine.ShardPage:
		for i := range e.Rows {
			keys = append(keys, shardKey(&e.Rows[i]))
		}
	case engine.UpstreamPage:
		for i := range e.Items {
			keys = append(keys, upstreamKey(&e.Items[i]))
		}
	}
	return keys
}

func entryKey(id int64) string { return fmt.Sprintf("entry %d", id) }
func dueKey(d *engine.Due) string {
	return fmt.Sprintf("schedule %s of job %s", d.Cursor.Schedule, d.Cursor.Job)
}
func rowKey(r *engine.Row) string { return "execution " + r.Execution.ID.String() }
func shardKey(s *engine.Settled) string {
	return fmt.Sprintf("shard %d of execution %s", s.Index, s.Execution)
}
func upstreamKey(u *engine.Upstream) string {
	return fmt.Sprintf("what execution %s of job %s runs after", u.Target, u.Child)
}
func (t *tenure) bad(k string) bool { return t.seat.skip[k] }

// digestible takes rows that were set aside out of a page and, while events run one by one, cuts it into
// pages of one row. A page that brings nothing is left out where the engine does not wait for it.
func (t *tenure) digestible(ev engine.Event) []engine.Event {
	single := t.careful(t.seat.n.mono())
	switch e := ev.(type) {
	case engine.InboxPage:
		parts, rest := split(e.Entries, single, func(x *engine.Entry) bool { return t.bad(entryKey(x.ID)) })
		var out []engine.Event
		for _, part := range append(parts, rest) {
			if len(part) > 0 {
				out = append(out, engine.InboxPage{Seq: e.Seq, Entries: part})
			}
		}
		return out
	case engine.DuePage:
		return t.digestibleDue(e, single)
	case engine.BacklogPage:
		parts, rest := split(e.Rows, single, func(x *engine.Row) bool { return t.bad(rowKey(x)) })
		var out []engine.Event
		after := e.After
		for _, part := range parts {
			out = append(out, engine.BacklogPage{Seq: e.Seq, After: after, Rows: part, Partial: true})
			after = engine.Place{At: part[0].Execution.PlannedAt, ID: part[0].Execution.ID}
		}
		page := engine.BacklogPage{Seq: e.Seq, After: after, Rows: rest, Partial: e.Partial}
		if n := len(e.Rows); e.Partial && n > 0 && t.bad(rowKey(&e.Rows[n-1])) { // else it would be read again and again
			page.Through = engine.Place{At: e.Rows[n-1].Execution.PlannedAt, ID: e.Rows[n-1].Execution.ID}
		}
		return append(out, page)
	case engine.ScheduledPage:
		parts, rest := split(e.Rows, single, func(x *engine.Row) bool { return t.bad(rowKey(x)) })
		var out []engine.Event
		after := e.After
		for _, part := range parts {
			x := &part[0].Execution
			through := engine.Place{At: x.PlannedAt, ID: x.ID}
			out = append(out, engine.ScheduledPage{Seq: e.Seq, After: after, Through: through, Rows: part})
			after = through
		}
		return append(out, engine.ScheduledPage{Seq: e.Seq, After: after, Through: e.Through, Rows: rest})
	case engine.ExecutionPage:
		return t.digestibleIDs(e, single)
	case engine.ShardPage:
		return t.digestibleShards(e, single)
	case engine.UpstreamPage:
		return t.digestibleUpstream(e, single)
	default:
		return []engine.Event{ev}
	}
}

// digestibleDue keeps the schedules of a job that owes together, for the engine settles them together.
func (t *tenure) digestibleDue(e engine.DuePage, single bool) (out []engine.Event) {
	parts, rest := split(e.Items, single, func(x *engine.Due) bool { return t.bad(dueKey(x)) })
	var pages [][]engine.Due
	for _, part := range append(parts, rest) {
		if n := len(pages); e.Owed && n > 0 && pages[n-1][0].Cursor.Job == part[0].Cursor.Job {
			pages[n-1] = append(pages[n-1], part...)
			continue
		}
		pages = append(pages, part)
	}
	after := e.After
	for i, items := range pages {
		page := engine.DuePage{Owed: e.Owed, Seq: e.Seq, Until: e.Until, After: after, Items: items, Partial: e.Partial || i < len(pages)-1}
		if n := len(items); n > 0 {
			after = &items[n-1].Cursor
		}
		if n := len(e.Items); i == len(pages)-1 && e.Partial && n > 0 && t.bad(dueKey(&e.Items[n-1])) {
			page.Through = &e.Items[n-1].Cursor // the read goes on behind what is left out
		}
		out = append(out, page)
	}
	return out
}

func (t *tenure) digestibleIDs(e engine.ExecutionPage, single bool) (out []engine.Event) {
	parts, rest := split(e.Rows, single, func(x *engine.Row) bool { return t.bad(rowKey(x)) })
	asked := slices.Clone(e.Asked)
	for _, part := range parts {
		id := part[0].Execution.ID
		asked = slices.DeleteFunc(asked, func(a job.ExecutionID) bool { return a == id })
		out = append(out, engine.ExecutionPage{Seq: e.Seq, Asked: []job.ExecutionID{id}, Rows: part})
	}
	return append(out, engine.ExecutionPage{Seq: e.Seq, Asked: asked, Rows: rest, Elsewhere: e.Elsewhere})
}

func (t *tenure) digestibleShards(e engine.ShardPage, single bool) (out []engine.Event) {
	parts, rest := split(e.Rows, single, func(x *engine.Settled) bool { return t.bad(shardKey(x)) })
	asked := slices.Clone(e.Asked)
	for _, part := range parts {
		ref := part[0].ShardRef
		asked = slices.DeleteFunc(asked, func(a engine.ShardRef) bool { return a == ref })
		out = append(out, engine.ShardPage{Seq: e.Seq, Asked: []engine.ShardRef{ref}, Rows: part})
	}
	return append(out, engine.ShardPage{Seq: e.Seq, Asked: asked, Rows: rest})
}

func (t *tenure) digestibleUpstream(e engine.UpstreamPage, single bool) (out []engine.Event) {
	parts, rest := split(e.Items, single, func(x *engine.Upstream) bool { return t.bad(upstreamKey(x)) })
	asked := slices.Clone(e.Asked)
	for _, part := range parts {
		ask := part[0].UpstreamAsk
		asked = slices.DeleteFunc(asked, func(a engine.UpstreamAsk) bool { return a == ask })
		out = append(out, engine.UpstreamPage{Seq: e.Seq, Asked: []engine.UpstreamAsk{ask}, Items: part})
	}
	return append(out, engine.UpstreamPage{Seq: e.Seq, Asked: asked, Items: rest})
}

// split leaves bad rows out and cuts off, when single is set, all but the last row one by one.
func split[T any](rows []T, single bool, bad func(*T) bool) (parts [][]T, rest []T) {
	for i := range rows {
		if !bad(&rows[i]) {
			rest = append(rest, rows[i])
		}
	}
	for single && len(rest) > 1 {
		parts = append(parts, rest[:1:1])
		rest = rest[1:]
	}
	return parts, rest
}

// stuck counts the entries that nothing will take out of the inbox, or that have been there for two looks: they wait for something,
// such as a job that is to move here. fresh: some were not in the page before.
func (t *tenure) stuck(entries []engine.Entry) (n int, fresh bool) {
	r, now := &t.reading, t.seat.n.mono()
	since := make(map[int64]time.Duration, len(entries))
	for i := range entries {
		id := entries[i].ID
		first, was := r.since[id]
		if !was {
			first, fresh = now, true
		}
		since[id] = first
		if !entries[i].Kind.Known() || t.bad(entryKey(id)) || now-first >= 2*t.cfg.Lease.Look {
			n++
		}
	}
	r.since = since
	return n, fresh
}
