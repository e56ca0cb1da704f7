package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/bench"
)

type benchFire struct {
	run benchRun // for the server and its place
	cfg bench.FireConfig
}

func newBenchFireCommand(g *global) *cobra.Command {
	b := benchFire{run: benchRun{g: g}}
	cmd := &cobra.Command{
		Use:   "fire",
		Short: "Load many schedules, let them come due, and tell how late they start",
		Long: `Load schedules of a fixed rate whose instants are spread evenly, measure what they cost while nothing is due, then let them
come due for a while and tell how long after its planned instant each handler began. The handlers run on an SDK worker of this
process and do nothing. Every instant must have run, or there are no figures (exit code 1).

The server is one of this process on a temporary directory (--data: on an empty one that is kept; --db: on a PostgreSQL
database, which should be for this alone, for the rows stay). The namespace (default bench) must have no jobs, unless --force is
given.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.measure(cmd) },
	}
	f := cmd.Flags()
	b.run.where.flags(cmd, "empty directory for the database of a server in this process, which is kept (default: a temporary one)")
	f.IntVar(&b.cfg.Schedules, "schedules", 100_000, "how many to load")
	f.IntVar(&b.cfg.PerJob, "per-job", 1, "schedules of one job, at most 30")
	f.IntVar(&b.cfg.Rate, "rate", 1_000, "instants in a second, over all schedules")
	f.DurationVar(&b.cfg.For, "for", 0, "how long they come due (default 1m)")
	f.DurationVar(&b.cfg.Lead, "lead", 0, "from the begin of loading to the first instant (default: 95 s and 2 ms for each schedule)")
	f.DurationVar(&b.cfg.Idle, "idle", 0, "how long the cost of schedules that are not due is measured (default 10s)")
	f.IntVar(&b.cfg.Workers, "workers", 1, "SDK workers, in this process")
	f.IntVar(&b.cfg.Slots, "slots", 1000, "handlers that each of them runs at once")
	f.BoolVar(&b.cfg.Force, "force", false, "also in a namespace or directory that has jobs")
	addProfile(cmd, &b.run.profile)
	addOutput(cmd, &b.run.format)
	return cmd
}

func (b *benchFire) measure(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	defer roomyHeap()()
	if cmd.Flags().Changed("namespace") {
		b.cfg.Namespace = b.run.g.namespace
	}
	if cmd.Flags().Changed("server") {
		return usage("--server: the lateness is told by one clock, that of a server in this process")
	}
	b.run.cfg.Force = b.cfg.Force
	where, err := b.run.place(cmd)
	if err != nil {
		return err
	}
	stop, err := b.run.serve(ctx, where)
	if err != nil {
		return explain(ctx, "the server of the benchmark cannot start", err)
	}
	defer func() {
		if e := stop(); e != nil && err == nil {
			err = explain(ctx, "the server of the benchmark did not end well", e)
		}
	}()
	b.cfg.Server, b.cfg.Token = b.run.cfg.Server, b.run.cfg.Token
	b.cfg.Meters = append(slices.Clone(b.run.cfg.Meters), bench.This{})
	r, err := profiled(ctx, b.run.profile, b.cfg, bench.Fire)
	if err != nil {
		return b.run.explain(ctx, err)
	}
	if err := b.print(cmd, r); err != nil {
		return err
	}
	return lostInstants(r)
}

// lostInstants is the failure of a benchmark whose instants did not all run; nil when they did.
func lostInstants(r *bench.Fired) error {
	if r.Lost == 0 {
		return nil
	}
	return &failure{code: exitNegative, what: fmt.Sprintf("%d of %d instants did not run", r.Lost, r.Expected),
		why: "they were late by more than the benchmark waits, or were lost", todo: "a lower --rate, or more --slots"}
}

func (b *benchFire) print(cmd *cobra.Command, r *bench.Fired) error {
	if isData(b.run.format) {
		return printData(cmd.OutOrStdout(), b.run.format, r)
	}
	return printTable(cmd.OutOrStdout(), []string{"RESULT", ""}, [][]string{
		{"schedules", fmt.Sprintf("%d, loaded in %.1f s", r.Schedules, r.Load)},
		{"instants", fmt.Sprintf("%d in %.1f s, %d lost, %d repeated", r.Expected, r.Seconds, r.Lost, r.Repeated)},
		{"planned to start", fmt.Sprintf("p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, max %.1f ms", r.Lateness.P50, r.Lateness.P90, r.Lateness.P99, r.Lateness.Max)},
		{"idle", fmt.Sprintf("%.1f %% of a core with all schedules loaded", 100*r.IdleCPU)},
		{"busy", fmt.Sprintf("%.1f %% of a core, server and worker", 100*r.BusyCPU)},
		{"memory", fmt.Sprintf("%.0f MiB resident, server and worker", r.RSS/(1<<20))},
	})
}
