package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/demo"
)

type demoFlags struct {
	cfg    demo.Config
	format string
	keep   bool
}

func newDemoCommand() *cobra.Command {
	var d demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Index a directory with three workers, kill one, freeze one, and audit every effect",
		Long: `Run one server on SQLite and worker processes that index every file below a directory: path, size, lines and
SHA-256, in shards, with a checkpoint after each batch. In the middle one worker is killed with kill -9 and
another is frozen past its leases and woken again. At the end the effects are compared with a plain walk.

The exit code is 0 only if every file has exactly one right effect, every shard succeeded, lost shards were
taken over from their checkpoints, and the woken worker was refused by the sink and by the server.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&d.cfg.Dir, "dir", "", "directory to index (default: the sources of Go, $(go env GOROOT)/src)")
	f.Float64Var(&d.cfg.Rate, "rate", 0, "files per second and shard; 0: chosen so that the whole takes about a minute and a half")
	f.IntVar(&d.cfg.Workers, "workers", 3, "worker processes, 3 to 26")
	f.IntVar(&d.cfg.Shards, "shards", 8, "shards, 4 to 64")
	f.DurationVar(&d.cfg.TTL, "ttl", 4500*time.Millisecond, "length of a shard's lease")
	f.DurationVar(&d.cfg.Beat, "beat", time.Second, "how often workers beat")
	f.DurationVar(&d.cfg.Margin, "margin", 500*time.Millisecond, "workers stop this much before a lease ends")
	f.StringVar(&d.cfg.Data, "data", "", "directory for the server's data and the effects, which are kept (default: a temporary one)")
	f.BoolVar(&d.keep, "keep", false, "leave server and workers up at the end, until Ctrl-C")
	addOutput(cmd, &d.format)
	return cmd
}

func (d *demoFlags) run(cmd *cobra.Command) (err error) {
	if err := d.prepare(cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	running, err := demo.Start(ctx, d.cfg)
	if err != nil {
		if bad, ok := errors.AsType[*demo.BadPlan](err); ok {
			return &failure{code: exitUsage, what: "the demo cannot be run so", why: bad.Message, todo: bad.Hint}
		}
		return explain(ctx, "the demo could not be started", err)
	}
	defer func() {
		if e := running.Close(); e != nil && err == nil {
			err = explain(ctx, "the demo could not be cleaned up", e)
		}
	}()
	result, err := running.Drive(ctx)
	if err != nil {
		f := &failure{code: exitNegative, what: "the demo did not come to its end", why: err.Error()}
		if ctx.Err() != nil {
			f.code = endedBy(ctx)
		}
		return f
	}
	if err := d.print(cmd, result); err != nil {
		return err
	}
	if d.keep {
		fmt.Fprintf(cmd.ErrOrStderr(), "the server is at %s until Ctrl-C:\n  takt --server %s get shards %s\n",
			running.URL(), running.URL(), running.Execution())
		<-ctx.Done()
	}
	return verdict(cmd, result)
}

// verdict turns what was found into an exit code.
func verdict(cmd *cobra.Command, r *demo.Result) error {
	if faults := r.Faults(); len(faults) > 0 {
		return &failure{code: exitNegative, what: "the audit does not hold", why: strings.Join(faults, "\n       ")}
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "the audit holds: every file has exactly one effect, and it is right")
	return nil
}

// prepare fills in what the flags leave open and checks what they say.
func (d *demoFlags) prepare(cmd *cobra.Command) error {
	switch {
	case !demo.Supported:
		return &failure{code: exitUsage, what: "takt demo needs a unix system: it freezes a process with SIGSTOP",
			todo: "run it on Linux or macOS, or in a container"}
	case d.cfg.Workers < 3 || d.cfg.Workers > 26:
		return usage("--workers must be 3 to 26: one is killed, one is frozen, and one must remain")
	case d.cfg.Shards < 4 || d.cfg.Shards > 64:
		return usage("--shards must be 4 to 64")
	case d.cfg.Rate < 0:
		return usage("--rate must not be negative")
	}
	if d.cfg.Dir == "" {
		out, err := exec.CommandContext(cmd.Context(), "go", "env", "GOROOT").Output()
		root := strings.TrimSpace(string(out))
		if err != nil || root == "" {
			return &failure{code: exitUsage, what: "the sources of Go were not found: `go env GOROOT` said nothing",
				todo: "--dir names a directory with a few hundred files or more"}
		}
		d.cfg.Dir = filepath.Join(root, "src")
	}
	self, err := os.Executable()
	if err != nil {
		return &failure{code: exitUsage, what: "the demo does not find its own program, which its workers run", why: err.Error()}
	}
	d.cfg.Command = []string{self, demoWorker}
	d.cfg.Build = buildVersion()
	d.cfg.Progress = cmd.ErrOrStderr()
	if f, ok := cmd.ErrOrStderr().(*os.File); ok {
		d.cfg.Terminal = isatty.IsTerminal(f.Fd())
	}
	return nil
}

func (d *demoFlags) print(cmd *cobra.Command, r *demo.Result) error {
	if isData(d.format) {
		return printData(cmd.OutOrStdout(), d.format, r)
	}
	rows := [][]string{}
	for _, c := range []struct {
		name  string
		value any
	}{
		{"files", r.Files}, {"missing", r.Missing}, {"duplicates", r.Duplicates}, {"repeats swallowed", r.RepeatsSwallowed},
		{"shards succeeded", r.ShardsSucceeded}, {"failovers", r.Failovers}, {"resumed", r.Resumed},
		{"stale refused", fmt.Sprintf("%d = sink %d + server %d", r.StaleSink+r.StaleServer, r.StaleSink, r.StaleServer)},
		{"takeover seconds", r.TakeoverSeconds}, {"seconds", r.Seconds},
	} {
		rows = append(rows, []string{c.name, fmt.Sprint(c.value)})
	}
	return printTable(cmd.OutOrStdout(), []string{"RESULT", ""}, rows)
}
