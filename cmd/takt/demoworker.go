package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/demo"
)

// demoWorker is the hidden command that worker processes of the demo run.
const demoWorker = "demo-worker"

func newDemoWorkerCommand() *cobra.Command {
	var cfg demo.WorkConfig
	cmd := &cobra.Command{
		Use:    demoWorker,
		Short:  "Run a worker of the demo until standard input ends",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Server = cmd.Flag("server").Value.String()
			cfg.Parent, cfg.Log, cfg.Build = cmd.InOrStdin(), cmd.ErrOrStderr(), buildVersion()
			err := demo.Work(cmd.Context(), cfg)
			if errors.Is(err, demo.ErrOrphan) {
				return nil // the end that the demo wants
			}
			return explain(cmd.Context(), "the demo's worker ended", err)
		},
	}
	cmd.Flags().StringVar(&cfg.Name, "name", "", "name of the worker")
	cmd.Flags().IntVar(&cfg.Slots, "slots", 1, "handlers at once")
	return cmd
}
