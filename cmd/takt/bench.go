package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/bench"
)

func newBenchCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure how fast a server is"}
	cmd.AddCommand(newBenchRunCommand(g), newBenchFireCommand(g))
	return cmd
}

type benchRun struct {
	g       *global
	cfg     bench.Config
	where   database
	profile string
	format  string
}

func newBenchRunCommand(g *global) *cobra.Command {
	b := benchRun{g: g}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run executions that do nothing, end to end, and tell how fast",
		Long: `Ask for executions over HTTP, run them on an SDK worker of this process over HTTP, until each end is durable and
acknowledged, and tell how many that were in a second, how long each took from its request to its handler and to
its end, and what it cost. Every execution must have succeeded exactly once, or there are no figures (exit code 1).

Without --rate requests are made in bulk, as many as the server takes; the times then are those of a server that is
kept busy. With --rate each comes due by itself, and its times count from then.

The server is one of this process on a temporary directory (--data: on an empty one that is kept; --db: on a PostgreSQL
database, which should be for this alone, for the rows stay), or the one that --server names on the command line
(no variable of the environment counts here: nobody shall load a server by mistake). The namespace (default bench)
must have no jobs, unless --force is given.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd) },
	}
	f := cmd.Flags()
	b.where.flags(cmd, "empty directory for the database of a server in this process, which is kept (default: a temporary one)")
	f.IntVar(&b.cfg.Executions, "executions", 0, "how many to run (default: as many as --for allows)")
	f.DurationVar(&b.cfg.For, "for", 0, "how long requests are made (default 10s, without --executions)")
	f.IntVar(&b.cfg.Pools, "pools", 1, "pools, each with a job and workers of its own: partitions work beside each other")
	f.IntVar(&b.cfg.Workers, "workers", 1, "SDK workers of each pool, in this process")
	f.IntVar(&b.cfg.Slots, "slots", 1000, "handlers that each of them runs at once")
	f.IntVar(&b.cfg.Shards, "shards", 1, "shards of each execution")
	f.Float64Var(&b.cfg.Rate, "rate", 0, "requests in a second (default: as many as the server takes)")
	f.IntVar(&b.cfg.Bulk, "bulk", 0, "executions asked for in one request, at most (default 1000; with --rate 1)")
	f.IntVar(&b.cfg.Clients, "clients", 0, "clients that make requests (default 2; with --rate 64)")
	f.IntVar(&b.cfg.Backlog, "backlog", 0, "executions that have not ended, at most, without --rate (default 6000)")
	f.IntVar(&b.cfg.Payload, "payload", 100, "bytes of each execution's parameters, about")
	f.BoolVar(&b.cfg.Keys, "keys", false, "give each request an idempotency key")
	f.BoolVar(&b.cfg.Force, "force", false, "also in a namespace or directory that has jobs")
	addProfile(cmd, &b.profile)
	addOutput(cmd, &b.format)
	return cmd
}

func addProfile(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "cpu-profile", "", "file for a CPU profile of this process")
}

func (b *benchRun) run(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	defer roomyHeap()()
	if cmd.Flags().Changed("namespace") {
		b.cfg.Namespace = b.g.namespace
	}
	if err := b.credentials(); err != nil {
		return err
	}
	where, err := b.place(cmd)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("server") {
		b.cfg.Server = b.g.server
	} else {
		stop, err := b.serve(ctx, where)
		if err != nil {
			return explain(ctx, "the server of the benchmark cannot start", err)
		}
		defer func() {
			if e := stop(); e != nil && err == nil {
				err = explain(ctx, "the server of the benchmark did not end well", e)
			}
		}()
	}
	b.cfg.Meters = append(b.cfg.Meters, bench.This{})
	result, err := profiled(ctx, b.profile, b.cfg, bench.Run)
	if err != nil {
		return b.explain(ctx, err)
	}
	return b.print(cmd, result)
}

func (b *benchRun) credentials() (err error) {
	b.cfg.Token, err = b.g.token()
	return err
}

// place is where a server in this process keeps its state. Only the command line counts: nobody shall load by mistake
// what the environment names.
func (b *benchRun) place(cmd *cobra.Command) (cfg app.Config, err error) {
	f := cmd.Flags()
	if f.Changed("server") && (f.Changed("data") || f.Changed("db") || f.Changed("db-file")) {
		return cfg, usage("--data, --db and --db-file are for a server in this process, --server names another")
	}
	err = b.where.choose(cmd, &cfg)
	return cfg, err
}

// serve starts a server in this process and returns what stops it.
func (b *benchRun) serve(ctx context.Context, where app.Config) (stop func() error, err error) {
	ends := []func() error{}
	undo := func() (err error) {
		for _, end := range slices.Backward(ends) {
			err = errors.Join(err, end())
		}
		return err
	}
	switch {
	case where.Database != "":
	case where.DataDir == "":
		if where.DataDir, err = os.MkdirTemp("", "takt-bench-"); err != nil {
			return nil, err
		}
		ends = append(ends, func() error { return os.RemoveAll(where.DataDir) })
	default:
		if _, err := os.Stat(app.Database(where.DataDir)); err == nil && !b.cfg.Force {
			return nil, &failure{code: exitConflict, what: "the directory " + where.DataDir + " has a database already",
				todo: "name an empty directory, or give --force"}
		}
	}
	where.Version = buildVersion()
	s, err := bench.Serve(ctx, where)
	if err != nil {
		return nil, errors.Join(err, undo())
	}
	ends = append(ends, s.Stop)
	b.cfg.Server, b.cfg.Token = s.URL(), ""
	if where.Database != "" {
		meter, err := bench.Database(ctx, where.Database)
		if err != nil {
			return nil, errors.Join(err, undo())
		}
		ends = append(ends, func() error { return meter.Close(context.WithoutCancel(ctx)) })
		b.cfg.Meters = append(b.cfg.Meters, meter)
	}
	return undo, nil
}

// profiled runs a benchmark, with a CPU profile of it in a file if one is named.
func profiled[C, R any](ctx context.Context, file string, cfg C, run func(context.Context, C) (R, error)) (result R, err error) {
	if file == "" {
		return run(ctx, cfg)
	}
	f, err := os.Create(file)
	if err != nil {
		return result, usage("--cpu-profile: " + err.Error())
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return result, errors.Join(err, f.Close())
	}
	result, err = run(ctx, cfg)
	pprof.StopCPUProfile()
	return result, errors.Join(err, f.Close())
}

func (b *benchRun) explain(ctx context.Context, err error) error {
	if errors.Is(err, bench.ErrNotEmpty) {
		return &failure{code: exitConflict, what: "the benchmark makes jobs of its own", why: err.Error(), todo: "-n names another namespace, --force runs it there"}
	}
	f, ok := errors.AsType[*failure](explain(ctx, "there are no figures", err))
	if ok && f.code == exitUnavailable && ctx.Err() == nil && !errors.Is(err, takt.ErrUnavailable) {
		f.code = exitNegative
	}
	return f
}

func (b *benchRun) print(cmd *cobra.Command, r *bench.Result) error {
	if isData(b.format) {
		return printData(cmd.OutOrStdout(), b.format, r)
	}
	ms := func(q bench.Quantiles) string {
		return fmt.Sprintf("p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, max %.1f ms", q.P50, q.P90, q.P99, q.Max)
	}
	rows := [][]string{
		{"executions", fmt.Sprintf("%d in %.1f s, each succeeded once", r.Executions, r.Seconds)},
		{"per second", fmt.Sprintf("%.0f", r.PerSecond)},
	}
	if r.Shards > 1 {
		rows = append(rows, []string{"shards per second", fmt.Sprintf("%.0f", r.RunsPerSec)})
	}
	rows = append(rows, []string{"request to start", ms(r.Start)}, []string{"request to end", ms(r.End)})
	for _, c := range []struct {
		meter, name, format string
		scale               float64
	}{
		{bench.Commits, "commits", "%.4f each", 1},
		{bench.WALBytes, "write-ahead log", "%.0f bytes each", 1},
		{bench.WrittenBytes, "written to disk by this process", "%.0f bytes each", 1},
		{bench.ProcessCPU, "CPU of this process", "%.1f µs each", 1e6},
		{bench.ServerCPU, "CPU of the server", "%.1f µs each", 1e6},
		{bench.DatabaseCPU, "CPU of the database", "%.1f µs each", 1e6},
	} {
		if v, ok := r.Each(c.meter); ok {
			rows = append(rows, []string{c.name, fmt.Sprintf(c.format, v*c.scale)})
		}
	}
	return printTable(cmd.OutOrStdout(), []string{"RESULT", ""}, rows)
}
