package main

import (
	"bytes"
	"database/sql"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// A database that is newer than the binary is refused with the reason, and told about.
func TestNewerDatabaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: app.Database(dir)})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", app.Database(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (90001, 1), (90002, 1)`); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"server", "--data", dir, "--listen", "127.0.0.1:0"}, {"migrate", "status", "--data", dir},
		{"restore", app.Database(dir), "--data", filepath.Join(dir, "new")},
	} {
		var errOut bytes.Buffer
		code := run(args, strings.NewReader(""), io.Discard, &errOut)
		if text := errOut.String(); code != exitConflict || !strings.Contains(text, "has version 90002, this binary knows version") ||
			!strings.Contains(text, "do:  start the newer takt") {
			t.Errorf("%v: exit %d, %s", args[0], code, text)
		}
	}
}
