package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// BackfillRequest asks that a job runs for the planned instants of a range of the past.
type BackfillRequest struct {
	Namespace   string
	Job         string
	From, To    string // as Explain takes them; both included
	Reverse     bool   // the newest instant first
	MaxParallel int    // 0: 1
	DryRun      bool   // tell how many there are, and write nothing
	Change      job.Change
}

// Backfilled is the answer to a BackfillRequest.
type Backfilled struct {
	job.Backfill
	Effect Effect
	Note   string // what of the request has no effect; "": nothing
	Lines  []LineCount
}

// LineCount is what one schedule has in the range of a dry run.
type LineCount struct {
	Schedule    string
	Count       int64
	First, Last job.Instant
}

// Backfill runs a job for each planned instant of a range that has no succeeded execution, in the newest revision. Errors:
// KindNotFound; KindInvalid with the field, "no_instants"; KindConflict "not_planned", "backfill_live".
func (c *Control) Backfill(ctx context.Context, r BackfillRequest) (Backfilled, error) {
	b, row, note, err := c.backfillOf(ctx, &r)
	if err != nil {
		return Backfilled{}, err
	}
	if r.DryRun {
		if err := c.addRefusal(ctx, &b, row, &note); err != nil {
			return Backfilled{}, err
		}
		return Backfilled{Backfill: b, Note: note, Lines: countLines(&row.Definition, b.From, b.To)}, nil
	}
	ids, err := c.requestedIDs(1)
	if err != nil {
		return Backfilled{}, err
	}
	b.ID = ids[0]
	count := func(d job.Definition) (int64, error) { return countSome(&d, b.From, b.To) }
	made, receipt, err := c.write.PutBackfill(ctx, store.PutBackfill{Backfill: b, Count: count}, c.partitionOf)
	if err != nil {
		return Backfilled{}, err
	}
	out := Backfilled{Backfill: made, Effect: c.effect(ctx, receipt), Note: note}
	if now, err := c.write.Backfill(ctx, r.Namespace, made.ID); err == nil { // the write stands: a failing look leaves the progress out
		out.Backfill = now
	}
	return out, nil
}

// backfillOf judges a request by what the job is now. note: what of it has no effect.
func (c *Control) backfillOf(ctx context.Context, r *BackfillRequest) (b job.Backfill, row *store.JobRow, note string, err error) {
	b = job.Backfill{Namespace: r.Namespace, Job: r.Job, At: c.instant(),
		Spec: job.BackfillSpec{Reverse: r.Reverse, MaxParallel: r.MaxParallel, By: r.Change.By, Reason: r.Change.Reason}}
	if err := checkChange(r.Change); err != nil {
		return b, nil, "", err
	}
	if r.MaxParallel < 0 || r.MaxParallel > job.MaxBackfillParallel {
		return b, nil, "", job.Errorf(job.KindInvalid, "out_of_range", "%d is out of range 1-%d", r.MaxParallel, job.MaxBackfillParallel).WithField("maxParallel")
	}
	if err := r.ends(&b, time.UTC); err != nil {
		return b, nil, "", err
	}
	found, err := c.read.Job(ctx, r.Namespace, r.Job)
	if err != nil {
		return b, nil, "", err
	}
	d := &found.Definition
	if d.Unfit != "" {
		return b, nil, "", job.Errorf(job.KindConflict, "job_unfit", "the job %q cannot be used: %s", d.Name, d.Unfit).WithHint("apply the job again")
	}
	if err := r.ends(&b, zoneOf(d)); err != nil {
		return b, nil, "", err
	}
	switch {
	case b.To < b.From:
		return b, nil, "", job.Errorf(job.KindInvalid, "out_of_range", "the range ends before it begins").WithField("to").WithHint("from and to are both included")
	case b.To > b.At:
		return b, nil, "", job.Errorf(job.KindInvalid, "out_of_range", "the range ends in the future, which is the schedule's").WithField("to").
			WithHint("end it now at the latest; what lies ahead is planned by the schedule")
	}
	b.JobUID, b.Revision = d.UID, d.Revision
	if r.MaxParallel > 1 && d.Spec.OverlapOf() != job.OverlapAllow {
		note = "the overlap policy of the job lets one execution run at a time; overlap allow lets more"
	}
	if b.Spec.Total, err = countRange(d, b.From, b.To); err == nil && b.Spec.Total == 0 {
		note = "the range has no planned instant of the job: nothing runs; " + nearest(d, b.From, b.To)
	}
	return b, &found, note, err
}

// addRefusal notes what would refuse a backfill now that is not to be run: the count alone would promise what is not kept.
func (c *Control) addRefusal(ctx context.Context, b *job.Backfill, row *store.JobRow, note *string) error {
	if b.Spec.Total == 0 {
		return nil // the note says that nothing runs
	}
	rows, _, err := c.write.Backfills(ctx, b.Namespace, b.Job, store.Page{Limit: store.DefaultLimit})
	if err != nil {
		return err
	}
	live := slices.DeleteFunc(rows, func(o job.Backfill) bool { return o.JobUID != b.JobUID || o.Progress.State.Ended() })
	if e, refused := asError(store.MayBackfill(b, &row.Definition, row.Cursors, live)); refused {
		*note = strings.TrimPrefix(*note+"; it would be refused now: "+e.Message+" ("+e.Hint+")", "; ")
	}
	return nil
}

// ends reads the ends of the range on the clocks of a zone.
func (r *BackfillRequest) ends(b *job.Backfill, zone *time.Location) (err error) {
	if b.From, err = instantOf(r.From, zone); err != nil {
		return underFieldOf(err, "from")
	}
	if b.To, err = lastInstantOf(r.To, zone); err != nil {
		return underFieldOf(err, "to")
	}
	return nil
}

func underFieldOf(err error, field string) error {
	if e, ok := asError(err); ok {
		return e.WithField(field)
	}
	return err
}

// bookable are the schedules of a job whose instants arithmetic tells.
func bookable(d *job.Definition) []line {
	return slices.DeleteFunc(linesOf(d), func(l line) bool { return l.delayed() })
}

// countLines counts for each schedule the planned instants of a range, which countRange has bounded.
func countLines(d *job.Definition, from, to job.Instant) (all []LineCount) {
	for _, l := range bookable(d) {
		n, last, _ := schedule.Count(l.s, (from - 1).Time(), to.Time(), job.MaxBackfill)
		if n == 0 {
			continue
		}
		first, _ := l.s.Next((from - 1).Time())
		all = append(all, LineCount{l.id, int64(n), job.InstantOf(first), job.InstantOf(last)})
	}
	return all
}

// countRange counts the planned instants of a range, those that several schedules have once.
func countRange(d *job.Definition, from, to job.Instant) (int64, error) {
	lines := bookable(d)
	if len(lines) == 0 {
		return 0, job.Errorf(job.KindInvalid, "no_schedule", "the job %q has no schedule that names instants", d.Name).
			WithHint("takt trigger runs it; a backfill is for the instants of a schedule")
	}
	tooMany := job.Errorf(job.KindInvalid, "too_many_instants", "the range has more than %d planned instants", job.MaxBackfill).WithField("to").
		WithHint("ask for several smaller ranges, one after the other")
	if len(lines) == 1 {
		n, _, done := schedule.Count(lines[0].s, (from - 1).Time(), to.Time(), job.MaxBackfill)
		if !done || n > job.MaxBackfill {
			return 0, tooMany
		}
		return int64(n), nil
	}
	all := ahead{def: d}
	for _, l := range lines {
		l.maxRuns = 0 // a bound of what fires
		all.add(l, job.Cursor{}, from, from)
	}
	for n := int64(0); ; n++ {
		at, ok := all.first()
		switch {
		case !ok || job.InstantOf(at) > to:
			return n, nil
		case n == job.MaxBackfill:
			return 0, tooMany
		}
		all.take(at)
	}
}

// countSome is countRange for a range that is to be run: one without planned instants is refused.
func countSome(d *job.Definition, from, to job.Instant) (int64, error) {
	n, err := countRange(d, from, to)
	if err == nil && n == 0 {
		err = job.Errorf(job.KindInvalid, "no_instants", "the range has no planned instant of the job %q", d.Name).WithField("from").WithHint("%s", nearest(d, from, to))
	}
	return n, err
}

// nearest names the planned instants around a range that has none.
func nearest(d *job.Definition, from, to job.Instant) string {
	var before, after time.Time
	for _, l := range bookable(d) {
		if prev, ok := schedule.Prev(l.s, from.Time()); ok && prev.After(before) {
			before = prev
		}
		if next, ok := l.s.Next(to.Time()); ok && (after.IsZero() || next.Before(after)) {
			after = next
		}
	}
	var words []string
	if !before.IsZero() {
		words = append(words, "the one before it is "+before.In(zoneOf(d)).Format(time.RFC3339))
	}
	if !after.IsZero() {
		words = append(words, "the one after it is "+after.In(zoneOf(d)).Format(time.RFC3339))
	}
	return firstOf(strings.Join(words, ", "), "there is none before and none after it")
}

// CancelBackfillRequest asks for the end of a backfill.
type CancelBackfillRequest struct {
	Namespace string
	ID        job.ExecutionID
	Running   bool // its executions that have not ended are cancelled too
	Change    job.Change
}

// CancelBackfill ends a backfill: nothing more is started. Errors: KindNotFound; KindConflict "backfill_ended".
func (c *Control) CancelBackfill(ctx context.Context, r CancelBackfillRequest) (Backfilled, error) {
	if err := checkChange(r.Change); err != nil {
		return Backfilled{}, err
	}
	b, receipt, err := c.write.CancelBackfill(ctx, store.CancelBackfill{Namespace: r.Namespace, ID: r.ID,
		Cancel: job.BackfillCancel{At: c.instant(), Running: r.Running, By: r.Change.By, Note: r.Change.Reason}})
	if err != nil {
		return Backfilled{}, err
	}
	out := Backfilled{Backfill: b, Effect: c.effect(ctx, receipt)}
	if now, err := c.write.Backfill(ctx, r.Namespace, r.ID); err == nil {
		out.Backfill = now
	}
	return out, nil
}

// BackfillByID reads one.
func (c *Control) BackfillByID(ctx context.Context, namespace string, id job.ExecutionID) (job.Backfill, error) {
	return c.write.Backfill(ctx, namespace, id)
}

// Backfills lists them, newest first; name "" for all jobs.
func (c *Control) Backfills(ctx context.Context, namespace, name string, p store.Page) ([]job.Backfill, string, error) {
	return c.write.Backfills(ctx, namespace, name, p)
}

// Counts counts what is in the database.
func (c *Control) Counts(ctx context.Context) (store.Counts, error) { return c.read.Counts(ctx) }
