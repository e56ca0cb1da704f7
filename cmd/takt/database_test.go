package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/app"
)

func TestHasPassword(t *testing.T) {
	for address, want := range map[string]bool{
		"postgres://":                              false,
		"postgres://u@h/d?sslmode=require":         false,
		"postgres://u:@h/d":                        false,
		"postgres://u:p@h/d":                       true,
		"postgres://u:12?x#y@h/d":                  true, // the driver takes it, although net/url does not
		"postgresql://u:a#b@h/d":                   true,
		"postgres://h:1/d?x=a:b@c":                 false,
		"postgres://u@h/d?password=p":              true,
		"host=h user=u password=p":                 true,
		"host=h user=u Password = 'p q'":           true,
		"host=h passfile=/x":                       false,
		"postgres://u@h/d?sslpassword=p&sslkey=k":  true,
		"postgres://password@h/d":                  false,
		"postgres://u:p%40%zz@h/d?sslmode=disable": false, // no URL at all: it is refused
	} {
		if got := hasPassword(address); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}

// Which database is meant, when several places say something.
func TestChooseDatabase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(file, []byte("postgres://u:secret@file/d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name     string
		args     []string
		env      map[string]string
		data, db string
		fails    string
	}{
		{name: "nothing"},
		{name: "a directory", args: []string{"--data", "d"}, data: "d"},
		{name: "an address", args: []string{"--db", "postgres://"}, db: "postgres://"},
		{name: "from the environment", env: map[string]string{"TAKT_DB": "postgres://e"}, db: "postgres://e"},
		{name: "from a file", args: []string{"--db-file", file}, db: "postgres://u:secret@file/d"},
		{name: "a directory before the environment", args: []string{"--data", "d"}, env: map[string]string{"TAKT_DB": "postgres://e"}, data: "d"},
		{name: "an address before the environment", args: []string{"--db", "postgres://a"}, env: map[string]string{"TAKT_DATA": "d", "TAKT_DB_FILE": file}, db: "postgres://a"},
		{name: "a file before the environment", args: []string{"--db-file", file}, env: map[string]string{"TAKT_DB": "postgres://e"}, db: "postgres://u:secret@file/d"},
		{name: "both given", args: []string{"--data", "d", "--db", "postgres://a"}, data: "d", db: "postgres://a"}, // which the server refuses
		{name: "both from the environment", env: map[string]string{"TAKT_DATA": "d", "TAKT_DB": "postgres://e"}, data: "d", db: "postgres://e"},
		{name: "address and file", args: []string{"--db", "postgres://a", "--db-file", file}, fails: "exclude"},
		{name: "no such file", args: []string{"--db-file", file + "x"}, fails: "no such file"},
	} {
		var d database
		cmd := &cobra.Command{Use: "x"}
		d.flags(cmd, "directory")
		d.env(cmd)
		var said strings.Builder
		cmd.SetErr(&said)
		cmd.SetOut(io.Discard)
		if err := cmd.ParseFlags(test.args); err != nil {
			t.Fatal(err)
		}
		if err := readEnv(cmd.Flags(), func(name string) (string, bool) { v, ok := test.env[name]; return v, ok }); err != nil {
			t.Fatal(err)
		}
		var cfg app.Config
		err := d.choose(cmd, &cfg)
		if test.fails != "" {
			if err == nil || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if err != nil || cfg.DataDir != test.data || cfg.Database != test.db || said.Len() > 0 {
			t.Errorf("%s: directory %q, address %q, %v, said %q", test.name, cfg.DataDir, cfg.Database, err, &said)
		}
	}
	var d database
	cmd := &cobra.Command{Use: "x"}
	d.flags(cmd, "directory")
	var said strings.Builder
	cmd.SetErr(&said)
	if err := cmd.ParseFlags([]string{"--db", "postgres://u:hunter2@h/d"}); err != nil {
		t.Fatal(err)
	}
	if err := d.choose(cmd, &app.Config{}); err != nil || !strings.Contains(said.String(), "warning") || strings.Contains(said.String(), "hunter2") {
		t.Errorf("a password on the command line: %v, %q", err, &said)
	}
}
