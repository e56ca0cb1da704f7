package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

func newExplainCommand(g *global) *cobra.Command {
	var at, zone, format string
	cmd := &cobra.Command{
		Use:   "explain JOB --at T",
		Short: "Tell why a job ran, runs, did not run or will run at an instant",
		Long: `Tell what became of an instant of a job, past or to come, and why: it ran as an execution, waits for something, was skipped,
missed or blocked by a decision, is held by a pause, will run, or is no instant of the schedules that were in force then. What is
not known (any more) is said. Of a deleted job, too.

The instant is RFC 3339, or a reading of the clocks in the job's time zone (of several schedules, the first one's; --tz says
another); that of a spread instant is the one before the spread. Without a fraction of a second it means any planned instant of that second, and the answer says which.`,
		Example: `  takt explain reindex --at 2026-11-28T02:30
  takt explain reindex --at 2026-11-28T02:30 --tz Asia/Shanghai
  takt explain reindex --at 2026-11-28T02:30:00+08:00 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if at == "" {
				return usage("--at is missing: which instant?")
			}
			if err := onClocks(zone, &at); err != nil {
				return err
			}
			c, err := g.client()
			if err != nil {
				return err
			}
			x, err := c.Explain(cmd.Context(), args[0], at)
			if err != nil {
				return explain(cmd.Context(), "cannot explain job "+args[0], err)
			}
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, x)
			}
			return explained(&x).print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "the instant, such as 2026-11-28T02:30:00+08:00, or 2026-11-28T02:30 in the job's time zone; required")
	cmd.Flags().StringVar(&zone, "tz", "", "time zone in which --at is read, an IANA name (default: the job's)")
	addOutput(cmd, &format)
	return cmd
}

func explained(x *takt.Explanation) *account {
	a := &account{value: x}
	a.fact("Verdict", x.Verdict+": "+strings.TrimPrefix(x.Text, x.Verdict+": "))
	a.fact("Instant", x.At.Format(time.RFC3339Nano)+" ("+x.TimeZone+")")
	a.fact("Schedule", x.Schedule)
	if x.Revision > 0 {
		a.fact("Revision", fmt.Sprintf("%d was in force", x.Revision))
	}
	a.fact("Note", x.Note)
	if e := x.Execution; e != nil {
		a.fact("Execution", e.ID+" ("+e.Trigger+")")
		a.fact("State", e.State)
		a.when("Started", e.StartedAt)
		a.when("Ended", e.EndedAt)
	}
	if x.LateMs != nil {
		a.fact("Late by", age(time.Duration(*x.LateMs)*time.Millisecond))
	}
	if x.Previous != nil {
		a.fact("Before", x.Previous.Format(time.RFC3339))
	}
	if x.Next != nil {
		a.fact("After", x.Next.Format(time.RFC3339))
	}
	a.fact("Backfill", x.Backfill)
	if len(x.Decisions) > 0 {
		t := titled{title: "Decisions", header: decisionHeader}
		for i := range x.Decisions {
			t.rows = append(t.rows, decisionRow(&x.Decisions[i]))
		}
		a.tables = append(a.tables, t)
	}
	return a
}

var upcomingHeader = []string{"AT", "IN", "JOB", "SCHEDULE", "NOTE", "ZONE"}

func newUpcomingCommand(g *global) *cobra.Command {
	var within, format string
	var page takt.Page
	cmd := &cobra.Command{
		Use:   "upcoming [JOB]",
		Short: "List the planned instants to come, of all jobs in their order",
		Long: `List the planned instants to come, of all jobs of the namespace or of one, in their order, with what a step of the clock, a
calendar or the spread does to them. Instants of paused jobs are left out up to the end of the pause, and these jobs are named on
standard error (paused of JSON); schedules that have made all their runs (maxRuns) are left out altogether; of one JOB, the instants that its pause, or failures in a row, hold are listed and say so.`,
		Example: `  takt upcoming --for 6h
  takt upcoming reindex --for 7d -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := lengthOf("--for", within)
			if err != nil {
				return err
			}
			if page.Limit < 0 {
				return usage("--limit must not be negative")
			}
			c, err := g.client()
			if err != nil {
				return err
			}
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			list, err := c.Upcoming(cmd.Context(), name, d, page)
			if err != nil {
				return explain(cmd.Context(), "cannot look ahead", err)
			}
			if len(list.Items) == 0 && !isData(format) {
				fmt.Fprintln(cmd.ErrOrStderr(), nothingComes(name, d))
			}
			return printUpcoming(cmd, format, &list)
		},
	}
	f := cmd.Flags()
	f.StringVar(&within, "for", "24h", "how far to look, such as 6h or 7d; at most 366d")
	f.IntVar(&page.Limit, "limit", 0, "at most so many; 0: the server's default")
	f.StringVar(&page.After, "after", "", "go on after this place, as the page before says")
	addListOutput(cmd, &format)
	return cmd
}

// nothingComes says that a list of instants to come is empty.
func nothingComes(name string, within time.Duration) string {
	text := "no planned instant lies in the next " + takt.Duration(within).String()
	if name != "" {
		text += " of job " + name + ": `takt describe job " + name + "` shows its schedule, and why nothing comes"
	}
	return text
}

func printUpcoming(cmd *cobra.Command, format string, list *takt.UpcomingList) error {
	l := &listing{value: list, header: upcomingHeader, narrow: 5, next: list.Next}
	for i := range list.Items {
		u := &list.Items[i]
		note := u.Note
		if u.Held != "" {
			note = strings.TrimSuffix(u.Held+"; "+note, "; ")
		}
		l.rows = append(l.rows, []string{u.At.Format(time.RFC3339), since(&u.At), u.Job, u.Schedule, note, u.TimeZone})
	}
	if err := l.print(cmd.OutOrStdout(), format); err != nil {
		return err
	}
	if !isData(format) {
		for _, p := range list.Paused {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", p.Job, printable(p.Held))
		}
		if list.PausedMore {
			fmt.Fprintln(cmd.ErrOrStderr(), "other jobs may be paused, too: takt get jobs shows them")
		}
	}
	if list.Complete != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "incomplete behind %s: there are too many schedules; name a job, or a shorter --for\n", list.Complete.Format(time.RFC3339))
	}
	if l.next != "" && !isData(format) {
		fmt.Fprintf(cmd.ErrOrStderr(), "there are more: --after '%s'\n", l.next)
	}
	return nil
}
