package store

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// FloorVersion stands among the migrations that were applied once the floor is at engine.LevelLots. A binary from before there
// were floors knows the migrations up to 70 at most, so that the database is two steps (80 and this) ahead of it then, and it does
// not start. Until then it is one step ahead, and may be started again amid a rolling upgrade. Later binaries look at the floor itself.
const FloorVersion = 71

// Migration is one step of the form of a database's tables.
type Migration struct {
	Version int64
	Name    string // empty for one that this binary does not know
	Applied bool
}

// Form tells how a database stands to this binary.
type Form struct {
	Version    int64 // of the database; 0: it has no tables yet
	Known      int64 // newest that this binary knows
	Ahead      int   // migrations that this binary does not know: numbers have gaps, so that they do not say how many
	Floor      int   // see Partitions.RaiseFloor
	Migrations []Migration
}

// FormOf compares what was applied with a directory of migrations.
func FormOf(files fs.FS, applied []int64, floor int) (Form, error) {
	f := Form{Floor: floor}
	known, err := fs.ReadDir(files, ".")
	if err != nil {
		return f, fmt.Errorf("migrations: %w", err)
	}
	applied = slices.DeleteFunc(slices.Clone(applied), func(v int64) bool { return v == FloorVersion })
	for _, file := range known {
		m := Migration{Name: file.Name()}
		if _, err := fmt.Sscanf(file.Name(), "%d_", &m.Version); err != nil {
			return f, fmt.Errorf("migration %s: %w", file.Name(), err)
		}
		f.Known = max(f.Known, m.Version)
		if i := slices.Index(applied, m.Version); i >= 0 {
			m.Applied, applied = true, slices.Delete(applied, i, i+1)
			f.Version = max(f.Version, m.Version)
		}
		f.Migrations = append(f.Migrations, m)
	}
	for _, v := range applied {
		f.Ahead++
		f.Version = max(f.Version, v)
		f.Migrations = append(f.Migrations, Migration{Version: v, Applied: true})
	}
	return f, nil
}

// Pending are the migrations that are not applied yet.
func (f *Form) Pending() []Migration {
	var all []Migration
	for _, m := range f.Migrations {
		if !m.Applied {
			all = append(all, m)
		}
	}
	return all
}

// Check refuses a database that this binary is too old for. One step ahead is a rolling upgrade, until the floor has passed.
func (f *Form) Check() error {
	if f.Floor > engine.Level {
		return TooOld(engine.Level, f.Floor)
	}
	if f.Ahead <= 1 {
		return nil
	}
	return job.Errorf(job.KindConflict, "database_newer", "the database has version %d, this binary knows version %d: more than one version ahead", f.Version, f.Known).
		WithHint("start the newer takt that changed it, or restore a backup from before that")
}

// Settled refuses a database whose form is older than what this binary knows, too.
func (f *Form) Settled() error {
	if err := f.Check(); err != nil {
		return err
	}
	if n := len(f.Pending()); n > 0 {
		return job.Errorf(job.KindConflict, "database_behind", "the database has version %d, this binary wants version %d: %d steps are missing", f.Version, f.Known, n).
			WithHint("run `takt migrate up`, or start the server without --migrate=false; `takt migrate plan` lists the steps")
	}
	return nil
}

// TooOld refuses a server below the floor.
func TooOld(level, floor int) *job.Error {
	return job.Errorf(job.KindConflict, "server_too_old",
		"newer servers write what this one does not know: it has level %d, and level %d is needed. It would leave executions aside, so it takes no partition", level, floor).
		WithHint("end it, and start the newer takt; the way back is a backup from before that")
}
