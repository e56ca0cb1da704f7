package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/store"
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
	cmd := &cobra.Command{Use: "migrate", Short: "Tell how a database's form stands to this binary, and change it"}
	cmd.AddCommand(newMigrateStatusCommand(), newMigratePlanCommand(), newMigrateUpCommand())
	return cmd
}

// migrateCommand is a command on a database.
func migrateCommand(cmd *cobra.Command, run func(cmd *cobra.Command, cfg app.Config, format string) error) *cobra.Command {
	var where database
	var format string
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var cfg app.Config
		if err := where.choose(cmd, &cfg); err != nil {
			return err
		}
		if cfg.DataDir == "" && cfg.Database == "" {
			return usage("--data DIR or --db URL is missing: which database?")
		}
		if cfg.DataDir != "" && cfg.Database != "" {
			return usage("--data and --db exclude each other: which database?")
		}
		return run(cmd, cfg, format)
	}
	where.flags(cmd, "data directory of the server")
	where.env(cmd)
	addOutput(cmd, &format)
	return cmd
}

func newMigrateStatusCommand() *cobra.Command {
	return migrateCommand(&cobra.Command{
		Use:   "status --data DIR | --db URL",
		Short: "List the steps of a database's form, and what a start of the server would do",
		Long: `List the steps of a database's form. Nothing is changed, and servers may be running. A server applies what is pending by
itself when it starts, unless it is started with --migrate=false; take a backup before that. It refuses a database that is more than
one step ahead of it; this command then ends with exit code 5.`,
		Example: `  takt migrate status --data /var/lib/takt
  TAKT_DB=postgres://takt@db/takt takt migrate status -o json`,
	}, func(cmd *cobra.Command, cfg app.Config, format string) error {
		where, form, err := app.Form(cmd.Context(), cfg)
		if err != nil {
			return explain(cmd.Context(), "cannot read the database's version", err)
		}
		if err := printMigrations(cmd, format, stateOf(where, &form)); err != nil {
			return err
		}
		return explain(cmd.Context(), "the server of this binary refuses the database", form.Check())
	})
}

func newMigratePlanCommand() *cobra.Command {
	return migrateCommand(&cobra.Command{
		Use:   "plan --data DIR | --db URL",
		Short: "List the steps that takt migrate up would apply",
		Long: `List the steps that takt migrate up, or the start of a server, would apply to a database, in their order. Nothing is changed.
The file of a step is in the source at internal/store/sqlite/migrations or internal/store/postgres/migrations.`,
		Example: `  takt migrate plan --data /var/lib/takt`,
	}, func(cmd *cobra.Command, cfg app.Config, format string) error {
		where, form, err := app.Form(cmd.Context(), cfg)
		if err == nil {
			err = form.Check()
		}
		if err != nil {
			return explain(cmd.Context(), "there is no plan", err)
		}
		out := stateOf(where, &form)
		out.Items = pendingOf(form.Pending(), "pending")
		return printMigrations(cmd, format, out)
	})
}

func newMigrateUpCommand() *cobra.Command {
	return migrateCommand(&cobra.Command{
		Use:   "up --data DIR | --db URL",
		Short: "Bring a database to the form that this binary knows",
		Long: `Apply the steps that takt migrate plan lists, and make the tables of a new database. There is no way back but a backup: take one first.
On PostgreSQL servers of the version before may go on running, and a lock keeps two runs apart; a data directory must have no
server (exit code 5).`,
		Example: `  takt migrate up --db postgres://takt@db/takt && systemctl restart takt`,
	}, func(cmd *cobra.Command, cfg app.Config, format string) error {
		where, done, form, err := app.Migrate(cmd.Context(), cfg)
		if err != nil {
			return explain(cmd.Context(), "the database was not brought up to date", err)
		}
		out := stateOf(where, &form)
		out.Items = pendingOf(done, "applied")
		return printMigrations(cmd, format, out)
	})
}

func printMigrations(cmd *cobra.Command, format string, out migrations) error {
	w := cmd.OutOrStdout()
	if isData(format) {
		return printData(w, format, out)
	}
	rows := make([][]string, len(out.Items))
	for i, m := range out.Items {
		rows[i] = []string{strconv.FormatInt(m.Version, 10), m.State, m.Name}
	}
	if err := printTable(w, []string{"VERSION", "STATE", "NAME"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "the database has version %d, this binary knows %d: %s\n", out.Version, out.Known, out.State)
	return err
}

func pendingOf(all []store.Migration, state string) []migration {
	out := make([]migration, len(all))
	for i, m := range all {
		out[i] = migration{Version: m.Version, Name: m.Name, State: state}
	}
	return out
}

func stateOf(where string, f *store.Form) migrations {
	out := migrations{Database: where, Version: f.Version, Known: f.Known, State: "current"}
	for _, m := range f.Migrations {
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
	case f.Ahead > 1:
		out.State = "refused"
	case f.Ahead == 1:
		out.State = "ahead"
	}
	return out
}
