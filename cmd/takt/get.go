package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
)

// get holds the flags of the get commands.
type get struct {
	g      *global
	format string
	page   takt.Page
	job    string
	pool   string
	state  string
	query  string
	labels string
	watch  bool
	every  time.Duration
}

func newGetCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "List jobs, calendars, executions, shards, workers, pools, servers or decisions"}
	add := func(use, short string, args cobra.PositionalArgs, flags string, run func(*get, context.Context, *takt.Client, []string) (*listing, error)) {
		q := get{g: g}
		sub := &cobra.Command{Use: use, Short: short, Args: args, Aliases: []string{strings.TrimSuffix(strings.Fields(use)[0], "s")},
			RunE: func(cmd *cobra.Command, args []string) error { return q.run(cmd, args, run) }}
		f := sub.Flags()
		for _, flag := range flags {
			switch flag {
			case 'l':
				f.IntVar(&q.page.Limit, "limit", 0, "at most so many; 0: the server's default")
				f.StringVar(&q.page.After, "after", "", "go on after this place, as the page before says")
			case 'L':
				f.StringVarP(&q.labels, "selector", "l", "", "only with these labels, such as app=billing,tier!=test; of executions and decisions, those of their jobs; of pools, those of a live worker")
			case 'j':
				f.StringVar(&q.job, "job", "", "only of this job")
			case 'p':
				f.StringVar(&q.pool, "pool", "", "only of this pool")
			case 'q':
				f.StringVarP(&q.query, "query", "q", "", "only what all terms select, such as 'state:failed job:billing-* duration>30s planned<2h'")
			case 's':
				f.StringVar(&q.state, "state", "", "only in this state, such as running or failed")
			}
		}
		addWatch(f, &q.watch, &q.every)
		addListOutput(sub, &q.format)
		cmd.AddCommand(sub)
	}
	add("jobs [NAME]", "List jobs", cobra.MaximumNArgs(1), "lL", (*get).jobs)
	add("calendars [CALENDAR]", "List calendars", cobra.MaximumNArgs(1), "l", (*get).calendars)
	add("executions [EXECUTION]", "List executions, newest first", cobra.MaximumNArgs(1), "ljpsqL", (*get).executions)
	add("shards EXECUTION", "List the shards of an execution", cobra.ExactArgs(1), "l", (*get).shards)
	add("workers", "List live workers", cobra.NoArgs, "pL", (*get).workers)
	add("pools", "List pools that have workers or work", cobra.NoArgs, "L", (*get).pools)
	add("servers", "List the servers on the database", cobra.NoArgs, "", (*get).servers)
	add("backfills [BACKFILL]", "List backfills, newest first", cobra.MaximumNArgs(1), "lj", (*get).backfills)
	add("decisions", "List planned instants that became no execution", cobra.NoArgs, "ljL", (*get).decisions)
	return cmd
}

func (q *get) run(cmd *cobra.Command, args []string, ask func(*get, context.Context, *takt.Client, []string) (*listing, error)) error {
	if q.page.Limit < 0 {
		return usage("--limit must not be negative")
	}
	if err := checkWatch(q.watch, q.every, q.format, "table, wide, name and jsonl"); err != nil {
		return err
	}
	c, err := q.g.client()
	if err != nil {
		return err
	}
	l, err := ask(q, cmd.Context(), c, args)
	if err != nil {
		return explain(cmd.Context(), "cannot get "+cmd.Name(), err)
	}
	if q.watch {
		return follow(cmd, q.every, l, newWatched(cmd, q.format).show, func() (*listing, error) { return ask(q, cmd.Context(), c, args) })
	}
	if len(l.rows) == 0 && q.job != "" {
		if err := everThere(cmd.Context(), c, q.job); err != nil {
			return explain(cmd.Context(), "cannot get "+cmd.Name()+" of job "+q.job, err)
		}
	}
	if err := l.print(cmd.OutOrStdout(), q.format); err != nil {
		return err
	}
	if l.next != "" && !isData(q.format) {
		fmt.Fprintf(cmd.ErrOrStderr(), "there are more: --after '%s'\n", l.next)
	}
	if l.lacks != "" && !isData(q.format) {
		fmt.Fprintf(cmd.ErrOrStderr(), "incomplete: %s\n", l.lacks)
	}
	return nil
}

// everThere refuses a job that never was: a list of what belongs to one is empty for another reason. A deleted one was.
func everThere(ctx context.Context, c *takt.Client, job string) error {
	_, err := c.Revisions(ctx, job, takt.Page{Limit: 1})
	return err
}

func (q *get) jobs(ctx context.Context, c *takt.Client, args []string) (*listing, error) {
	if len(args) == 1 {
		j, err := c.Job(ctx, args[0])
		return &listing{value: j, header: jobHeader, narrow: 9, rows: [][]string{jobRow(&j)}}, err
	}
	list, err := q.selectJobs(ctx, c)
	l := &listing{value: list, header: jobHeader, narrow: 9, next: list.Next}
	for i := range list.Items {
		l.rows = append(l.rows, jobRow(&list.Items[i]))
	}
	return l, err
}

func (q *get) executions(ctx context.Context, c *takt.Client, args []string) (*listing, error) {
	if len(args) == 1 {
		e, err := c.Execution(ctx, args[0])
		return &listing{value: e, header: executionHeader, narrow: 8, rows: [][]string{executionRow(&e)}}, err
	}
	list, err := c.Executions(ctx, takt.ExecutionQuery{Job: q.job, Pool: q.pool, State: q.state, Query: q.query, Labels: q.labels, Page: q.page})
	l := &listing{value: list, header: executionHeader, narrow: 8, next: list.Next}
	for i := range list.Items {
		l.rows = append(l.rows, executionRow(&list.Items[i]))
	}
	return l, err
}

func (q *get) shards(ctx context.Context, c *takt.Client, args []string) (*listing, error) {
	list, err := c.Shards(ctx, args[0], q.page)
	l := &listing{value: list, header: shardHeader, narrow: 9, next: list.Next}
	for i := range list.Items {
		l.rows = append(l.rows, shardRow(&list.Items[i]))
	}
	return l, err
}

func (q *get) workers(ctx context.Context, c *takt.Client, _ []string) (*listing, error) {
	want, err := job.ParseSelector(q.labels)
	if err != nil {
		return nil, err
	}
	list, err := c.Workers(ctx, q.pool)
	list.Items = slices.DeleteFunc(list.Items, func(w takt.WorkerStatus) bool { return !want.Matches(w.Labels) })
	l := &listing{value: list, header: workerHeader, narrow: 10, lacks: list.Incomplete}
	for i := range list.Items {
		l.rows = append(l.rows, workerRow(&list.Items[i]))
	}
	return l, err
}

func (q *get) pools(ctx context.Context, c *takt.Client, _ []string) (*listing, error) {
	want, err := job.ParseSelector(q.labels)
	if err != nil {
		return nil, err
	}
	list, err := c.Pools(ctx)
	if err == nil && !want.Empty() {
		var workers takt.WorkerList
		workers, err = c.Workers(ctx, "")
		list.Items = slices.DeleteFunc(list.Items, func(p takt.PoolStatus) bool {
			return !slices.ContainsFunc(workers.Items, func(w takt.WorkerStatus) bool { return w.Pool == p.Name && want.Matches(w.Labels) })
		})
	}
	l := &listing{value: list, header: poolHeader, lacks: list.Incomplete}
	for i := range list.Items {
		l.rows = append(l.rows, poolRow(&list.Items[i]))
	}
	return l, err
}

func (q *get) decisions(ctx context.Context, c *takt.Client, _ []string) (*listing, error) {
	list, err := q.selectDecisions(ctx, c)
	l := &listing{value: list, header: decisionHeader, next: list.Next}
	for i := range list.Items {
		l.rows = append(l.rows, decisionRow(&list.Items[i]))
	}
	return l, err
}
