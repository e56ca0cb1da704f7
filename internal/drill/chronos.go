package drill

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// The Chronos check: a job is a promise that a run begins no later than Epsilon after each planned instant. It is the
// checker of Jepsen's test of Chronos, made new, with a greedy matching in place of a constraint solver and without its
// quirks (see the description in the comments below): whether every target can be given a run of its own.

// Promise is one job as it was acknowledged.
type Promise struct {
	Job      string
	Planned  []time.Time   // every planned instant, rising
	Epsilon  time.Duration // a run begins no later than this after its instant
	Duration time.Duration // of a run, at most
	Shards   int           // of an execution; 0 means 1: a target needs a completed run of each
}

// Run is one completed or begun run of a shard, by the witness that its handler wrote.
type Run struct {
	Job     string
	Shard   int
	Planned time.Time
	Token   int64
	Start   time.Time
	End     time.Time // zero: it never ended, or that was never written
}

// Target is a planned instant of one shard that was due when the history was read.
type Target struct {
	Job      string
	Shard    int
	Planned  time.Time
	From, To time.Time // of the run's start, both included
	Run      *Run      // that satisfies it
}

// Judgement is what became of one job's targets and runs.
type Judgement struct {
	Targets    []Target
	Missed     []Target // no run of their own
	TooLate    []Run    // begun behind the window of a missed target, before the next target
	Duplicates []Run    // a second run inside of a satisfied window
	Extra      []Run    // of no target
	Incomplete []Run    // without an end
	Undecided  []Run    // inside of windows that were not due when it was read
}

// Valid tells whether every target has a run of its own.
func (v *Judgement) Valid() bool { return len(v.Missed) == 0 }

// JudgeChronos matches runs to the targets of one promise, as they were read at the given instant. A target is due when
// its window and a run begun at the window's end were over by then. forgiveness widens each window, and the cut-off with it (the
// original forgets that), for clocks and for start-up.
//
// The matching takes runs by their start and gives each the open window that ends first: with intervals on a line that
// greedy rule covers as many targets as any matching does.
func JudgeChronos(p Promise, runs []Run, read time.Time, forgiveness time.Duration) Judgement {
	var v Judgement
	for shard := range max(p.Shards, 1) {
		judgeShard(&v, &p, shard, runs, read, forgiveness)
	}
	return v
}

func judgeShard(v *Judgement, p *Promise, shard int, runs []Run, read time.Time, forgiveness time.Duration) {
	cutoff := read.Add(-p.Epsilon - p.Duration - forgiveness)
	var due, later []Target
	for _, at := range p.Planned {
		t := Target{Job: p.Job, Shard: shard, Planned: at, From: at, To: at.Add(p.Epsilon + forgiveness)}
		if at.Before(cutoff) {
			due = append(due, t)
		} else {
			later = append(later, t)
		}
	}
	var complete []Run
	for _, r := range runs {
		switch {
		case r.Job != p.Job || r.Shard != shard:
		case r.End.IsZero():
			v.Incomplete = append(v.Incomplete, r)
		default:
			complete = append(complete, r)
		}
	}
	slices.SortStableFunc(complete, func(a, b Run) int { return a.Start.Compare(b.Start) })
	spare := match(due, complete)
	for i := range due {
		if due[i].Run == nil {
			v.Missed = append(v.Missed, due[i])
		}
	}
	explained := map[time.Time]bool{}
	for i := range spare {
		v.explain(&spare[i], due, later, explained)
	}
	v.Targets = append(v.Targets, due...)
}

// match gives each run, by its start, the open window that ends first. It returns the runs that got none.
func match(targets []Target, runs []Run) (spare []Run) {
	open := &openWindows{targets: targets}
	next := 0
	for i := range runs {
		r := &runs[i]
		for ; next < len(targets) && !targets[next].From.After(r.Start); next++ {
			heap.Push(open, next)
		}
		for open.Len() > 0 && targets[open.items[0]].To.Before(r.Start) {
			heap.Pop(open)
		}
		if open.Len() == 0 {
			spare = append(spare, *r)
			continue
		}
		targets[heap.Pop(open).(int)].Run = r //nolint:forcetypeassert // nothing else is pushed
	}
	return spare
}

// explain says why a run has no target.
func (v *Judgement) explain(r *Run, due, later []Target, explained map[time.Time]bool) {
	inside := func(t Target) bool { return !r.Start.Before(t.From) && !r.Start.After(t.To) }
	if slices.ContainsFunc(due, func(t Target) bool { return t.Run != nil && inside(t) }) {
		v.Duplicates = append(v.Duplicates, *r)
		return
	}
	if slices.ContainsFunc(later, inside) {
		v.Undecided = append(v.Undecided, *r)
		return
	}
	for i := range due {
		t := &due[i]
		last := i == len(due)-1 || r.Start.Before(due[i+1].From)
		if t.Run == nil && r.Start.After(t.To) && last && !explained[t.Planned] {
			explained[t.Planned] = true
			v.TooLate = append(v.TooLate, *r)
			return
		}
	}
	v.Extra = append(v.Extra, *r)
}

// openWindows is a heap of targets whose windows are open, by their ends.
type openWindows struct {
	targets []Target
	items   []int
}

func (o *openWindows) Len() int { return len(o.items) }
func (o *openWindows) Less(i, j int) bool {
	a, b := &o.targets[o.items[i]], &o.targets[o.items[j]]
	return cmp.Or(a.To.Compare(b.To), a.From.Compare(b.From)) < 0
}
func (o *openWindows) Swap(i, j int) { o.items[i], o.items[j] = o.items[j], o.items[i] }
func (o *openWindows) Push(x any)    { o.items = append(o.items, x.(int)) } //nolint:forcetypeassert // nothing else is pushed
func (o *openWindows) Pop() any {
	last := o.items[len(o.items)-1]
	o.items = o.items[:len(o.items)-1]
	return last
}

// CheckIdentity is what our witnesses allow beyond the original: every due instant of every shard has runs of one
// planned instant of its own, and where it has several completed ones their tokens differ. It returns the faults in words.
func CheckIdentity(p Promise, runs []Run, read time.Time, forgiveness time.Duration) (faults []string) {
	type place struct {
		shard   int
		planned int64
	}
	by := map[place][]Run{}
	planned := map[int64]bool{}
	for _, at := range p.Planned {
		planned[at.UnixMilli()] = true
	}
	for _, r := range runs {
		if r.Job != p.Job || r.End.IsZero() {
			continue
		}
		if !planned[r.Planned.UnixMilli()] {
			faults = append(faults, p.Job+" ran for "+r.Planned.Format(time.RFC3339Nano)+", which is no planned instant")
		}
		key := place{r.Shard, r.Planned.UnixMilli()}
		for _, other := range by[key] {
			if other.Token == r.Token {
				faults = append(faults, p.Job+" ran twice under one token for "+r.Planned.Format(time.RFC3339Nano))
			}
		}
		by[key] = append(by[key], r)
	}
	cutoff := read.Add(-p.Epsilon - p.Duration - forgiveness)
	for shard := range max(p.Shards, 1) {
		for _, at := range p.Planned {
			if at.Before(cutoff) && len(by[place{shard, at.UnixMilli()}]) == 0 {
				faults = append(faults, p.Job+" has no completed run for "+at.Format(time.RFC3339Nano))
			}
		}
	}
	return faults
}
