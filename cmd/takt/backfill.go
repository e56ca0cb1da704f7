package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

var backfillHeader = []string{"BACKFILL", "JOB", "STATE", "DONE", "TOTAL", "FAILED", "SKIPPED", "FROM", "TO", "AGE", "BY", "REASON"}

func backfillRow(b *takt.Backfill) []string {
	done := b.Succeeded + b.Failed + b.Skipped
	return []string{b.ID, b.Job, b.State, strconv.FormatInt(done, 10), strconv.FormatInt(b.Total, 10), strconv.FormatInt(b.Failed, 10),
		strconv.FormatInt(b.Skipped, 10), b.From.Format(time.RFC3339), b.To.Format(time.RFC3339), since(b.At), b.Author, b.Reason}
}

// backfill holds the flags of the command.
type backfill struct {
	who
	in     takt.BackfillRequest
	zone   string
	yes    bool
	wait   bool
	format string
}

func newBackfillCommand(g *global) *cobra.Command {
	var b backfill
	cmd := &cobra.Command{
		Use:   "backfill JOB --from T --to T",
		Short: "Run a job for the planned instants of a range of the past",
		Long: `Run a job for the planned instants of a range of the past, in its newest revision: one execution for each instant that has no
succeeded one. What ended otherwise runs again, what still lives is waited for. The handler gets the planned instant, and the
same key that it would have had then. Decisions about the instants (missed, skipped) stay as they are.

At most --max-parallel run at a time, and no more than the overlap policy of the job allows: more than one takes
overlap allow. A range has at most 100,000 instants, and may not reach into what the schedule has yet to plan. The backfill goes
on by itself, whatever becomes of servers and workers: takt get backfills -w shows it, takt backfill cancel ends it.`,
		Example: `  takt backfill reindex --from 2026-11-01 --to 2026-11-08T00:00 --dry-run
  takt backfill reindex --from 2026-11-01T00:00:00+08:00 --to 2026-11-08T00:00:00+08:00 --yes --reason "lost disk"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return b.run(cmd, g, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&b.in.From, "from", "", "first instant: RFC 3339, or 2026-11-01T00:00 in the job's time zone; included, required")
	f.StringVar(&b.in.To, "to", "", "last instant, likewise; included, not in the future; required")
	f.StringVar(&b.zone, "tz", "", "time zone in which --from and --to are read, an IANA name (default: the job's)")
	f.BoolVar(&b.in.Reverse, "reverse", false, "the newest instant first")
	f.IntVar(&b.in.MaxParallel, "max-parallel", 1, "executions at a time, at most 100")
	f.BoolVar(&b.in.DryRun, "dry-run", false, "tell how many instants there are, and what would refuse to run them now; run nothing")
	f.BoolVar(&b.yes, "yes", false, "run them; without it, or with --dry-run, nothing is run")
	f.BoolVar(&b.wait, "wait", false, "wait for the end, and exit 1 unless all have succeeded")
	b.addFlags(cmd)
	addOutput(cmd, &b.format)
	cmd.AddCommand(newBackfillCancelCommand(g))
	return cmd
}

func (b *backfill) run(cmd *cobra.Command, g *global, name string) error {
	switch {
	case b.in.From == "" || b.in.To == "":
		return usage("--from and --to are needed: which range?")
	case b.in.MaxParallel < 1 || b.in.MaxParallel > 100:
		return usage("--max-parallel must be from 1 to 100")
	}
	if err := onClocks(b.zone, &b.in.From, &b.in.To); err != nil {
		return err
	}
	c, err := g.client()
	if err != nil {
		return err
	}
	b.in.Author, b.in.Reason = b.name(), b.reason
	ctx, dry := cmd.Context(), b.in.DryRun
	b.in.DryRun = true
	made, err := c.Backfill(ctx, name, b.in)
	if err != nil {
		return explain(ctx, "cannot backfill job "+name, err)
	}
	if dry || !b.yes || made.Total == 0 {
		b.note(cmd, &made)
	}
	line := fmt.Sprintf("%s has %s from %s to %s", name, counted(int(made.Total), "planned instant"), made.From.Format(time.RFC3339), made.To.Format(time.RFC3339))
	if !dry {
		if made, err = b.start(cmd, c, name, line, made.Total); err != nil {
			return err
		}
		line = made.ID
	}
	if b.wait && !dry {
		if made, err = awaitBackfill(cmd, c, made); err != nil {
			return err
		}
	}
	if isData(b.format) {
		err = printData(cmd.OutOrStdout(), b.format, made)
	} else {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), line)
	}
	if err == nil && b.wait && !dry && (made.State != "done" || made.Failed > 0) {
		return &failure{code: exitNegative, what: "backfill " + made.ID + " ended " + made.State, why: counted(int(made.Failed), "instant") + " failed",
			todo: "`takt get executions -q 'job:" + name + " trigger:backfill'` shows them; the same backfill again runs those that failed"}
	}
	return err
}

// start runs what a dry run has counted, and says how much that is.
func (b *backfill) start(cmd *cobra.Command, c *takt.Client, name, counted string, total int64) (takt.Backfill, error) {
	if total == 0 {
		return takt.Backfill{}, &failure{code: exitUsage, what: counted + ": there is nothing to run", todo: "`takt upcoming " + name + "` and `takt describe job " + name + "` show when it is due"}
	}
	if err := b.confirm(counted); err != nil {
		return takt.Backfill{}, err
	}
	b.in.DryRun = false
	made, err := c.Backfill(cmd.Context(), name, b.in)
	if err != nil {
		return made, explain(cmd.Context(), "cannot backfill job "+name, err)
	}
	b.note(cmd, &made)
	if !isData(b.format) {
		fmt.Fprintln(cmd.ErrOrStderr(), counted)
	}
	return made, nil
}

// note says what of a request has no effect, or would refuse it.
func (b *backfill) note(cmd *cobra.Command, made *takt.Backfill) {
	if made.Note != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+printable(made.Note))
	}
}

// awaitBackfill tells how far a backfill comes until it has ended. The end of the waiting does not end it.
func awaitBackfill(cmd *cobra.Command, c *takt.Client, b takt.Backfill) (takt.Backfill, error) {
	ctx, told := cmd.Context(), int64(-1)
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		if done := b.Succeeded + b.Failed + b.Skipped; done != told {
			told = done
			fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d done, %d failed\n", done, b.Total, b.Failed)
		}
		if b.Ended() {
			tick.Stop()
			return b, nil
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return b, &failure{code: endedBy(ctx), what: "stopped waiting for backfill " + b.ID + "; it goes on", why: stoppedBy(ctx),
				todo: "`takt backfill cancel " + b.ID + "` ends it"}
		case <-tick.C:
		}
		now, err := c.BackfillByID(ctx, b.ID)
		if err != nil && ctx.Err() == nil {
			return b, explain(ctx, "cannot wait for backfill "+b.ID, err)
		}
		if err == nil {
			b = now
		}
	}
}

// confirm refuses to go on unless it was said: nothing is ever asked.
func (b *backfill) confirm(what string) error {
	if b.yes {
		return nil
	}
	return usage(what + ": say --yes to run them")
}

func newBackfillCancelCommand(g *global) *cobra.Command {
	var w who
	var running bool
	var format string
	cmd := &cobra.Command{
		Use:   "cancel BACKFILL",
		Short: "End a backfill: nothing more is started",
		Long: `End a backfill: nothing more is started. Its executions that have not ended run to their end, or are cancelled too with
--running.`,
		Example: `  takt backfill cancel 06cw1bq0fr8j1x4cw6h3ybkq2c
  takt backfill cancel 06cw1bq0fr8j1x4cw6h3ybkq2c --running --reason "wrong range" -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := g.client()
			if err != nil {
				return err
			}
			b, err := c.CancelBackfill(cmd.Context(), args[0], takt.CancelBackfillRequest{Running: running, Author: w.name(), Reason: w.reason})
			if err != nil {
				return explain(cmd.Context(), "cannot cancel backfill "+args[0], err)
			}
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, b)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is %s\n", b.ID, firstText(map[bool]string{true: "asked to end, pending"}[b.Effect == "pending"], b.State))
			return err
		},
	}
	cmd.Flags().BoolVar(&running, "running", false, "cancel its executions that have not ended, too")
	w.addFlags(cmd)
	addOutput(cmd, &format)
	return cmd
}

func (q *get) backfills(ctx context.Context, c *takt.Client, args []string) (*listing, error) {
	l := &listing{header: backfillHeader, narrow: 10}
	if len(args) == 1 {
		b, err := c.BackfillByID(ctx, args[0])
		l.value, l.rows = b, [][]string{backfillRow(&b)}
		return l, err
	}
	list, err := c.Backfills(ctx, q.job, q.page)
	l.value, l.next = list, list.Next
	for i := range list.Items {
		l.rows = append(l.rows, backfillRow(&list.Items[i]))
	}
	return l, err
}

func describeBackfill(ctx context.Context, c *takt.Client, id string) (*account, error) {
	b, err := c.BackfillByID(ctx, id)
	if err != nil {
		return nil, err
	}
	a := &account{value: b}
	a.fact("Backfill", b.ID)
	a.fact("Job", fmt.Sprintf("%s, revision %d", b.Job, b.Revision))
	a.fact("State", strings.TrimSuffix(b.State+": "+b.EndReason, ": "))
	order := "the oldest first"
	if b.Reverse {
		order = "the newest first"
	}
	a.fact("Range", fmt.Sprintf("%s to %s, %s, %d at a time", b.From.Format(time.RFC3339), b.To.Format(time.RFC3339), order, b.MaxParallel))
	done := b.Succeeded + b.Failed + b.Skipped
	a.fact("Done", fmt.Sprintf("%d of %d: %d succeeded, %d failed, %d had succeeded before", done, b.Total, b.Succeeded, b.Failed, b.Skipped))
	a.fact("Running", strings.Join(b.Running, ", "))
	a.when("Looked at up to", b.Cursor)
	a.fact("Asked by", b.Author)
	a.fact("Reason", b.Reason)
	a.fact("Cancelled", b.Cancelled)
	a.when("Asked", b.At)
	a.when("Started", b.StartedAt)
	a.when("Ended", b.EndedAt)
	return a, nil
}
