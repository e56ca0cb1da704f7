package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/agent"
	"github.com/taktsched/takt/internal/jobfile"
)

// agentGuard is the hidden command that guards one command of an agent.
const agentGuard = "agent-guard"

func newAgentCommand(g *global) *cobra.Command {
	var handlers, state string
	var worker takt.WorkerConfig
	cmd := &cobra.Command{
		Use:   "agent --pool POOL --handlers FILE",
		Short: "Run commands and HTTP calls as handlers of jobs",
		Long: `Run a worker whose handlers are commands and HTTP calls, described in a file, until Ctrl-C or SIGTERM. Then
commands get SIGTERM and up to 3 s, their shards go back, and the exit code is 0; a second Ctrl-C kills them at once.

Nothing of a command outlives its attempt: it is stopped with all its descendants (Linux) when it is cancelled or takes
too long, half a second before its lease ends, and when the agent dies. docs/AGENT.md describes the file, what a command
finds in its environment, and what its exit code means.`,
		Example: `  takt agent --pool ops --handlers handlers.yaml --slots 4`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			worker.Server, worker.Namespace, worker.CAFile, worker.Build = g.server, g.namespace, g.caFile, buildVersion()
			return runAgent(cmd, g, worker, handlers, state)
		},
	}
	f := cmd.Flags()
	f.StringVar(&worker.Pool, "pool", "", "pool whose shards are run (required)")
	f.IntVar(&worker.Slots, "slots", 1, "shards that are run at once")
	f.StringVar(&worker.Name, "name", "", "name shown to people (default: host name and process id)")
	f.StringVar(&handlers, "handlers", "", "file that describes the handlers (required)")
	f.StringVar(&state, "state", "", "directory for what the next agent must know when this one is killed (default: in the user's cache directory)")
	alsoEnv(f, "pool", "slots", "name", "handlers", "state")
	return cmd
}

func runAgent(cmd *cobra.Command, g *global, worker takt.WorkerConfig, handlers, state string) error {
	ctx := cmd.Context()
	switch {
	case worker.Pool == "":
		return usage("--pool is missing: whose shards are to be run?")
	case handlers == "":
		return usage("--handlers is missing: which file describes the handlers?")
	case worker.Slots < 1:
		return usage("--slots must be at least 1")
	}
	h, err := loadHandlers(cmd.ErrOrStderr(), handlers)
	if err != nil {
		return err
	}
	if worker.Token, err = g.token(); err != nil {
		return err
	}
	if state == "" {
		state = agent.DefaultState()
	}
	self, err := os.Executable()
	if err != nil {
		return &failure{code: exitUsage, what: "the agent does not find its own program, which guards its commands", why: err.Error()}
	}
	worker.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	defer sayStopping(ctx, cmd.ErrOrStderr())()
	err = agent.Run(ctx, agent.Config{Worker: worker, Handlers: h, State: state, Guard: []string{self, agentGuard}})
	// Whatever ended ctx: an agent that was asked to stop and could not is a fault of its own.
	return explain(context.WithoutCancel(ctx), "the agent ended", err)
}

// loadHandlers reads a handlers file; its faults go to errOut, each with its place.
func loadHandlers(errOut io.Writer, file string) (*agent.Handlers, error) {
	h, err := agent.Load(file)
	if faults, ok := errors.AsType[jobfile.Errors](err); ok {
		for _, f := range faults {
			fmt.Fprintln(errOut, printable(f.Error()))
			if f.Hint != "" {
				fmt.Fprintln(errOut, "  do:  "+printable(f.Hint))
			}
		}
		return nil, &failure{code: exitUsage, what: fmt.Sprintf("%s is no valid handlers file: %s", file, counted(len(faults), "fault")), todo: "docs/AGENT.md describes it"}
	}
	if err != nil {
		return nil, usage(fmt.Sprintf("--handlers: %v", err))
	}
	return h, nil
}

func newAgentGuardCommand() *cobra.Command {
	return &cobra.Command{
		Use:    agentGuard,
		Short:  "Guard one command of an agent until nothing of it is left",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return agent.Guard(cmd.InOrStdin()) },
	}
}
