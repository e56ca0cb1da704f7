package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// saved is what -o shows of a backup or a restore.
type saved struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	Data  string `json:"data,omitempty"`
}

func newBackupCommand(g *global) *cobra.Command {
	var data, format string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the whole database to a file, while the server runs",
		Long: `Write the whole database, as it is at one instant, to a new file that only you may read. The server goes on meanwhile.
By default it is downloaded from the server, which makes a copy in its data directory first; with --data it is copied from a
data directory of this machine, whether a server runs there or not. The file is checked before it gets its name.`,
		Example: `  takt backup takt-$(date +%F).db
  takt backup /mnt/backup/takt.db --data /var/lib/takt`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, file := cmd.Context(), args[0]
			if cmd.Flags().Changed("db") {
				return errPostgres
			}
			size, err := backUp(ctx, g, data, file)
			if err != nil {
				return explain(ctx, "no backup was written", err)
			}
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, saved{File: file, Bytes: size})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s written, %d bytes\n", printable(file), size)
			return err
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "copy from this data directory, without asking a server")
	refusesDB(cmd)
	addOutput(cmd, &format)
	return cmd
}

// backUp writes and checks a partial file and then gives it its name.
func backUp(ctx context.Context, g *global, data, file string) (size int64, err error) {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return 0, &failure{code: exitConflict, what: "no backup was written", why: file + " is there already", todo: "name another file, or move that one away"}
	}
	part := file + ".part"
	if data != "" {
		err = sqlite.Copy(ctx, app.Database(data), part)
	} else {
		err = fetchBackup(ctx, g, part)
	}
	if err != nil {
		return 0, err // whoever made the partial file has removed it; one that was there already is another's
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part) // half a backup is none
		}
	}()
	if err := sqlite.Verify(ctx, part); err != nil {
		return 0, err
	}
	info, err := os.Stat(part)
	if err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(part, file)
}

func fetchBackup(ctx context.Context, g *global, to string) (err error) {
	c, err := g.client()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &failure{code: exitConflict, what: "no backup was written", why: to + " is there already", todo: "another backup may be writing it; if none is, remove it"}
	}
	if err != nil {
		return usage(err.Error())
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(to)
		}
	}()
	if _, err := c.Backup(ctx, f); err != nil {
		return err
	}
	return f.Sync()
}

func newRestoreCommand() *cobra.Command {
	var data, format string
	cmd := &cobra.Command{
		Use:   "restore FILE --data DIR",
		Short: "Make a data directory from a backup",
		Long: `Make a data directory from a file that takt backup wrote. The directory must be missing or empty, and no server may use it
(exit code 5). A damaged file, and one from a binary that is newer by more than one version, are refused.

What happened after the backup is lost: executions that ended since are run again, under higher tokens than all before and the same
keys. The first server on the directory grants nothing for the length of a lease, so that no shard has two workers.`,
		Example: `  takt restore takt-2026-11-29.db --data /var/lib/takt-new
  takt server --data /var/lib/takt-new`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, file := cmd.Context(), args[0]
			if cmd.Flags().Changed("db") {
				return errPostgres
			}
			if data == "" {
				return usage("--data DIR is missing: where shall it be restored?")
			}
			if err := app.Restore(ctx, file, data); err != nil {
				if e, ok := errors.AsType[*job.Error](err); ok && (e.Code == "not_a_database" || e.Code == "not_a_takt_database") {
					err = e.WithHint("name a file that `takt backup` wrote; this one is something else, or was cut short on its way here")
				}
				return explain(ctx, "nothing was restored", err)
			}
			info, err := os.Stat(app.Database(data))
			if err != nil {
				return explain(ctx, "the restored database is gone", err)
			}
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, saved{File: file, Bytes: info.Size(), Data: data})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s restored to %s; now: takt server --data %s\n", printable(file), printable(data), printable(data))
			return err
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "the new data directory (required)")
	refusesDB(cmd)
	addOutput(cmd, &format)
	return cmd
}

// errPostgres refuses to do for PostgreSQL what its own tools do better.
var errPostgres = &failure{code: exitUsage, what: "takt does not back up or restore PostgreSQL", why: "its own tools do it while servers run, and to any instant",
	todo: "use pg_dump and pg_restore, or continuous archiving; docs/OPERATIONS.md says how, and what Takt does after it"}

// refusesDB takes the flag of takt server, so that the refusal can say what to do.
func refusesDB(cmd *cobra.Command) {
	cmd.Flags().String("db", "", "")
	_ = cmd.Flags().MarkHidden("db") // the flag is there
}
