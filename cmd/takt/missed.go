package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

// missedRange is a decision that left planned instants without an execution, or an execution that was dropped for the reason of one.
type missedRange struct {
	takt.Decision
	Execution string `json:"execution,omitempty"` // that was dropped: it waited, and ended cancelled
	Backfill  string `json:"backfill,omitempty"`  // that has run it, or runs it
}

type missedList struct {
	Items   []missedRange   `json:"items"`
	Started []takt.Backfill `json:"started,omitempty"`
	Unable  []string        `json:"unable,omitempty"`  // jobs with ranges that no backfill can run, for they have no schedule, or are deleted
	Changed []misfit        `json:"changed,omitempty"` // that were not started, for the job has other instants there now
}

type missed struct {
	backfill
	g     *global
	since string
	start bool
}

func newMissedCommand(g *global) *cobra.Command {
	m := missed{g: g}
	cmd := &cobra.Command{
		Use:   "missed [JOB]",
		Short: "List ranges of planned instants that were missed, and run them",
		Long: `List the ranges of planned instants that became no execution because nobody planned them in time, or because of the overlap or
misfire policy, with the backfill that runs or has run each. Executions that waited for the jobs that they run after, and that the
overlap policy dropped when the wait was over, are among them, named, if they waited for 7 days at most: takt rerun
runs one. What came due in a pause or ended with its job is left out: takt get decisions shows all decisions.

With --start the ranges that no backfill has are run as takt backfill would, a backfill for each range of a job. Those of jobs
that have no schedule of their own (they run after others) cannot be. Those in which the newest revision has other instants than
were missed, for the job or a calendar was edited since, are not started either: takt backfill runs what is there today. Both
are named, and the exit code is 1.`,
		Example: `  takt missed --since 7d
  takt missed reindex --start --yes -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return m.run(cmd, strings.Join(args, "")) },
	}
	f := cmd.Flags()
	f.StringVar(&m.since, "since", "24h", "how far back to look: a length of time such as 7d, or an instant (RFC 3339, or 2026-11-28T00:00[Asia/Shanghai])")
	f.BoolVar(&m.start, "start", false, "run them")
	f.IntVar(&m.in.MaxParallel, "max-parallel", 1, "with --start: executions at a time in each backfill, at most 100")
	f.BoolVar(&m.yes, "yes", false, "with --start: it is meant")
	m.addFlags(cmd)
	addListOutput(cmd, &m.format)
	return cmd
}

func (m *missed) run(cmd *cobra.Command, job string) error {
	from, err := sinceOf(m.since, time.Now())
	switch {
	case err != nil:
		return err
	case from.After(time.Now()):
		return usage("--since " + m.since + " lies in the future")
	case m.in.MaxParallel < 1 || m.in.MaxParallel > 100:
		return usage("--max-parallel must be from 1 to 100")
	}
	c, err := m.g.client()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	list, err := missedSince(ctx, c, job, from)
	if err == nil && job != "" && len(list.Items) == 0 {
		err = everThere(ctx, c, job)
	}
	if err != nil {
		return explain(ctx, "cannot list what was missed", err)
	}
	if m.start {
		if err := m.fill(cmd, c, &list); err != nil {
			return err
		}
	}
	l := &listing{value: list, header: []string{"JOB", "SCHEDULE", "COUNT", "FROM", "TO", "WHY", "BACKFILL"}}
	for i := range list.Items {
		d := &list.Items[i]
		l.rows = append(l.rows, []string{d.Job, d.Schedule, strconv.FormatInt(d.Count, 10), d.From.Format(time.RFC3339), d.To.Format(time.RFC3339),
			d.why(), d.Backfill})
	}
	if err := l.print(cmd.OutOrStdout(), m.format); err != nil {
		return err
	}
	if len(list.Items) == 0 && !isData(m.format) {
		fmt.Fprintf(cmd.ErrOrStderr(), "nothing was missed since %s\n", from.Format(time.RFC3339))
	}
	return notStarted(&list)
}

// sinceOf reads --since.
func sinceOf(text string, now time.Time) (time.Time, error) {
	d, at, err := lengthOrInstant("--since", text)
	if err == nil && d > 0 {
		at = now.Add(-d)
	}
	return at, err
}

// missedSince reads decisions, newest first, until those that were made before from.
func missedSince(ctx context.Context, c *takt.Client, job string, from time.Time) (missedList, error) {
	out := missedList{Items: []missedRange{}}
	for page := (takt.Page{Limit: 500}); ; {
		all, err := c.Decisions(ctx, job, page)
		if err != nil {
			return out, err
		}
		for i := range all.Items {
			d := &all.Items[i]
			if d.At.Before(from) {
				all.Next = ""
				break
			}
			if d.Reason != "paused" && d.Reason != "auto_paused" && d.Reason != "job_deleted" {
				out.Items = append(out.Items, missedRange{Decision: *d})
			}
		}
		if page.After = all.Next; page.After == "" {
			break
		}
	}
	if err := addDropped(ctx, c, job, from, &out); err != nil {
		return out, err
	}
	return out, addBackfills(ctx, c, job, from, &out)
}

// addBackfills notes which backfills have the ranges; cancelled ones have not run all of theirs.
func addBackfills(ctx context.Context, c *takt.Client, job string, from time.Time, out *missedList) error {
	for page := (takt.Page{Limit: 500}); ; {
		all, err := c.Backfills(ctx, job, page)
		if err != nil {
			return err
		}
		for i := range all.Items {
			b := &all.Items[i]
			if b.At != nil && b.At.Before(from) {
				return nil
			}
			for j := range out.Items {
				d := &out.Items[j]
				if b.Job == d.Job && b.State != "cancelled" && b.Cancelled == "" && !b.From.After(d.From) && !b.To.Before(d.To) {
					d.Backfill = b.ID
				}
			}
		}
		if page.After = all.Next; page.After == "" {
			return nil
		}
	}
}

// jobSpan is a range of one job.
type jobSpan struct {
	job      string
	from, to time.Time
}

// spansOf are the ranges without a backfill; those of one job that overlap are one.
func spansOf(list *missedList) (all []jobSpan) {
	for i := range list.Items {
		if d := &list.Items[i]; d.Backfill == "" {
			all = append(all, jobSpan{d.Job, d.From, d.To})
		}
	}
	slices.SortFunc(all, func(a, b jobSpan) int { return cmp.Or(cmp.Compare(a.job, b.job), a.from.Compare(b.from)) })
	merged := all[:0]
	for _, s := range all {
		if n := len(merged); n > 0 && merged[n-1].job == s.job && !s.from.After(merged[n-1].to) {
			if s.to.After(merged[n-1].to) {
				merged[n-1].to = s.to
			}
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// fill starts a backfill for each range that has none and is as it was missed.
func (m *missed) fill(cmd *cobra.Command, c *takt.Client, list *missedList) error {
	ctx := cmd.Context()
	spans, err := fits(ctx, c, list, spansOf(list))
	if err != nil || len(spans) == 0 {
		return err
	}
	if err := m.confirm(fmt.Sprintf("%s would be started", counted(len(spans), "backfill"))); err != nil {
		return err
	}
	in := takt.BackfillRequest{MaxParallel: m.in.MaxParallel, Author: m.name(), Reason: firstText(m.reason, "missed")}
	for _, s := range spans {
		in.From, in.To = s.from.Format(time.RFC3339Nano), s.to.Format(time.RFC3339Nano)
		b, err := c.Backfill(ctx, s.job, in)
		if err != nil {
			return explain(ctx, fmt.Sprintf("cannot backfill job %s from %s to %s (%d others were started)", s.job, in.From, in.To, len(list.Started)), err)
		}
		list.Started = append(list.Started, b)
		for i := range list.Items {
			if d := &list.Items[i]; s.holds(d) && d.Backfill == "" {
				d.Backfill = b.ID
			}
		}
	}
	return nil
}
