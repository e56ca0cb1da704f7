package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// migrations is what -o shows of the state of a database.
type migrations struct {
	Database string      `json:"database"`
	Version  int64       `json:"version"`
	Known    int64       `json:"known"`
	State    string      `json:"state"` // current, behind, ahead or refused
	Items    []migration `json:"items"`
}

type migration struct {
	Version int64  `json:"version"`
	Name    string `json:"name,omitempty"`
	State   string `json:"state"` // applied, pending or unknown
}

func newMigrateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Tell how a database's form stands to this binary"}
	cmd.AddCommand(newMigrateStatusCommand())
	return cmd
}

func newMigrateStatusCommand() *cobra.Command {
	var data, format string
	cmd := &cobra.Command{
		Use:   "status --data DIR",
		Short: "List the steps of a database's form, and what a start of the server would do",
		Long: `List the steps of a database's form. Nothing is changed, and a server may be running. The server applies what is pending by
itself when it starts; take a backup before that. It refuses a database that is more than one step ahead of it; this command then ends with exit code 5.`,
		Example: `  takt migrate status --data /var/lib/takt`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if data == "" {
				return usage("--data DIR is missing: which database?")
			}
			path := app.Database(data)
			state, err := sqlite.Inspect(cmd.Context(), path)
			if err != nil {
				return explain(cmd.Context(), "cannot read the database's version", err)
			}
			out := stateOf(path, state)
			if isData(format) {
				err = printData(cmd.OutOrStdout(), format, out)
			} else {
				rows := make([][]string, len(out.Items))
				for i, m := range out.Items {
					rows[i] = []string{strconv.FormatInt(m.Version, 10), m.State, m.Name}
				}
				if err = printTable(cmd.OutOrStdout(), []string{"VERSION", "STATE", "NAME"}, rows); err == nil {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "the database has version %d, this binary knows %d: %s\n", out.Version, out.Known, out.State)
				}
			}
			if err != nil {
				return err
			}
			return explain(cmd.Context(), "the server of this binary refuses the database", state.Check(path))
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "data directory of the server (required)")
	alsoEnv(cmd.Flags(), "data")
	addOutput(cmd, &format)
	return cmd
}

func stateOf(path string, s sqlite.State) migrations {
	out := migrations{Database: path, Version: s.Version, Known: s.Known, State: "current"}
	for _, m := range s.Migrations {
		state := "applied"
		switch {
		case m.Name == "":
			state = "unknown"
		case !m.Applied:
			state, out.State = "pending", "behind"
		}
		out.Items = append(out.Items, migration{Version: m.Version, Name: m.Name, State: state})
	}
	switch {
	case s.Ahead > 1:
		out.State = "refused"
	case s.Ahead == 1:
		out.State = "ahead"
	}
	return out
}
