package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// pageBook keeps what the core needs to read and the guard of R14: a page was read from a snapshot with
// a sequence number; rows that a batch behind that number has changed are dropped from it, for the
// batch may have been prepared, or committed, after the read.
type pageBook struct {
	off bool // the guard is switched off (mutant)

	touched map[job.ExecutionID]int64 // by the batch with this seq
	cursors map[dueKey]int64
	jobs    map[job.UID]int64 // any of its cursors
	streaks map[job.UID]int64 // the failures of its cursors
	handed  map[job.UID]int64 // to another partition
	eaten   map[int64]int64   // inbox entries: consumed by the batch with this seq
	pending []int64           // consumed in the step that runs
	passed  []job.ExecutionID // likewise decided about: they are never made
	floor   int64             // pages older than this can not be judged any more
	odd     map[int64]bool    // entries of unknown kinds that were reported

	others    backlog        // of lines that are not known
	behind    map[*line]bool // that may get hungry, see watch
	fresh     bool           // the queued executions of the database were not looked at yet
	askedBack time.Duration  // of the backlog page on its way; 0: none
	backFrom  backlogKey     // it begins behind this key

	upstream  asking[UpstreamAsk]
	stale     map[UpstreamAsk]bool    // asked for again while a page was on its way
	ends      map[UpstreamAsk][]Entry // wait for them
	scanned   bool                    // what waits for parents has been looked through since the load
	scanFrom  job.ExecutionID
	scanAsked time.Duration // of the page on its way; 0: none

	entries map[job.ExecutionID][]Entry // wait for rows
	asked   asking[job.ExecutionID]     // for entries
	reports []*waitingReport            // wait for shards
	shards  asking[ShardRef]            // for reports
}

// waitingReport is a report whose shards are not all known; they may come with several pages.
type waitingReport struct {
	report  Report
	missing map[ShardRef]bool
	found   map[ShardRef]Settled
}

// asking is what is waited for, with when it was asked for; 0: not yet, or it has to be asked for again.
type asking[K comparable] map[K]time.Duration

func (a asking[K]) ask(k K) {
	if _, on := a[k]; !on {
		a[k] = 0
	}
}

// again asks at once for what is still waited for.
func (a asking[K]) again(k K) {
	if _, on := a[k]; on {
		a[k] = 0
	}
}

// due marks up to limit things that have to be asked for now, and gives them: those that wait longest, else the first by
// compare, so that what a step wants depends on nothing but its events.
func (a asking[K]) due(now time.Duration, limit int, compare func(a, b K) int) []K {
	var out []K
	for k, t := range a {
		if t == 0 || now >= t+askAgain {
			out = append(out, k)
		}
	}
	if len(out) > limit {
		slices.SortFunc(out, func(x, y K) int { return cmp.Or(cmp.Compare(a[x], a[y]), compare(x, y)) })
		out = out[:limit]
	}
	for _, k := range out {
		a[k] = max(now, 1)
	}
	slices.SortFunc(out, compare)
	return out
}

// oldest is when the first of what was asked for was; 0: nothing was.
func (a asking[K]) oldest() time.Duration {
	var at time.Duration
	for _, t := range a {
		if t > 0 && (at == 0 || t < at) {
			at = t
		}
	}
	return at
}

// askAgain is how long the core waits for a page before it asks for it once more.
const askAgain = 2 * time.Second

func newPageBook() pageBook {
	return pageBook{touched: map[job.ExecutionID]int64{}, cursors: map[dueKey]int64{}, jobs: map[job.UID]int64{}, streaks: map[job.UID]int64{}, handed: map[job.UID]int64{}, eaten: map[int64]int64{},
		odd: map[int64]bool{}, behind: map[*line]bool{}, entries: map[job.ExecutionID][]Entry{}, asked: asking[job.ExecutionID]{}, shards: asking[ShardRef]{},
		upstream: asking[UpstreamAsk]{}, stale: map[UpstreamAsk]bool{}, ends: map[UpstreamAsk][]Entry{}}
}

// commit notes what a batch changes.
func (p *pageBook) commit(b *Batch) {
	for i := range b.Executions {
		p.touched[b.Executions[i].Row.ID] = b.Seq
	}
	for i := range b.Shards {
		p.touched[b.Shards[i].Row.Execution] = b.Seq
	}
	for _, cursors := range [][]job.Cursor{b.Cursors, b.DropCursors} {
		for _, c := range cursors {
			p.cursors[dueKey{c.Job, c.Schedule}], p.jobs[c.Job] = b.Seq, b.Seq
		}
	}
	for _, id := range p.passed {
		p.touched[id] = b.Seq
	}
	p.passed = p.passed[:0]
	for _, s := range b.SentBackfills {
		p.touched[s.ID] = b.Seq
	}
	for _, h := range b.Handovers {
		p.jobs[h.Job] = b.Seq
	}
	for _, s := range b.Streaks {
		p.jobs[s.Job], p.streaks[s.Job] = b.Seq, b.Seq
	}
	for _, id := range p.pending {
		p.eaten[id] = b.Seq
	}
	p.pending = p.pending[:0]
}

// read notes that a page of seq has come, and forgets what newer pages must contain. Pages of different
// kinds may be on their way at once, so a margin of batches is kept; an older page is refused whole.
func (p *pageBook) read(seq int64) {
	const margin, enough = 1024, 4096
	if len(p.touched)+len(p.cursors)+len(p.eaten) < enough || seq-margin <= p.floor {
		return
	}
	p.floor = seq - margin
	drop(p.touched, p.floor)
	drop(p.cursors, p.floor)
	drop(p.jobs, p.floor)
	drop(p.streaks, p.floor)
	drop(p.handed, p.floor)
	drop(p.eaten, p.floor)
}

func (p *pageBook) tooOld(seq int64) bool { return !p.off && seq < p.floor }

func drop[K comparable](m map[K]int64, upTo int64) {
	for k, seq := range m {
		if seq <= upTo {
			delete(m, k)
		}
	}
}

func (p *pageBook) changed(id job.ExecutionID, seq int64) bool { return !p.off && p.touched[id] > seq }

func (p *pageBook) cursorChanged(k dueKey, seq int64) bool { return !p.off && p.cursors[k] > seq }

func (p *pageBook) cursorsChanged(u job.UID, seq int64) bool { return !p.off && p.jobs[u] > seq }

func (p *pageBook) streakChanged(u job.UID, seq int64) bool { return !p.off && p.streaks[u] > seq }

// left tells that a job was handed over since, so that the page may not know where it is.
func (p *pageBook) left(u job.UID, seq int64) bool { return !p.off && p.handed[u] > seq }

func (p *pageBook) consumed(entry int64) { p.pending = append(p.pending, entry) }

// entryTaken tells that an entry of a page must not be taken: it was consumed since, or waits for rows.
func (p *pageBook) entryTaken(seq int64, entry Entry) bool {
	if p.eaten[entry.ID] > seq {
		return true
	}
	same := func(w Entry) bool { return w.ID == entry.ID }
	return slices.Contains(p.pending, entry.ID) || slices.ContainsFunc(p.entries[entry.Execution], same) ||
		slices.ContainsFunc(p.ends[UpstreamAsk{Child: entry.Job, Ended: entry.Execution}], same)
}

// strange notes an entry of an unknown kind; true the first time, for as many as it can keep in mind.
func (p *pageBook) strange(entry int64) bool {
	if p.odd[entry] || len(p.odd) >= 1000 {
		return false
	}
	p.odd[entry] = true
	return true
}

func (p *pageBook) askEntry(entry Entry) {
	p.entries[entry.Execution] = append(p.entries[entry.Execution], entry)
	p.asked.ask(entry.Execution)
}

// answeredEntries gives the entries that waited for the row of id.
func (p *pageBook) answeredEntries(id job.ExecutionID) []Entry {
	entries := p.entries[id]
	delete(p.entries, id)
	delete(p.asked, id)
	return entries
}

func (p *pageBook) askReport(r Report, missing []ShardRef) {
	w := &waitingReport{report: r, missing: map[ShardRef]bool{}, found: map[ShardRef]Settled{}}
	for _, ref := range missing {
		w.missing[ref] = true
		p.shards.ask(ref)
	}
	p.reports = append(p.reports, w)
}

// arrived tells the reports that wait for a shard what was read about it; is: there is one.
func (p *pageBook) arrived(ref ShardRef, row Settled, is bool) {
	delete(p.shards, ref)
	for _, w := range p.reports {
		if w.missing[ref] && is {
			w.found[ref] = row
		}
		delete(w.missing, ref)
	}
}

// answeredReports gives the reports that wait for no more shards.
func (p *pageBook) answeredReports() (ready []*waitingReport) {
	p.reports = slices.DeleteFunc(p.reports, func(w *waitingReport) bool {
		if len(w.missing) == 0 {
			ready = append(ready, w)
		}
		return len(w.missing) == 0
	})
	return ready
}

// retry is when a page that never came is asked for again.
func (p *pageBook) retry() (time.Duration, bool) {
	var at time.Duration
	for _, t := range []time.Duration{p.asked.oldest(), p.shards.oldest(), p.askedBack, p.upstream.oldest(), p.scanAsked} {
		if t > 0 && (at == 0 || t < at) {
			at = t
		}
	}
	return at + askAgain, at > 0
}

// want says what to read now.
func (e *Engine) want() Want {
	var w Want
	p := &e.pages
	w.Backlog = e.wantBacklog()
	w.Executions = p.asked.due(e.now.Mono, e.cfg.PageSize, compareIDs)
	w.Shards = p.shards.due(e.now.Mono, e.cfg.PageSize, func(a, b ShardRef) int {
		return cmp.Or(compareIDs(a.Execution, b.Execution), cmp.Compare(a.Index, b.Index))
	})
	e.wantUpstream(&w)
	w.Due = e.due.want(e)
	w.Scheduled = e.wantScheduled()
	w.Inbox = e.step.inbox
	return w
}
