package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/job"
)

// Tables in months. Those of executions are cut by the planned instant in the execution's id (R4), the others by the
// instant of the commit.
var (
	monthsOfExecutions = []string{"history_executions", "history_shards"}
	monthsOfLogs       = []string{"logs", "log_chunks"} // by the execution's id, too
	monthsOfCommits    = []string{"decisions", "journal"}
)

func inMonths(table string) bool { return cutByID(table) || slices.Contains(monthsOfCommits, table) }

func cutByID(table string) bool {
	return slices.Contains(monthsOfExecutions, table) || slices.Contains(monthsOfLogs, table)
}

// Whatever is planned before the first month or from the end on lies in one table each, so that no schedule can make
// more than 720 months.
var (
	firstMonth = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	endOfMonth = time.Date(2080, 1, 1, 0, 0, 0, 0, time.UTC)
)

// month is a range of instants, from inclusive.
type month struct {
	name     string // "2026_11", "past", "future"
	from, to int64  // ms; past has no from, future no to
}

// holds tells whether an instant lies in m.
func (m month) holds(at job.Instant) bool {
	return (m.name == "past" || int64(at) >= m.from) && (m.name == "future" || int64(at) < m.to)
}

// differing are the instants without those that lie in the month of the one before.
func differing(instants []job.Instant) (all []job.Instant) {
	var last month
	for _, at := range instants {
		if last.name == "" || !last.holds(at) {
			last = monthOf(at)
			all = append(all, at)
		}
	}
	return all
}

func monthOf(at job.Instant) month {
	switch t := time.UnixMilli(int64(at)).UTC(); {
	case t.Before(firstMonth):
		return month{name: "past", to: firstMonth.UnixMilli()}
	case !t.Before(endOfMonth):
		return month{name: "future", from: endOfMonth.UnixMilli()}
	default:
		from := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
		return month{from.Format("2006_01"), from.UnixMilli(), from.AddDate(0, 1, 0).UnixMilli()}
	}
}

// bounds are m's as literals of the column by which a table is cut.
func (m month) bounds(table string) (from, to string) {
	literal := func(at int64) string { return strconv.FormatInt(at, 10) }
	if cutByID(table) {
		literal = func(at int64) string { return `'` + firstID(job.Instant(at)) + `'` }
	}
	from, to = literal(m.from), literal(m.to)
	switch m.name {
	case "past":
		from = `MINVALUE`
	case "future":
		to = `MAXVALUE`
	}
	return from, to
}

// firstID is the smallest uuid of an instant.
func firstID(at job.Instant) string {
	var id [16]byte
	for i := range 6 {
		id[i] = byte(at >> (8 * (5 - i)))
	}
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// months knows which tables are there. What it does not know is made; what is gone meanwhile, because another server's
// retention dropped it, shows when a row does not fit, and is forgotten here (Store.failed).
type months struct {
	mu    sync.Mutex
	known map[string]bool // "history_executions_2026_11"
}

func (k *months) has(table string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known[table]
}

func (k *months) note(table string, there bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[string]bool{}
	}
	if there {
		k.known[table] = true
	} else {
		delete(k.known, table)
	}
}

func (k *months) forgetAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.known)
}

// ensureMonths makes what is missing of the tables for the months of some instants, before and outside of the
// transaction that needs them.
func (s *Store) ensureMonths(ctx context.Context, tables []string, instants ...job.Instant) error {
	for _, at := range differing(instants) {
		m := monthOf(at)
		for _, table := range tables {
			if name := table + "_" + m.name; !s.months.has(name) {
				if err := s.makeMonth(ctx, table, m); err != nil {
					return err
				}
				s.months.note(name, true)
			}
		}
	}
	return nil
}

// again runs f once more when a month went away after it was ensured.
func again(ensure, f func() error) error {
	for n := 1; ; n++ {
		if err := ensure(); err != nil {
			return err
		}
		err := f()
		if e, ok := errors.AsType[*job.Error](err); !ok || e.Code != codeNoMonth || n == tries {
			return err
		}
	}
}

// Advisory locks: a month is made or dropped by one session at a time, and one month is dropped at a time. A drop waits for
// readers, which may be long; who makes another month, maybe for a commit, does not wait for it.
const (
	dropLock   = 0x74616b74_6d6f6e
	monthClass = 0x6d6f6e
)

// monthLock is the lock of one table, of class monthClass.
func monthLock(name string) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // cannot fail
	return int32(h.Sum32())      //nolint:gosec // any number will do
}

// goingMark is the comment of a table that dropMonth takes away. A table without it that is not attached was detached by hand:
// it is somebody's.
const goingMark = "takt: is being dropped"

const monthState = `SELECT CASE WHEN c.oid IS NULL THEN 'none'
	WHEN i.inhrelid IS NULL AND obj_description(c.oid, 'pg_class') = '` + goingMark + `' THEN 'loose' WHEN i.inhrelid IS NULL THEN 'detached'
	WHEN i.inhdetachpending THEN 'leaving' ELSE 'there' END
	FROM (SELECT to_regclass($1)::oid AS oid) c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = to_regclass($2)::oid`

// makeMonth makes one table and attaches it. That takes no lock that a running commit has or wants: CREATE … PARTITION
// OF would lock the whole table, ATTACH takes SHARE UPDATE EXCLUSIVE. (It also makes the indexes, in the order in which the
// table's were made, see the first migration; LIKE would make the primary key first.)
func (s *Store) makeMonth(ctx context.Context, table string, m month) error {
	op := "make a month of " + table
	return s.write(ctx, op, func(w *link) error {
		name := table + "_" + m.name
		var state string
		// The commits of all servers wait for who makes the month. One that freezes amid it is ended as one amid a commit is (R2).
		if _, err := w.conn.Exec(w.ctx, `SELECT set_config('idle_in_transaction_session_timeout', $1, true)`, inMilliseconds(s.commits.limit)); err != nil {
			return err
		}
		if _, err := w.conn.Exec(w.ctx, `SELECT pg_advisory_xact_lock($1, $2)`, int32(monthClass), monthLock(name)); err != nil {
			return err
		}
		if err := w.conn.QueryRow(w.ctx, monthState, name, table).Scan(&state); err != nil {
			return err
		}
		switch state {
		case "there":
			return nil
		case "leaving":
			return errorf(op, "month_leaving", "%s is being dropped", name)
		case "loose": // what a drop left that was cut off
			if _, err := w.conn.Exec(w.ctx, `DROP TABLE `+quote(name)); err != nil {
				return err
			}
		case "detached":
			if err := s.setAside(w, name); err != nil {
				return err
			}
		}
		from, to := m.bounds(table)
		for _, text := range []string{
			`CREATE TABLE ` + quote(name) + ` (LIKE ` + table + ` INCLUDING ALL EXCLUDING INDEXES)`,
			`ALTER TABLE ` + table + ` ATTACH PARTITION ` + quote(name) + ` FOR VALUES FROM (` + from + `) TO (` + to + `)`,
		} {
			if _, err := w.conn.Exec(w.ctx, text, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		return nil
	})
}

// setAside gives a table that somebody detached another name: its rows are not ours to drop, and its month is needed.
func (s *Store) setAside(w *link, name string) error {
	for n := 1; ; n++ {
		to, taken := fmt.Sprintf("%s_detached_%d", name, n), false
		if err := w.conn.QueryRow(w.ctx, `SELECT to_regclass($1) IS NOT NULL`, to).Scan(&taken); err != nil {
			return err
		}
		if taken {
			continue
		}
		_, err := w.conn.Exec(w.ctx, `ALTER TABLE `+quote(name)+` RENAME TO `+quote(to))
		if err == nil {
			s.log.Warn("A month's table was detached by hand and is needed again; it has another name now, its rows are kept and nobody reads them", "table", name, "name", to)
		}
		return err
	}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// monthsOf lists the months of a table that end at or before an instant, oldest first.
func (s *Store) monthsOf(ctx context.Context, table string, before job.Instant) ([]month, error) {
	var all []month
	err := s.read(ctx, "list months of "+table, func(r *link) error {
		all = nil
		if err := r.begin(); err != nil {
			return err
		}
		rows, err := r.conn.Query(r.ctx, `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
			WHERE i.inhparent = to_regclass($1)::oid ORDER BY c.relname`, table)
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, name := range names {
			of, ours := strings.CutPrefix(name, table+"_") // else somebody attached it by hand
			t, wrong := time.Parse("2006_01", of)
			if m := monthOf(job.InstantOf(t)); ours && wrong == nil && m.to <= int64(before) { // past and future are never dropped whole
				all = append(all, m)
			}
		}
		return err
	})
	return all, err
}

// dropMonth takes one month of a table away with all its rows, which nobody may need any more. It waits for transactions
// that read the table, and holds no lock that a commit wants meanwhile.
func (s *Store) dropMonth(ctx context.Context, table string, m month) error {
	op, name := "drop a month of "+table, table+"_"+m.name
	c, err := s.people.Acquire(ctx)
	if err != nil {
		return classify(op, err)
	}
	defer s.people.release(c)
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.people.patience)
	defer cancel()
	defer func() {
		if _, err := c.Exec(patience, `SELECT pg_advisory_unlock_all()`); err != nil {
			_ = c.Conn().Close(patience) // the locks go with the session
		}
	}()
	if _, err := c.Exec(patience, `SELECT pg_advisory_lock($1)`, int64(dropLock)); err != nil {
		return classify(op, err)
	}
	if _, err := c.Exec(patience, `SELECT pg_advisory_lock($1, $2)`, int32(monthClass), monthLock(name)); err != nil {
		return classify(op, err)
	}
	var state string
	if err := c.QueryRow(patience, monthState, name, table).Scan(&state); err != nil {
		return classify(op, err)
	}
	detach := map[string]string{"there": " CONCURRENTLY", "leaving": " FINALIZE"}
	if how, attached := detach[state]; attached {
		for _, text := range []string{`COMMENT ON TABLE ` + quote(name) + ` IS '` + goingMark + `'`,
			fmt.Sprintf(`ALTER TABLE %s DETACH PARTITION %s%s`, table, quote(name), how)} {
			if _, err := c.Exec(patience, text, pgx.QueryExecModeSimpleProtocol); err != nil {
				return classify(op, err)
			}
		}
	}
	s.months.note(name, false)
	if state == "none" || state == "detached" {
		return nil
	}
	if _, err := c.Exec(patience, `DROP TABLE `+quote(name), pgx.QueryExecModeSimpleProtocol); err != nil {
		return classify(op, err)
	}
	return nil
}
