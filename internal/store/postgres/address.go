package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/taktsched/takt/internal/job"
)

// parse reads an address, which must not be torn.
func parse(dsn string) (*pgxpool.Config, error) {
	if torn(dsn) {
		return nil, badAddress()
	}
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, badAddress()
	}
	return c, nil
}

// badAddress refuses an address. The text of the cause is left out: it may quote the password.
func badAddress() *job.Error {
	return job.Errorf(job.KindInvalid, "bad_address", "the address of the database cannot be read").
		WithHint("write postgres://user@host:5432/takt?sslmode=verify-full, special characters as %%XX; the password may stand in PGPASSWORD or ~/.pgpass instead")
}

// torn tells whether a URL may hold a password whose special characters tear it: what is read as a host, a port or a database's
// name would be a part of that, and travel to name servers and into messages.
func torn(dsn string) bool {
	rest, isURL := strings.CutPrefix(dsn, "postgres://")
	if !isURL {
		if rest, isURL = strings.CutPrefix(dsn, "postgresql://"); !isURL {
			return false
		}
	}
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' { // as pgx and libpq read it
		if user, _, _ := strings.Cut(rest[:i], ":"); strings.Contains(user, "?") { // these are parameters, with a torn one
			return true
		}
		rest = rest[i+1:]
	}
	place, query, _ := strings.Cut(rest, "?")
	if strings.Contains(place, "@") {
		return true
	}
	for pair := range strings.SplitSeq(query, "&") {
		if before, _, at := strings.Cut(pair, "@"); at && !takesAt(before) {
			return true
		}
	}
	return false
}

// takesAt tells whether a parameter's value may well hold an @; its name begins the text.
func takesAt(text string) bool {
	name, _, ok := strings.Cut(text, "=")
	switch name {
	case "user", "password", "sslpassword", "dbname", "host", "options", "application_name", "service", "search_path",
		"sslcert", "sslkey", "sslrootcert", "passfile", "servicefile", "krbspn": // names of files
		return ok
	}
	return false
}
