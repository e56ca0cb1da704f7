package control

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

// Limits of what people may say about changes.
const (
	MaxSet    = 1000 // jobs of one set
	MaxBy     = 256  // characters of who changes something
	MaxReason = 1024 // characters of why
)

// ApplyRequest creates and changes a set of jobs and calendars, all of it or nothing.
type ApplyRequest struct {
	Calendars []CalendarRequest

	Items  []PutRequest // their Change is the set's
	Prune  *job.Selector
	DryRun bool
	Change job.Change
}

// AppliedSet is what became of a set.
type AppliedSet struct {
	Calendars []AppliedCalendar
	Jobs      []Applied // the items, then what was pruned
}

// Applied is what became of one job of a set.
type Applied struct {
	store.AppliedJob
	Row         store.JobRow // with the cursors known after the wait
	Fires       []Fire       // to come
	FiresBefore []Fire       // to come under the revision before
	Silence     string       // why no schedule fires; "": one may
	Effect      Effect
}

// Apply writes a set of jobs. A refused set is a *job.SetError that names every refused item. Prune deletes
// the jobs that it selects and that are not in the set, in the namespaces of the set.
func (c *Control) Apply(ctx context.Context, r ApplyRequest) (AppliedSet, error) {
	asked, err := c.checkSet(&r)
	if err != nil {
		return AppliedSet{}, err
	}
	done, err := c.write.ApplyJobs(ctx, asked)
	if err != nil {
		return AppliedSet{}, c.explainSet(ctx, asked.Items, err)
	}
	receipts := make([]store.Written, len(done.Jobs))
	for i := range done.Jobs {
		receipts[i] = done.Jobs[i].Written
	}
	effects := c.effects(ctx, receipts)
	out := make([]Applied, len(done.Jobs))
	for i := range done.Jobs {
		out[i] = c.applied(ctx, &done.Jobs[i], done.Calendars, r.DryRun)
		out[i].Effect = effects[i]
	}
	set := AppliedSet{Calendars: c.told(ctx, done.Calendars), Jobs: out}
	c.addShut(ctx, &set)
	return set, nil
}

// applied tells what became of a job, and when it is due.
func (c *Control) applied(ctx context.Context, d *store.AppliedJob, calendars []store.AppliedCalendar, dry bool) Applied {
	out := Applied{AppliedJob: *d, Row: store.JobRow{Definition: d.Definition}}
	var cursors []job.Cursor
	if row, err := c.read.Job(ctx, d.Definition.Namespace, d.Definition.Name); err == nil && row.Definition.UID == d.Definition.UID {
		cursors = row.Cursors
	}
	if d.Before != nil {
		out.FiresBefore = Fires(calendarsBefore(d.Before, calendars), cursors, c.now(), previewed)
	}
	if d.Action == store.ActionPruned {
		return out
	}
	out.Fires, out.Silence = Fires(&d.Definition, cursors, c.now(), previewed), silence(&d.Definition, cursors, c.now())
	if !dry {
		out.Row.Cursors = cursors
	}
	return out
}

// checkSet judges every item without looking elsewhere.
func (c *Control) checkSet(r *ApplyRequest) (store.ApplyJobs, error) {
	out := store.ApplyJobs{DryRun: r.DryRun}
	if err := checkChange(r.Change); err != nil {
		return out, err
	}
	if n := len(r.Items) + len(r.Calendars); n > MaxSet {
		return out, job.Errorf(job.KindTooLarge, "too_many_documents", "the set has %d documents, at most %d are taken", n, MaxSet)
	}
	if err := c.calendarsKnown(len(r.Calendars) > 0, r.Items); err != nil {
		return out, err
	}
	var refused job.SetError
	seen, namespaces := map[string]int{}, []string{}
	at, known := c.instant(), map[string]bool{}
	out.Calendars = c.checkCalendars(r, at, &refused)
	for i := range r.Items {
		item := &r.Items[i]
		if faults := job.FaultsOf(checkPut(item)); len(faults) > 0 {
			refused.Add(i, faults...)
			continue
		}
		id := item.Namespace + "/" + item.Name
		if first, doubled := seen[id]; doubled {
			refused.Add(i, job.Errorf(job.KindInvalid, "doubled_job", "the job %s is document %d of the set too", id, first).
				WithField("metadata.name").WithHint("keep one of them"))
			continue
		}
		seen[id] = i
		if !known[item.Namespace] {
			known[item.Namespace] = true
			namespaces = append(namespaces, item.Namespace)
		}
		put, err := c.toStore(item, at)
		if err != nil {
			return out, err
		}
		put.Change = r.Change
		out.Items = append(out.Items, put)
	}
	if len(refused.Items) > 0 {
		return out, &refused
	}
	if p := r.Prune; p != nil {
		if p.Empty() {
			return out, job.Errorf(job.KindInvalid, "prune_everything", "a set without a selector would delete every other job").
				WithField("prune").WithHint("give the labels that the jobs of this set have")
		}
		out.Prune = &store.Prune{Namespaces: namespaces, Match: func(d job.Definition) bool { return p.Matches(d.Labels) },
			Deletion: job.Deletion{At: at, By: r.Change.By, Reason: r.Change.Reason},
			Forget:   func(d job.Definition) string { return triggerOperation(d.Name) }}
	}
	return out, nil
}

// toStore is a checked request as the store takes it.
func (c *Control) toStore(r *PutRequest, at job.Instant) (store.PutJob, error) {
	def := job.Definition{Namespace: r.Namespace, Name: r.Name, Labels: r.Labels, Spec: r.Spec}
	if err := c.draw(def.UID[:]); err != nil {
		return store.PutJob{}, err
	}
	return store.PutJob{Definition: def, IfRevision: r.IfRevision, At: at, Change: r.Change,
		Partition: partition.Of(r.Namespace, r.Spec.Pool, c.owners.Count())}, nil
}

// effects is effect for many receipts: they share one wait.
func (c *Control) effects(ctx context.Context, all []store.Written) []Effect {
	ctx, cancel := context.WithTimeout(ctx, c.effectWait)
	defer cancel()
	woken := map[int]bool{}
	for _, w := range all {
		if w.Entry != 0 && !woken[w.Partition] {
			woken[w.Partition] = true
			c.owners.Wake(w.Partition)
		}
	}
	out := make([]Effect, len(all))
	for i, w := range all {
		out[i] = Effective
		if w.Entry != 0 && (ctx.Err() != nil || !c.owners.AwaitEntry(ctx, w.Partition, w.Entry)) {
			out[i] = Pending
		}
	}
	return out
}

// DeleteRequest ends a job's life.
type DeleteRequest struct {
	Namespace  string
	Name       string
	IfRevision int64 // > 0: only if the newest revision is this one
	Cancel     bool  // its executions are cancelled; else they run to their end
	Change     job.Change
}

// Deleted is the answer to a DeleteRequest.
type Deleted struct {
	Definition job.Definition // the last one
	Live       int            // executions that had not ended
	Effect     Effect
}

// Delete deletes a job: it plans nothing more, its name is free, what it did stays readable. Errors:
// KindNotFound; KindConflict "revision_changed".
func (c *Control) Delete(ctx context.Context, r DeleteRequest) (Deleted, error) {
	if err := checkChange(r.Change); err != nil {
		return Deleted{}, err
	}
	if r.Cancel && !c.allKnow(engine.LevelMoves) {
		return Deleted{}, job.Errorf(job.KindUnavailable, "upgrade_unfinished", "a server of an older build is alive that does not know how the executions of a job are cancelled with it").
			WithHint("try again when all servers run this build; `takt get servers` shows them. Or delete the job alone, and cancel its executions")
	}
	done, err := c.write.DeleteJob(ctx, store.DeleteJob{Namespace: r.Namespace, Name: r.Name, IfRevision: r.IfRevision, Forget: triggerOperation(r.Name),
		Deletion: job.Deletion{At: c.instant(), Cancel: r.Cancel, By: r.Change.By, Reason: r.Change.Reason}})
	if err != nil {
		return Deleted{}, c.explain(ctx, r.Namespace, r.Name, r.IfRevision, err)
	}
	return Deleted{Definition: done.Definition, Live: done.Live, Effect: c.effect(ctx, done.Written)}, nil
}

// allKnow tells whether every live server knows what a level brought.
func (c *Control) allKnow(level int) bool { return c.level == nil || c.level() >= level }

// PauseRequest pauses a job, or changes the pause that it has.
type PauseRequest struct {
	Namespace string
	Name      string
	Until     job.Instant // 0: until a person resumes it
	Change    job.Change
}

// Pause keeps a job's schedules from firing. Requests still run. Errors: KindNotFound, KindInvalid.
func (c *Control) Pause(ctx context.Context, r PauseRequest) (Put, error) {
	if err := checkChange(r.Change); err != nil {
		return Put{}, err
	}
	now := c.instant()
	if r.Until != 0 && r.Until <= now {
		return Put{}, job.Errorf(job.KindInvalid, "out_of_range", "this instant has passed").WithField("until").
			WithHint("name an instant that lies ahead, or leave it out")
	}
	return c.pause(ctx, store.PauseJob{Namespace: r.Namespace, Name: r.Name, At: now,
		Pause: &job.Pause{At: now, Until: r.Until, By: r.Change.By, Reason: r.Change.Reason}})
}

// Resume ends a pause; the next instant lies ahead, what was held is recorded as skipped. Resuming a job
// that is not paused changes nothing. Errors: KindNotFound.
func (c *Control) Resume(ctx context.Context, namespace, name string) (Put, error) {
	return c.pause(ctx, store.PauseJob{Namespace: namespace, Name: name, At: c.instant()})
}

func (c *Control) pause(ctx context.Context, p store.PauseJob) (Put, error) {
	def, receipt, err := c.write.PauseJob(ctx, p)
	if err != nil {
		return Put{}, err
	}
	return c.written(ctx, def, receipt), nil
}

// RollbackRequest makes a new revision that says what an older one said.
type RollbackRequest struct {
	Namespace  string
	Name       string
	To         int64
	IfRevision int64 // > 0: only if the newest revision is this one
	Change     job.Change
}

// Rollback errors: KindNotFound "job_not_found", "revision_not_found", and those of PutJob.
func (c *Control) Rollback(ctx context.Context, r RollbackRequest) (Put, error) {
	if _, err := c.read.Job(ctx, r.Namespace, r.Name); err != nil {
		return Put{}, err // an older life of the name is nothing to go back to
	}
	old, err := c.write.Revision(ctx, r.Namespace, r.Name, r.To)
	if err != nil {
		return Put{}, err
	}
	if r.Change.Reason == "" {
		r.Change.Reason = fmt.Sprintf("rollback to revision %d", r.To)
	}
	return c.PutJob(ctx, PutRequest{Namespace: r.Namespace, Name: r.Name, Labels: old.Definition.Labels, Spec: old.Definition.Spec,
		IfRevision: r.IfRevision, Change: r.Change})
}

// Revisions lists the revisions of a job, newest first; of a deleted one the last life's.
func (c *Control) Revisions(ctx context.Context, namespace, name string, p store.Page) ([]store.Revision, string, error) {
	return c.write.Revisions(ctx, namespace, name, p)
}

func checkChange(ch job.Change) error {
	for _, x := range []struct {
		field, text string
		most        int
	}{{"author", ch.By, MaxBy}, {"reason", ch.Reason, MaxReason}} {
		if utf8.RuneCountInString(x.text) > x.most || !utf8.ValidString(x.text) || strings.ContainsRune(x.text, 0) {
			return job.Errorf(job.KindInvalid, "bad_text", "it is longer than %d characters, or holds NUL or bytes that are not UTF-8", x.most).
				WithField(x.field).WithHint("keep it to a sentence")
		}
	}
	return nil
}
