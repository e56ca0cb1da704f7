package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/app"
)

const maxAddress = 8 << 10 // bytes of a file with a database's address

// database is where a server's state lives: a data directory or a PostgreSQL database.
type database struct {
	data string
	db   string
	file string
}

func (d *database) flags(cmd *cobra.Command, data string) {
	f := cmd.Flags()
	f.StringVar(&d.data, "data", "", data)
	f.StringVar(&d.db, "db", "", "PostgreSQL database in place of a directory, such as postgres://takt@host/takt?sslmode=verify-full; what it leaves out comes "+
		"from the PG* variables. Keep the password out of it: whoever may list processes reads it here")
	f.StringVar(&d.file, "db-file", "", "file with that address, which then may hold the password")
}

// env lets the environment say which, too.
func (d *database) env(cmd *cobra.Command) { alsoEnv(cmd.Flags(), "data", "db", "db-file") }

// choose fills in which of them is meant. What is given on the command line goes before the environment.
func (d *database) choose(cmd *cobra.Command, cfg *app.Config) error {
	changed := cmd.Flags().Changed
	if changed("data") && !changed("db") && !changed("db-file") {
		d.db, d.file = "", ""
	}
	if (changed("db") || changed("db-file")) && !changed("data") {
		d.data = ""
	}
	if d.db != "" && d.file != "" {
		if changed("db") == changed("db-file") {
			return usage("--db and --db-file exclude each other")
		}
		if changed("db-file") {
			d.db = ""
		} else {
			d.file = ""
		}
	}
	if changed("db") && hasPassword(d.db) {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: the password in --db can be read by whoever lists this machine's processes; "+
			"put it into PGPASSWORD, TAKT_DB, ~/.pgpass or a --db-file")
	}
	if d.file != "" {
		text, err := readAddress(d.file)
		if err != nil {
			return err
		}
		d.db = text
	}
	cfg.DataDir, cfg.Database = d.data, d.db
	return nil
}

var passwordPair = regexp.MustCompile(`(?i)(^|[\s?&])(ssl)?password\s*=\s*[^\s&]`)

// hasPassword tells whether an address itself carries a secret. Its URL is read as the driver does, which ends what stands before the @ at
// a / alone: net/url takes no ? and # there.
func hasPassword(address string) bool {
	rest, isURL := strings.CutPrefix(address, "postgres://")
	if !isURL {
		rest, isURL = strings.CutPrefix(address, "postgresql://")
	}
	if i := strings.IndexAny(rest, "@/"); isURL && i >= 0 && rest[i] == '@' {
		_, p, _ := strings.Cut(rest[:i], ":")
		if _, err := url.PathUnescape(p); err == nil && p != "" {
			return true
		}
	}
	return passwordPair.MatchString(address)
}

// readAddress reads a file with one line.
func readAddress(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", usage(fmt.Sprintf("--db-file: %v", err))
	}
	text, err := io.ReadAll(io.LimitReader(f, maxAddress+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", usage(fmt.Sprintf("--db-file %s: %v", name, err))
	}
	line := strings.TrimSpace(string(text))
	if line == "" || len(text) > maxAddress || strings.ContainsAny(line, "\r\n\x00") {
		return "", usage(fmt.Sprintf("--db-file %s: it must hold one line, the address of a database", name))
	}
	return line, nil
}
