package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

// get holds the flags of the get commands.
type get struct {
	g      *global
	format string
	page   takt.Page
	job    string
	pool   string
	state  string
}

func newGetCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "List jobs, executions, shards, workers, pools or decisions"}
	add := func(use, short string, args cobra.PositionalArgs, flags string, run func(*get, context.Context, *takt.Client, []string) (*listing, error)) {
		q := get{g: g}
		sub := &cobra.Command{Use: use, Short: short, Args: args,
			RunE: func(cmd *cobra.Command, args []string) error { return q.run(cmd, args, run) }}
		f := sub.Flags()
		for _, flag := range flags {
			switch flag {
			case 'l':
				f.IntVar(&q.page.Limit, "limit", 0, "at most so many; 0: the server's default")
				f.StringVar(&q.page.After, "after", "", "go on after this place, as the page before says")
			case 'j':
				f.StringVar(&q.job, "job", "", "only of this job")
			case 'p':
				f.StringVar(&q.pool, "pool", "", "only of this pool")
			case 's':
				f.StringVar(&q.state, "state", "", "only in this state, such as running or failed")
			}
		}
		addOutput(sub, &q.format)
		cmd.AddCommand(sub)
	}
	add("jobs [NAME]", "List jobs", cobra.MaximumNArgs(1), "l", (*get).jobs)
	add("executions [EXECUTION]", "List executions, newest first", cobra.MaximumNArgs(1), "ljps", (*get).executions)
	add("shards EXECUTION", "List the shards of an execution", cobra.ExactArgs(1), "l", (*get).shards)
	add("workers", "List live workers", cobra.NoArgs, "p", (*get).workers)
	add("pools", "List pools that have workers or work", cobra.NoArgs, "", (*get).pools)
	add("decisions", "List planned instants that became no execution", cobra.NoArgs, "lj", (*get).decisions)
	return cmd
}

// listing is an answer in both forms.
type listing struct {
	value  any // as the API gave it
	header []string
	rows   [][]string
	next   string
}

func (q *get) run(cmd *cobra.Command, args []string, ask func(*get, context.Context, *takt.Client, []string) (*listing, error)) error {
	if q.page.Limit < 0 {
		return usage("--limit must not be negative")
	}
	c, err := q.g.client("")
	if err != nil {
		return err
	}
	l, err := ask(q, cmd.Context(), c, args)
	if err != nil {
		return explain(cmd.Context(), "cannot get "+cmd.Name(), err)
	}
	if q.format == "json" {
		return printJSON(cmd.OutOrStdout(), l.value)
	}
	if err := printTable(cmd.OutOrStdout(), l.header, l.rows); err != nil {
		return err
	}
	if l.next != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "there are more: --after '%s'\n", l.next)
	}
	return nil
}

func (q *get) jobs(ctx context.Context, c *takt.Client, args []string) (*listing, error) {
	if len(args) == 1 {
		j, err := c.Job(ctx, args[0])
		return &listing{value: j, header: jobHeader, rows: [][]string{jobRow(&j)}}, err
	}
	list, err := c.Jobs(ctx, q.page)
	l := &listing{value: list, header: jobHeader, next: list.Next}
	for i := range list.Items {
		l.rows = append(l.rows, jobRow(&list.Items[i]))
	}
	return l, err
}

func (q *get) executions(ctx context.Context, c *takt.Client, args []string) (*listing, error) {
	if len(args) == 1 {
		e, err := c.Execution(ctx, args[0])
		return &listing{value: e, header: executionHeader, rows: [][]string{executionRow(&e)}}, err
	}
	list, err := c.Executions(ctx, takt.ExecutionQuery{Job: q.job, Pool: q.pool, State: q.state, Page: q.page})
	l := &listing{value: list, header: executionHeader, next: list.Next}
	for i := range list.Items {
		l.rows = append(l.rows, executionRow(&list.Items[i]))
	}
	return l, err
}

func (q *get) shards(ctx context.Context, c *takt.Client, args []string) (*listing, error) {
	list, err := c.Shards(ctx, args[0], q.page)
	l := &listing{value: list, header: shardHeader, next: list.Next}
	for i := range list.Items {
		l.rows = append(l.rows, shardRow(&list.Items[i]))
	}
	return l, err
}

func (q *get) workers(ctx context.Context, c *takt.Client, _ []string) (*listing, error) {
	list, err := c.Workers(ctx, q.pool)
	l := &listing{value: list, header: workerHeader}
	for i := range list.Items {
		l.rows = append(l.rows, workerRow(&list.Items[i]))
	}
	return l, err
}

func (q *get) pools(ctx context.Context, c *takt.Client, _ []string) (*listing, error) {
	list, err := c.Pools(ctx)
	l := &listing{value: list, header: poolHeader}
	for i := range list.Items {
		l.rows = append(l.rows, poolRow(&list.Items[i]))
	}
	return l, err
}

func (q *get) decisions(ctx context.Context, c *takt.Client, _ []string) (*listing, error) {
	list, err := c.Decisions(ctx, q.job, q.page)
	l := &listing{value: list, header: decisionHeader, next: list.Next}
	for i := range list.Items {
		l.rows = append(l.rows, decisionRow(&list.Items[i]))
	}
	return l, err
}
