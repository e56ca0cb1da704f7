package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, NoSync: true})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// owned opens a store and takes its partition.
func owned(t *testing.T, path string) (*sqlite.Store, store.Fence) {
	t.Helper()
	s := open(t, path)
	rows, err := s.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := s.AcquirePartition(t.Context(), rows[0], "me", 1, engine.Level)
	if err != nil {
		t.Fatal(err)
	}
	return s, row.Fence
}

func execute(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestReopenKeepsEverything(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "with ünï, space, % and #.db")
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Partitions: 3})
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := s.PartitionRows(t.Context())
	row, err := s.AcquirePartition(t.Context(), rows[2], "me", 1, engine.Level)
	if err != nil {
		t.Fatal(err)
	}
	e, sh := benchRows(1)
	e.Partition = 2
	b := engine.Batch{Seq: 1, LastToken: 9, Executions: []engine.ExecutionWrite{{Row: e}}, Shards: []engine.ShardWrite{{Row: sh}}}
	if err := s.Commit(t.Context(), row.Fence, &b); err != nil {
		t.Fatal(err)
	}
	before, err := s.LoadPartition(t.Context(), 2)
	if err != nil || len(before.Executions) != 1 {
		t.Fatalf("%v, %v", before, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the file has another name: %v", err)
	}
	s = open(t, path) // asks for one partition: the file keeps its three
	rows, err = s.PartitionRows(t.Context())
	if err != nil || len(rows) != 3 || rows[2].Owner != "me" || rows[2].Seq != 1 {
		t.Fatalf("rows %v, %v", rows, err)
	}
	after, err := s.LoadPartition(t.Context(), 2)
	if err != nil || after.LastToken != 9 || after.Executions[0].Execution.ID != e.ID || len(after.Executions[0].Shards) != 1 {
		t.Fatalf("after: %v, %v", after, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("letter.db"), []byte(strings.Repeat("Dear Sir or Madam, ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	execute(t, path("other.db"), `CREATE TABLE recipes (name TEXT)`)
	for name, c := range map[string]struct {
		path, code, says string
	}{
		"no path":          {"", "no_path", "no file"},
		"missing dir":      {path("missing/takt.db"), "no_data_directory", "missing"},
		"dir is a file":    {path("letter.db/takt.db"), "", "letter.db"},
		"file is a dir":    {dir, "not_a_file", "directory"},
		"no database":      {path("letter.db"), "not_a_database", "letter.db"},
		"other's database": {path("other.db"), "not_a_takt_database", "another program"},
	} {
		s, err := sqlite.Open(t.Context(), sqlite.Config{Path: c.path})
		if err == nil {
			t.Errorf("%s: was opened", name)
			_ = s.Close()
			continue
		}
		e, ok := errors.AsType[*job.Error](err)
		if !ok || c.code != "" && e.Code != c.code || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, err := os.ReadFile(path("letter.db")); err != nil || !strings.HasPrefix(string(text), "Dear Sir") {
		t.Errorf("the letter was changed: %v", err)
	}
	if _, err := os.Stat(path("other.db-wal")); err == nil {
		t.Error("the other program's database was turned to WAL")
	}
	if _, err := sqlite.Open(t.Context(), sqlite.Config{Path: path("takt.db"), Partitions: 5000}); err == nil {
		t.Error("5000 partitions were made")
	}
}

// A database one version ahead is a rolling upgrade, two are refused, with the reason.
func TestNewerDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "takt.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (90010, 1)`)
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (90020, 1)`)
	_, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	e, ok := errors.AsType[*job.Error](err)
	if !ok || e.Code != "database_newer" || !strings.Contains(e.Message, "version 90020") || !strings.Contains(e.Message, "knows version") || e.Hint == "" {
		t.Fatalf("a database two versions ahead: %v", err)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "takt.db"))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Ping(t.Context()); job.KindOf(err) != job.KindUnavailable {
		t.Errorf("Ping: %v", err)
	}
	if _, err := s.PartitionRows(t.Context()); job.KindOf(err) != job.KindUnavailable {
		t.Errorf("PartitionRows: %v", err)
	}
}

func TestGivesUpWithItsCaller(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "takt.db"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Ping(ctx); job.KindOf(err) != job.KindUnavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("Ping: %v", err)
	}
	if _, err := s.PartitionRows(ctx); job.KindOf(err) != job.KindUnavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("PartitionRows: %v", err)
	}
}

func TestStatements(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "takt.db"))
	if err := sqlite.PrepareAll(t.Context(), s); err != nil {
		t.Error(err)
	}
	for _, text := range sqlite.Statements() {
		lower := strings.ToLower(text)
		for _, clock := range []string{"current_timestamp", "current_time", "current_date", "datetime(", "date(", "julianday(", "unixepoch(", "strftime("} {
			if strings.Contains(lower, clock) && !strings.Contains(lower, "_"+clock) {
				t.Errorf("reads a clock: %s", text)
			}
		}
		if strings.Contains(lower, " offset ") {
			t.Errorf("uses OFFSET: %s", text)
		}
		plan, err := sqlite.Plan(t.Context(), s, text)
		if err != nil {
			t.Errorf("plan of %s: %v", text, err)
		}
		checkPlan(t, text, plan)
	}
	for part := range excused {
		if !slices.ContainsFunc(sqlite.Statements(), func(text string) bool { return strings.Contains(text, part) }) {
			t.Errorf("an excuse that no statement needs: %s", part)
		}
	}
}

// excused are statements that sort or scan what is small or bounded: a part of each, and why.
var excused = map[string]string{
	"backfill_progress p INDEXED BY backfill_progress_live":                                     "the backfills that run in a partition are few",
	"FROM job_dependencies d JOIN jobs j ON j.uid = d.":                                         "the parents or children of one job",
	"1, 'parent_ended', namespace, uid,":                                                        "the children of one job",
	"WHERE partition = ?1 AND next > 0 AND next <= ?2 ORDER BY next, job, schedule LIMIT ?5) c": "c is a page of an index",
	`WHERE r.spec LIKE '%"timeZone":%'`:                                                         "once, when the time zone database has changed",
	"count(*) FROM (SELECT state FROM executions LIMIT ?)":                                      "a count with a bound",
	"count(*) FROM (SELECT 1 FROM decisions LIMIT ?)":                                           "a count with a bound",
}

// checkPlan wants large tables to be read by an index in the wanted order: no scan, no sorting.
func checkPlan(t *testing.T, text, plan string) {
	t.Helper()
	for part := range excused {
		if strings.Contains(text, part) {
			return
		}
	}
	for _, line := range strings.Split(plan, "\n") {
		for _, large := range []string{"executions", "shards", "history_executions", "history_shards", "decisions", "journal", "inbox", "request_keys", "cursors", "e", "s", "c", "r"} {
			if line == "SCAN "+large || strings.HasPrefix(line, "SCAN "+large+" ") {
				t.Errorf("scans %s: %s\n%s", large, text, plan)
			}
		}
		if strings.Contains(line, "USE TEMP B-TREE FOR ORDER BY") {
			t.Errorf("sorts: %s\n%s", text, plan)
		}
	}
}
