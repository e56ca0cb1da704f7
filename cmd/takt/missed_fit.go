package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taktsched/takt"
)

// misfit is a range in which the newest revision has other instants than were missed. A backfill would run those.
type misfit struct {
	Job      string    `json:"job"`
	Schedule string    `json:"schedule,omitempty"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Missed   int64     `json:"missed"`
	Revision int64     `json:"revision,omitempty"`
	There    int64     `json:"there"`             // instants that the revision has in the range
	AtLeast  bool      `json:"atLeast,omitempty"` // there are more than a backfill takes
}

func (x *misfit) String() string {
	of, more, others := "schedule "+x.Schedule, "", ""
	if x.Schedule == "" {
		of = "schedule"
	}
	if x.AtLeast {
		more = "more than "
	} else if x.There == x.Missed {
		others = " others"
	}
	revision := fmt.Sprintf("revision %d", x.Revision)
	if x.Revision == 0 { // the refusal of so many does not tell
		revision = "the newest revision"
	}
	return fmt.Sprintf("job %s from %s to %s: %d missed, the %s of %s has %s%d%s there", x.Job, x.From.Format(time.RFC3339), x.To.Format(time.RFC3339),
		x.Missed, of, revision, more, x.There, firstText(others, map[bool]string{true: " instant", false: " instants"}[x.There == 1]))
}

// fits parts the ranges that a backfill runs as they were missed from those that it does not.
func fits(ctx context.Context, c *takt.Client, list *missedList, spans []jobSpan) (fit []jobSpan, err error) {
	for _, s := range spans {
		changed, err := changedIn(ctx, c, list, s)
		switch {
		case codeIs(err, "no_schedule"), codeIs(err, "job_not_found"): // the others can be run all the same; a job may be deleted by now
			if !slices.Contains(list.Unable, s.job) {
				list.Unable = append(list.Unable, s.job)
			}
		case err != nil:
			return nil, explain(ctx, fmt.Sprintf("cannot tell what a backfill of job %s from %s to %s would run", s.job, s.from.Format(time.RFC3339Nano), s.to.Format(time.RFC3339Nano)), err)
		case len(changed) > 0:
			list.Changed = append(list.Changed, changed...)
		default:
			fit = append(fit, s)
		}
	}
	return fit, nil
}

func codeIs(err error, code string) bool {
	e, ok := errors.AsType[*takt.Error](err)
	return ok && e.Problem.Code == code
}

// changedIn compares what was missed in a span with what a backfill of it would run. A decision is of one schedule, a backfill
// of all: one schedule that has changed keeps the span from being run.
func changedIn(ctx context.Context, c *takt.Client, list *missedList, s jobSpan) (changed []misfit, err error) {
	whole, tooMany := dryBackfill(ctx, c, s)
	if tooMany != nil && !codeIs(tooMany, "too_many_instants") {
		return nil, tooMany
	}
	decided := map[string]bool{}
	for i := range list.Items {
		d := &list.Items[i]
		if !s.holds(d) || d.Backfill != "" {
			continue
		}
		decided[d.Schedule] = true
		there, err := whole, tooMany
		if !d.From.Equal(s.from) || !d.To.Equal(s.to) {
			there, err = dryBackfill(ctx, c, jobSpan{s.job, d.From, d.To})
		}
		if err != nil && !codeIs(err, "too_many_instants") {
			return nil, err
		}
		if x, changes := compared(d, &there, err != nil); changes {
			changed = append(changed, x)
		}
	}
	if len(changed) > 0 || tooMany != nil {
		return changed, tooManyOnly(changed, tooMany)
	}
	for _, o := range whole.Schedules {
		if decided[o.Name] || decided[""] {
			continue
		}
		planned, err := everPlanned(ctx, c, s.job, o)
		if err != nil {
			return nil, err
		}
		if !planned {
			changed = append(changed, misfit{Job: s.job, Schedule: o.Name, From: s.from, To: s.to, Revision: whole.Revision, There: o.Total})
		}
	}
	return changed, nil
}

// compared is what has changed of a decision's range; changes: something has.
func compared(d *missedRange, there *takt.Backfill, tooMany bool) (x misfit, changes bool) {
	x = misfit{Job: d.Job, Schedule: d.Schedule, From: d.From, To: d.To, Missed: d.Count, Revision: there.Revision}
	if tooMany {
		x.There, x.AtLeast = maxBackfill, true
		return x, d.Count <= maxBackfill
	}
	return x, !sameInstants(there, d, &x)
}

// maxBackfill is how many instants a backfill takes.
const maxBackfill = 100_000

// tooManyOnly is the refusal of a range that has not changed.
func tooManyOnly(changed []misfit, err error) error {
	if len(changed) > 0 {
		return nil
	}
	return err
}

func dryBackfill(ctx context.Context, c *takt.Client, s jobSpan) (takt.Backfill, error) {
	return c.Backfill(ctx, s.job, takt.BackfillRequest{From: s.from.Format(time.RFC3339Nano), To: s.to.Format(time.RFC3339Nano), DryRun: true})
}

// sameInstants tells whether a decision's schedule has as many instants now, from the same one to the same one. A decision
// without a schedule is about an instant of any.
func sameInstants(there *takt.Backfill, d *missedRange, x *misfit) bool {
	if d.Schedule == "" {
		x.There = there.Total
		return there.Total == d.Count
	}
	for _, o := range there.Schedules {
		if o.Name == d.Schedule {
			x.There = o.Total
			return o.Total == d.Count && o.First.Equal(d.From) && o.Last.Equal(d.To)
		}
	}
	return false
}

// everPlanned tells whether the instants of a schedule that has missed none of a range were the job's when they came: else the
// schedule came to it, or was changed, later.
func everPlanned(ctx context.Context, c *takt.Client, name string, o takt.BackfillSchedule) (bool, error) {
	for _, at := range []time.Time{o.First, o.Last} {
		x, err := c.Explain(ctx, name, at.Format(time.RFC3339Nano))
		if err != nil {
			return false, err
		}
		if x.Revision == 0 {
			return false, nil // whatever became of it, it was of an earlier job of the name
		}
		switch x.Verdict {
		case "not_planned", "closed", "disabled", "not_created", "not_in_force", "follows_others":
			return false, nil
		}
	}
	return true, nil
}

// holds tells whether a decision lies in the span.
func (s *jobSpan) holds(d *missedRange) bool {
	return d.Job == s.job && !d.From.Before(s.from) && !d.To.After(s.to)
}

// namedMost bounds the ranges that a message names.
const namedMost = 5

// notStarted is the exit for what could not be run; nil: all could.
func notStarted(list *missedList) error {
	var what, todo []string
	if len(list.Unable) > 0 {
		what = append(what, fmt.Sprintf("what these jobs missed cannot be run as a backfill: %s (they have no schedule that names instants, or are deleted)", strings.Join(list.Unable, ", ")))
		todo = append(todo, "of a job that runs after others, `takt backfill` the one it runs after, or `takt trigger` it; `takt rerun` runs an execution that was dropped")
	}
	if n := len(list.Changed); n > 0 {
		var named []string
		for i := range list.Changed[:min(n, namedMost)] {
			named = append(named, list.Changed[i].String())
		}
		if n > namedMost {
			named = append(named, fmt.Sprintf("and %d more (-o json has all)", n-namedMost))
		}
		what = append(what, "not started, for what would run there now is not what was missed: "+strings.Join(named, "; "))
		x := &list.Changed[0]
		todo = append(todo, fmt.Sprintf("`takt backfill %s --from %s --to %s` starts what is there today", x.Job, x.From.Format(time.RFC3339Nano), x.To.Format(time.RFC3339Nano)))
	}
	if len(what) == 0 {
		return nil
	}
	return &failure{code: exitNegative, what: strings.Join(what, "; "), todo: strings.Join(todo, "; ")}
}
