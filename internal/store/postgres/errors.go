package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/taktsched/takt/internal/job"
)

// SQLSTATEs that the adapter acts on.
const (
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeUnique        = "23505"
	codeCheck         = "23514"
	codeReadOnly      = "25006"
	codeNoStatement   = "26000"
	codeChanged       = "0A000"
)

// codeNoMonth is the code of an error that again mends.
const codeNoMonth = "month_missing"

// trouble is what an SQLSTATE, or a class of them, means to a person.
type trouble struct{ code, text, hint string }

// troubles are looked up by SQLSTATE, then by class. Nothing was written with any of them.
var troubles = map[string]trouble{
	codeReadOnly: {"database_read_only", "the database takes no writes: it is a standby or read-only",
		"name the primary in the database's address; with several hosts add target_session_attrs=read-write"},
	"57": {"database_stopping", "the database is stopping, starting or was told to end this connection", "takt goes on by itself when it is back"},
	"57014": {"database_slow", "the statement took longer than its time-out",
		"look at what the database is busy with: locks and long transactions (pg_stat_activity), the disk"},
	"55P03": {"database_busy", "another session holds a lock that this needs", "look for sessions that lock Takt's tables (pg_locks)"},
	"55":    {"database_not_ready", "the database is in a state in which it cannot do this: it may be a standby", "name the primary in the database's address"},
	"25":    {"transaction_ended", "the database ended the transaction, which had been left waiting", "look whether the server was paused or overloaded"},
	"53300": {"too_many_connections", "the database takes no more connections",
		"raise max_connections, or lower the number of servers or of their connections"},
	"53100":     {"disk_full", "the disk of the database is full", "free space there; takt goes on by itself"},
	"53200":     {"out_of_memory", "the database is out of memory", "give it more memory, or lower work_mem and max_connections"},
	"53":        {"database_exhausted", "the database lacks a resource", "see the cause in the log"},
	"40":        {"database_race", "another transaction was in the way", ""},
	"28":        {"login_refused", "the database refuses the login", "check user, password and pg_hba.conf"},
	"3D":        {"no_database", "there is no such database", "create it (CREATE DATABASE, or createdb), or name another one in the address"},
	"42501":     {"no_right", "the database user lacks a right", "make the user the owner of the database"},
	"42P01":     {"no_table", "a table is missing", "the database is not Takt's, or was restored half-way"},
	codeChanged: {"database_changed", "the tables were changed while the server ran", "takt goes on by itself"},
	"08":        {"database_unreachable", "the database cannot be reached", ""},
	"58":        {"disk_error", "the database cannot read or write its files", "look into the database's log"},
	"XX":        {"database_damaged", "the database reports a fault of its own", "look into the database's log"},
}

// rejected are the classes by which the database refuses the data itself.
func rejected(code string) bool {
	switch code[:2] {
	case "22", "23", "54", "21":
		return true
	}
	return false
}

// classify turns an error from before a COMMIT into one of the contract; nothing was written.
func classify(op string, err error) error {
	if e, ok := errors.AsType[*job.Error](err); ok {
		return e
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classifyState(op, pg, err)
	}
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return job.Errorf(job.KindUnavailable, "gave_up", "%s: the caller stopped waiting for the database", op).WithCause(plain(err))
	case errors.Is(err, puddle.ErrClosedPool):
		return job.Errorf(job.KindUnavailable, "store_closed", "%s: the database is closed", op)
	case lost(err):
		return job.Errorf(job.KindUnavailable, "database_unreachable", "%s: the database cannot be reached", op).
			WithHint("%s", reach(err)).WithCause(plain(err))
	}
	return job.Errorf(job.KindInternal, "database_fault", "%s failed", op).WithCause(plain(err))
}

// reach says what to do about a database that cannot be reached.
func reach(err error) string {
	if _, refused := errors.AsType[*pgconn.ConnectError](err); refused && strings.Contains(err.Error(), "tls error") { // it has no type
		return "check sslmode and sslrootcert in its address, and whether PostgreSQL has ssl on: it runs, but TLS with it failed"
	}
	return "check that it runs and that its address is right"
}

func classifyState(op string, pg *pgconn.PgError, err error) error {
	if len(pg.Code) == 5 && rejected(pg.Code) {
		return job.Errorf(job.KindRejected, "data_refused", "%s: the database refuses this data", op).WithCause(plain(err))
	}
	for _, key := range []string{pg.Code, pg.Code[:min(2, len(pg.Code))]} {
		if t, ok := troubles[key]; ok {
			e := job.Errorf(job.KindUnavailable, t.code, "%s: %s", op, t.text).WithCause(plain(err))
			if t.hint != "" {
				e = e.WithHint("%s", t.hint)
			}
			return e
		}
	}
	return job.Errorf(job.KindInternal, "database_fault", "%s failed", op).WithCause(plain(err))
}

// lost tells whether err is about the connection, not about what was asked.
func lost(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if pgconn.SafeToRetry(err) || pgconn.Timeout(err) {
		return true
	}
	text := err.Error() // pgconn's "conn closed", "unexpected EOF" and the like have no type
	return strings.Contains(text, "conn closed") || strings.Contains(text, "EOF") || strings.Contains(text, "connection") ||
		strings.Contains(text, "broken pipe") || strings.Contains(text, "i/o timeout")
}

// plain is err without what it carries: a ConnectError holds the password.
func plain(err error) error {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return errors.New(err.Error())
	}
	return err
}

// classifyCommit is for an error after the COMMIT was sent. Only the database's own word that it failed is sure; a
// FATAL one ended the connection, maybe after the commit.
func classifyCommit(op string, err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.SeverityUnlocalized == "ERROR" {
		return classify(op, err)
	}
	if pgconn.SafeToRetry(err) { // nothing was sent
		return classify(op, err)
	}
	return job.Errorf(job.KindUnknown, "commit_unknown", "%s: the connection was lost before the commit was confirmed; it may still land", op).WithCause(err)
}

func errorf(op, code, format string, args ...any) *job.Error {
	e := job.Errorf(job.KindUnavailable, code, format, args...)
	e.Message = op + ": " + e.Message
	return e
}

func fenced(code, format string, args ...any) error {
	return job.Errorf(job.KindFenced, code, format, args...)
}
