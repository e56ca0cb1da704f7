package engine

import (
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
	eaten   map[int64]int64   // inbox entries: consumed by the batch with this seq
	pending []int64           // consumed in the step that runs
	floor   int64             // pages older than this can not be judged any more
	odd     map[int64]bool    // entries of unknown kinds that were reported

	others    backlog        // of lines that are not known
	behind    map[*line]bool // that may get hungry, see watch
	fresh     bool           // the queued executions of the database were not looked at yet
	askedBack time.Duration  // of the backlog page on its way; 0: none
	backFrom  backlogKey     // it begins behind this key
	distrust  int            // so many backlog pages may be answers to an earlier question

	entries map[job.ExecutionID][]Entry // wait for rows
	reports []waitingReport
	asked   map[job.ExecutionID]time.Duration
}

type waitingReport struct {
	report  Report
	missing map[job.ExecutionID]bool
}

// askAgain is how long the core waits for a page before it asks for it once more.
const askAgain = 2 * time.Second

func newPageBook() pageBook {
	return pageBook{touched: map[job.ExecutionID]int64{}, cursors: map[dueKey]int64{}, jobs: map[job.UID]int64{}, eaten: map[int64]int64{},
		odd: map[int64]bool{}, behind: map[*line]bool{}, entries: map[job.ExecutionID][]Entry{}, asked: map[job.ExecutionID]time.Duration{}}
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

func (p *pageBook) consumed(entry int64) { p.pending = append(p.pending, entry) }

// entryTaken tells that an entry of a page must not be taken: it was consumed since, or waits for rows.
func (p *pageBook) entryTaken(seq int64, entry Entry) bool {
	if p.eaten[entry.ID] > seq {
		return true
	}
	same := func(w Entry) bool { return w.ID == entry.ID }
	return slices.Contains(p.pending, entry.ID) || slices.ContainsFunc(p.entries[entry.Execution], same)
}

// strange notes an entry of an unknown kind; true the first time.
func (p *pageBook) strange(entry int64) bool {
	known := p.odd[entry]
	if len(p.odd) < 1000 {
		p.odd[entry] = true
	}
	return !known
}

func (p *pageBook) askEntry(entry Entry) {
	p.entries[entry.Execution] = append(p.entries[entry.Execution], entry)
	p.ask(entry.Execution)
}

func (p *pageBook) askReport(r Report, missing []job.ExecutionID) {
	w := waitingReport{report: r, missing: map[job.ExecutionID]bool{}}
	for _, id := range missing {
		w.missing[id] = true
		p.ask(id)
	}
	p.reports = append(p.reports, w)
}

// askOnce asks again at once for what is still waited for.
func (p *pageBook) askOnce(id job.ExecutionID) {
	if _, on := p.asked[id]; on {
		p.asked[id] = 0
	}
}

func (p *pageBook) ask(id job.ExecutionID) {
	if _, on := p.asked[id]; !on {
		p.asked[id] = 0
	}
}

// answeredEntries gives the entries that waited for the row of id.
func (p *pageBook) answeredEntries(id job.ExecutionID) []Entry {
	entries := p.entries[id]
	delete(p.entries, id)
	delete(p.asked, id)
	return entries
}

// answeredReports gives the reports whose last missing row was among those read.
func (p *pageBook) answeredReports(read []job.ExecutionID) []Report {
	var ready []Report
	keep := p.reports[:0]
	for _, w := range p.reports {
		for _, id := range read {
			delete(w.missing, id)
		}
		if len(w.missing) == 0 {
			ready = append(ready, w.report)
		} else {
			keep = append(keep, w)
		}
	}
	p.reports = keep
	return ready
}

// retry is when a page that never came is asked for again.
func (p *pageBook) retry() (time.Duration, bool) {
	var at time.Duration
	for _, t := range p.asked {
		if t > 0 && (at == 0 || t < at) {
			at = t
		}
	}
	if p.askedBack > 0 && (at == 0 || p.askedBack < at) {
		at = p.askedBack
	}
	return at + askAgain, at > 0
}

// want says what to read now.
func (e *Engine) want() Want {
	var w Want
	p := &e.pages
	w.Backlog = e.wantBacklog()
	for id, t := range p.asked {
		if len(w.Executions) < e.cfg.PageSize && (t == 0 || e.now.Mono >= t+askAgain) {
			p.asked[id] = max(e.now.Mono, 1)
			w.Executions = append(w.Executions, id)
		}
	}
	sortIDs(w.Executions)
	w.Due = e.due.want(e)
	w.Inbox = e.step.inbox
	return w
}
