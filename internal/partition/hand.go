package partition

import (
	"time"

	"github.com/taktsched/takt/internal/engine"
)

// hand passes a page on that was not read; false when the runner has enough of them.
func (t *tenure) hand(p engine.InboxPage) bool {
	select {
	case t.handed <- p:
		return true
	default:
		return false
	}
}

// takeHanded queues a page that was not read, when the inbox has nothing before its entries as far as is known: those who wrote
// other entries here have woken the runner, or handed them over in turn. Else the inbox is read, as it is each look. What of the page
// an engine of this tenure has taken since, it knows by the page's Seq; of what was taken before the tenure's load it knows nothing. More entries
// than a page of the inbox has do not wait in the queue: they are read when their turn comes.
func (t *tenure) takeHanded(p engine.InboxPage) {
	r, now := &t.reading, t.seat.n.mono()
	select {
	case <-t.wake: // what was written before it and told without a page
		r.wanted[pageInbox] = true
	default:
	}
	if r.wanted[pageInbox] || !r.free(pageInbox) || p.Seq < t.from || t.careful(now) || t.unread+len(p.Entries) > t.cfg.InboxPage {
		r.wanted[pageInbox] = true
		return
	}
	for _, ev := range t.digestible(p) {
		t.unread += handedIn(ev)
		t.queue = append(t.queue, item{event: ev, kind: kindOf(ev), handed: true, at: now})
	}
}

// handedIn counts the entries of a page.
func handedIn(ev engine.Event) int {
	if p, is := ev.(engine.InboxPage); is {
		return len(p.Entries)
	}
	return 0
}

// handWait is the longest wait for a page that is being written. That takes about as long as a commit, which the page would have to
// wait for otherwise; a database with one writer at a time would make the commit wait, too.
const handWait = 10 * time.Millisecond

// untilHanded is how long what is queued may wait for a page that is being written: both are one commit then.
func (t *tenure) untilHanded(now time.Duration) time.Duration {
	if t.expected.Load() <= 0 || len(t.queue) == 0 || t.queue[len(t.queue)-1].handed {
		return 0
	}
	return t.queue[0].at + handWait - now
}
