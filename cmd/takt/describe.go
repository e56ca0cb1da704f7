package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

func newDescribeCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "describe", Short: "Tell all about an execution, a job, a calendar or a worker, and why it waits"}
	add := func(use, short, example string, tell func(context.Context, *takt.Client, string) (*account, error)) {
		var format string
		var watch bool
		var every time.Duration
		sub := &cobra.Command{Use: use, Short: short, Example: example, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				if err := checkWatch(watch, every, format, "table and jsonl"); err != nil {
					return err
				}
				c, err := g.client()
				if err != nil {
					return err
				}
				a, err := tell(cmd.Context(), c, args[0])
				if err != nil {
					return explain(cmd.Context(), "cannot describe "+cmd.Name()+" "+args[0], err)
				}
				if watch {
					return follow(cmd, every, a, newWatched(cmd, format).tell, func() (*account, error) { return tell(cmd.Context(), c, args[0]) })
				}
				if isData(format) {
					return printData(cmd.OutOrStdout(), format, a.value)
				}
				return a.print(cmd.OutOrStdout())
			}}
		addWatch(sub.Flags(), &watch, &every)
		addOutput(sub, &format)
		cmd.AddCommand(sub)
	}
	add("execution EXECUTION", "Tell where an execution stands, why it waits, and what each attempt came to",
		"  takt describe execution 06cw1bq0fr8j1x4cw6h3ybkq2c", describeExecution)
	add("job JOB", "Tell what a job is, when it is due next, whether it is paused, and how it went",
		"  takt describe job reindex", describeJob)
	add("backfill BACKFILL", "Tell how far a backfill has come, and what of it runs",
		"  takt describe backfill 06cw1bq0fr8j1x4cw6h3ybkq2c", describeBackfill)
	add("calendar CALENDAR", "Tell what a calendar has open and closed, and which jobs keep to it",
		"  takt describe calendar cn-workdays", describeCalendar)
	add("worker WORKER", "Tell what a worker holds and how its leases, beats and clock are",
		"  takt describe worker billing-1", describeWorker)
	return cmd
}

// account is what is told: facts by name, then tables.
type account struct {
	value  any
	facts  [][2]string
	tables []titled
}

type titled struct {
	title  string
	header []string
	rows   [][]string
}

// fact adds a fact; an empty one is left out.
func (a *account) fact(name, text string) {
	if text != "" {
		a.facts = append(a.facts, [2]string{name, text})
	}
}

// when adds an instant with its age.
func (a *account) when(name string, t *time.Time) {
	if t != nil && !t.IsZero() {
		a.fact(name, t.Local().Format(time.RFC3339)+" ("+since(t)+")")
	}
}

func (a *account) print(w io.Writer) error {
	width := 0
	for _, f := range a.facts {
		width = max(width, len(f[0]))
	}
	for _, f := range a.facts {
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width+1, f[0]+":", printable(f[1])); err != nil {
			return fmt.Errorf("write the account: %w", err)
		}
	}
	for _, t := range a.tables {
		if _, err := fmt.Fprintf(w, "\n%s\n", t.title); err != nil {
			return fmt.Errorf("write the account: %w", err)
		}
		if err := printTable(w, t.header, t.rows); err != nil {
			return err
		}
	}
	return nil
}

// mostShards are told about; the rest is a number.
const mostShards = 100

func describeJob(ctx context.Context, c *takt.Client, name string) (*account, error) {
	j, err := c.Job(ctx, name)
	if err != nil {
		return nil, err
	}
	fires, silence, err := nextFires(ctx, c, &j)
	if err != nil {
		return nil, err
	}
	recent, err := c.Executions(ctx, takt.ExecutionQuery{Job: name, Page: takt.Page{Limit: 5}})
	if err != nil {
		return nil, err
	}
	a := &account{value: map[string]any{"job": j, "fires": fires, "executions": recent}}
	a.jobFacts(&j)
	a.fact("Next", none(silence))
	if len(fires) > 0 {
		t := titled{title: "Next", header: []string{"AT", "IN", "ZONE", "SCHEDULE", "NOTE"}}
		for i := range fires {
			f := &fires[i]
			t.rows = append(t.rows, []string{f.At.Format(time.RFC3339), since(&f.At), f.TimeZone, f.Schedule, f.Note})
		}
		a.tables = append(a.tables, t)
	}
	if len(recent.Items) > 0 {
		t := titled{title: "Newest executions", header: executionHeader[:8]}
		for i := range recent.Items {
			t.rows = append(t.rows, executionRow(&recent.Items[i])[:8])
		}
		a.tables = append(a.tables, t)
	}
	return a, nil
}

// none is why there is nothing, as a fact.
func none(why string) string {
	if why == "" {
		return ""
	}
	return "none: " + why
}

// nextFires are the next planned instants of a job, or why there is none; nothing of one that cannot be used.
func nextFires(ctx context.Context, c *takt.Client, j *takt.Job) (fires []takt.Fire, silence string, err error) {
	if j.Status != nil && j.Status.Unfit != "" {
		return nil, "", nil
	}
	// What an unchanged document would do is nothing; the answer tells when it is due.
	same := bare(j)
	same.Spec.Params = nil // they may be masked, and change no instant
	next, err := c.Apply(ctx, takt.ApplyRequest{DryRun: true, Documents: []takt.ApplyDocument{{Job: same}}})
	for i := range next.Items {
		fires, silence = append(fires, next.Items[i].Fires...), next.Items[i].Silence
	}
	return fires, silence, err
}

func (a *account) jobFacts(j *takt.Job) {
	a.fact("Job", j.Metadata.Name)
	a.fact("Title", j.Spec.Title)
	a.fact("Owner", j.Spec.Owner)
	a.fact("Description", j.Spec.Description)
	a.fact("Labels", labelsText(j.Metadata.Labels))
	a.fact("Runs", fmt.Sprintf("handler %s in pool %s, shards: %s", j.Spec.Handler, j.Spec.Pool, jobRow(j)[4]))
	a.fact("Schedule", schedulesText(&j.Spec))
	for i := range j.Spec.After {
		a.fact("After", afterText(&j.Spec.After[i]))
	}
	if j.Status != nil {
		a.fact("Before", strings.Join(j.Status.Children, ", "))
	}
	a.fact("Enabled", jobRow(j)[5])
	if j.Status != nil && j.Status.Unfit != "" {
		a.fact("To do", "apply the job again; `takt history "+j.Metadata.Name+"` shows what it was")
	}
	if j.Status != nil && j.Status.Paused != nil {
		p := j.Status.Paused
		a.when("Paused", &p.At)
		a.fact("Paused by", p.By)
		a.fact("Pause reason", p.Reason)
		a.when("Paused until", p.Until)
	}
	a.misfireFacts(j)
	if len(j.Spec.Params) > 0 {
		a.fact("Params", string(j.Spec.Params))
	}
	if t := j.Spec.Timeout; t != nil {
		a.fact("Time-outs", timeoutText(t))
	}
	if r := j.Spec.Retry; r != nil {
		a.fact("Attempts", fmt.Sprintf("at most %d", max(r.MaxAttempts, 1)))
	}
	a.overlapFacts(j)
	a.fact("Revision", strconv.FormatInt(j.Metadata.Revision, 10))
	a.when("Changed", j.Metadata.UpdatedAt)
	if j.Status != nil {
		a.when("Last planned", j.Status.LastPlannedAt)
	}
}

// overlapFacts tell what becomes of executions that overlap, what runs and what waits.
func (a *account) overlapFacts(j *takt.Job) {
	n := 1
	if len(j.Spec.After) > 0 {
		n = 1000
	}
	policy := fmt.Sprintf("queue, at most %d waiting; requests run at once (default)", n)
	if o := j.Spec.Overlap; o != nil {
		if policy = firstText(o.Policy, "queue"); policy == "queue" {
			if o.MaxQueued != nil {
				n = *o.MaxQueued
			}
			policy += fmt.Sprintf(", at most %d waiting", n)
		}
	}
	a.fact("Overlap", policy)
	if j.Status == nil {
		return
	}
	if why := j.Status.Incomplete; why != "" {
		a.fact("Running", "not known, nor what waits: "+why+"; ask again in a moment")
	}
	if j.Status.Live == nil {
		return
	}
	live := j.Status.Live
	a.fact("Running", strings.Join(live.Running, ", "))
	if live.Waiting > 0 {
		a.fact("Waiting", strconv.Itoa(live.Waiting))
		a.when("Oldest waiting", live.WaitingSince)
	}
	if live.Moving {
		a.fact("Move", "to pool "+j.Spec.Pool+", when what runs has ended; nothing is planned until then")
	}
}

// afterText says what a job runs after.
func afterText(a *takt.AfterSpec) string {
	text := a.Job + " " + firstText(a.On, "succeeded")
	switch a.Match {
	case "latest":
		text += ", its latest execution"
	case "day":
		text += ", of the same date in " + firstText(a.TimeZone, "UTC")
	default:
		text += ", of the same planned instant"
	}
	if a.Within != 0 {
		text += ", within " + a.Within.String()
	}
	return text
}
