package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/taktsched/takt"
)

// waitMost is how long before it was dropped an execution may have been planned. Lists are in the order of planned instants: the bound
// ends the reading, which else would go through all that is kept.
const waitMost = 7 * 24 * time.Hour

// addDropped adds what the overlap policy dropped when its wait for parents, or for its instant, was over. An instant has an execution
// or a decision, never both: these are executions that ended cancelled.
func addDropped(ctx context.Context, c *takt.Client, job string, from time.Time, out *missedList) error {
	text := func(at time.Time) string { return later(at, time.Unix(1, 0)).UTC().Format(time.RFC3339) }
	q := takt.ExecutionQuery{Job: job, Page: takt.Page{Limit: 500}, Query: fmt.Sprintf("state:cancelled reason:overlap_skip,overlap_full -trigger:request ended>=%s planned>=%s",
		text(from), text(from.Add(-waitMost)))}
	decided := len(out.Items)
	for {
		all, err := c.Executions(ctx, q)
		if err != nil {
			return err
		}
		for i := range all.Items {
			out.Items = append(out.Items, droppedOf(&all.Items[i]))
		}
		if q.After = all.Next; q.After == "" {
			break
		}
	}
	if len(out.Items) > decided {
		slices.SortStableFunc(out.Items, func(a, b missedRange) int { return b.At.Compare(a.At) })
	}
	return nil
}

// droppedOf tells of such an execution as a decision for the same reason would.
func droppedOf(x *takt.Execution) missedRange {
	d := missedRange{Execution: x.ID, Decision: takt.Decision{Job: x.Job, Kind: "blocked", Reason: x.Reason, ReasonText: x.ReasonText, From: x.PlannedAt, To: x.PlannedAt, Count: 1}}
	if x.EndedAt != nil {
		d.At = *x.EndedAt
	}
	return d
}

// why says why instants became no execution, or none that ran.
func (d *missedRange) why() string {
	text := d.Kind + ": " + firstText(d.ReasonText, d.Reason)
	if d.Execution != "" {
		text += " (execution " + d.Execution + ")"
	}
	return text
}
