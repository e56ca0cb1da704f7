package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

//go:embed migrations/*.sql
var embedded embed.FS

// versionTable is ours alone: the database may be shared with a program that uses goose under its usual name.
const versionTable = "takt_version"

// oldest is the first version that can detach a month without stopping commits.
const oldest = 140000

// Config says which database to open and how.
type Config struct {
	DSN        string        // "postgres://user@host,host2/takt?target_session_attrs=read-write" or key=value pairs
	Partitions int           // used when the tables are made: 1..4096, 0 means 32; an existing database keeps its number
	OwnerTTL   time.Duration // P: how long an owner holds a partition without renewing; 0 means 5 s. No commit and no renewal takes longer than half of it
	Name       string        // application_name, for people who look into pg_stat_activity; "" means takt
	Commits    int           // connections for commits; 0 means 3 (more make commits slower)
	Engines    int           // connections for what engines read; 0 means 4
	People     int           // connections for people's writes, and for logs; 0 means 8
	Lists      int           // connections for people's reads; 0 means 4
	Log        *slog.Logger  // nil: nowhere
	NoMigrate  bool          // refuse tables that are not up to date, instead of changing them
}

// takers is one more than a server that froze can block with the commits that it had half sent.
const takers = 4

// Store is the adapter. All methods may be called by many goroutines.
type Store struct {
	commits   *pool // guarded plans, short time-outs (R2)
	keeper    *pool // beats and looks: never wait behind anything else (R8)
	takers    *pool // changes of ownership, which wait for commits in flight
	engines   *pool
	people    *pool
	lists     *pool // people's reads: as many as they are, no write of people's waits for them
	dsn       *pgxpool.Config
	months    months
	care      care
	hints     hints
	renewals  renewals
	singles   singles
	knownJobs knownJobs
	lots      lots
	// hearCheck is that of the same name, but in tests.
	hearCheck time.Duration
	name      string
	log       *slog.Logger
	walk      int // rows that a list looks at for one page, see walkRows
	swept     sweptUpTo
	skip      mutant
	mutate    func(q query, text string) string // nil in production
	closing   sync.Once
}

// mutant switches a part of the adapter off, so that a test can show that the exam sees it. All false
// in production. What is a statement's alone is mutated there (mutate).
type mutant struct{ wholeSet, floor bool }

// Open connects and brings the tables up to date. It refuses, saying why, a server before version 14, a standby, a
// database that is not in UTF-8 or not Takt's, and one that a binary more than one version newer has changed.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Partitions < 0 || c.Partitions > 4096 {
		return nil, job.Errorf(job.KindInvalid, "bad_partitions", "%d partitions: 1 to 4096 are possible", c.Partitions)
	}
	parsed, err := parse(c.DSN)
	if err != nil {
		return nil, err
	}
	defaults(&c)
	s := &Store{dsn: parsed, walk: walkRows, lots: lots{least: store.Worthwhile, most: lotsMost, wait: lotsWait}, hearCheck: hearCheck, name: c.Name, log: c.Log}
	if err := s.open(ctx, c); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func defaults(c *Config) {
	for _, d := range []struct {
		v    *int
		when int
	}{{&c.Partitions, 32}, {&c.Commits, 3}, {&c.Engines, 4}, {&c.People, 8}, {&c.Lists, 4}} {
		if *d.v < 1 {
			*d.v = d.when
		}
	}
	if c.OwnerTTL <= 0 {
		c.OwnerTTL = 5 * time.Second
	}
	if c.Name == "" {
		c.Name = "takt"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// hot are the settings under which every statement of a commit and every page of an engine is by key or by its index,
// whatever the planner thinks of a table that was empty when it last looked.
var hot = map[string]string{"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_bitmapscan": "off",
	"plan_cache_mode": "force_generic_plan", "jit": "off"}

// reading are the settings of the pages of engines: hot, and each transaction is one snapshot. (Read-only by default it must not be:
// such a connection looks like one to a standby, and target_session_attrs=read-write refuses it.)
var reading = func() map[string]string {
	with := maps.Clone(hot)
	with["default_transaction_isolation"] = "repeatable read"
	return with
}()

// listing are the settings of lists: hot, and what an index does not give in order is not sorted, see orderedBy.
var listing = map[string]string{"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_bitmapscan": "off",
	"enable_sort": "off", "enable_incremental_sort": "off", "plan_cache_mode": "force_generic_plan", "jit": "off"}

func (s *Store) open(ctx context.Context, c Config) error {
	half, long, short := c.OwnerTTL/2, 30*time.Second, 5*time.Second
	for _, p := range []struct {
		to       **pool
		name     string
		size     int
		limit    time.Duration
		settings map[string]string
	}{
		{&s.commits, "commits", c.Commits, half, hot},
		{&s.keeper, "keeper", 2, half, map[string]string{"jit": "off"}},
		{&s.takers, "takers", takers, half, map[string]string{"jit": "off"}},
		{&s.engines, "engines", c.Engines, long, reading},
		{&s.people, "people", c.People, long, hot},
		{&s.lists, "lists", c.Lists, short, listing},
	} {
		var err error
		if *p.to, err = s.newPool(ctx, c.Name+" "+p.name, p.size, p.limit, p.settings); err != nil {
			return err
		}
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	if err := s.bringUp(ctx, c); err != nil {
		return err
	}
	if err := s.writeOn(ctx, s.keeper, "create partitions", func(w *link) error { return makePartitions(w, c.Partitions) }); err != nil {
		return err
	}
	s.care.start(s)
	return nil
}

// newPool makes connections on which no statement, no wait for a lock and no idle transaction lasts longer than limit.
// compressQuickly lets long texts, such as a commit's facts, be compressed by lz4 where the server is built with it: what
// PostgreSQL takes by itself is several times as much work.
const compressQuickly = `SELECT set_config(name, 'lz4', false) FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)`

func (s *Store) newPool(ctx context.Context, name string, size int, limit time.Duration, settings map[string]string) (*pool, error) {
	c := s.dsn.Copy()
	c.MaxConns = int32(min(size, 1000)) //nolint:gosec // bounded
	c.MinConns, c.MaxConnIdleTime = 0, time.Minute
	c.ShouldPing = noteIdle
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = min(limit, 5*time.Second)
	}
	p := c.ConnConfig.RuntimeParams
	maps.Copy(p, settings)
	milliseconds := inMilliseconds(limit)
	for _, setting := range []string{"statement_timeout", "idle_in_transaction_session_timeout", "tcp_user_timeout"} {
		p[setting] = milliseconds
	}
	p["lock_timeout"] = inMilliseconds(limit * 3 / 4) // before the statement's, so that it is told what it waited for
	p["application_name"], p["synchronous_commit"] = name, "on"
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		conn.TypeMap().RegisterTypes(arrayTypes(conn.TypeMap()))
		if _, err := conn.Exec(ctx, compressQuickly); err != nil || major(conn) < 17 {
			return err
		}
		// from 17 on the database itself ends a transaction whose sender stopped half-way; before, see AcquirePartition
		_, err := conn.Exec(ctx, `SELECT set_config('transaction_timeout', $1, false)`, milliseconds)
		return err
	}
	made, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, classify("open the database", err)
	}
	return &pool{Pool: made, limit: limit, patience: limit + limit/2, writes: min(limit+limit/2, writeMost), begins: beginMost, idle: idleMost, fresh: freshMost, ping: min(limit, beginMost)}, nil
}

func inMilliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func major(conn *pgx.Conn) int {
	n := 0
	for _, r := range conn.PgConn().ParameterStatus("server_version") {
		if r < '0' || r > '9' {
			break
		}
		n = n*10 + int(r-'0')
	}
	return n
}

// about is what a database says of itself.
type about struct {
	version         int    // 150004
	shown, encoding string // "15.4", "UTF8"
	readOnly        bool   // it is a standby, or sessions cannot write
	ours, others    bool   // there is Takt's version, there are tables with names like ours
}

// check refuses a database that Takt cannot work with, before anything is written.
func (s *Store) check(ctx context.Context) error {
	return s.snapshot(ctx, s.keeper, "open the database", func(r *link) error {
		if err := r.begin(); err != nil {
			return err
		}
		a, err := look(r.ctx, r.conn)
		if err != nil {
			return err
		}
		return a.unfit()
	})
}

// look asks a database about itself.
func look(ctx context.Context, conn interface {
	QueryRow(ctx context.Context, text string, args ...any) pgx.Row
}) (a about, err error) {
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_setting('server_encoding'),
			current_setting('default_transaction_read_only')::bool OR pg_is_in_recovery(), to_regclass('`+versionTable+`') IS NOT NULL,
			to_regclass('meta') IS NOT NULL OR to_regclass('partitions') IS NOT NULL OR to_regclass('jobs') IS NOT NULL`).
		Scan(&a.version, &a.shown, &a.encoding, &a.readOnly, &a.ours, &a.others)
	return a, err
}

func (a about) unfit() error {
	switch {
	case a.version < oldest:
		return job.Errorf(job.KindInvalid, "database_too_old", "the database is PostgreSQL %s; Takt needs 14 or later", a.shown).
			WithHint("upgrade PostgreSQL, or run one server on SQLite")
	case a.encoding != "UTF8":
		return job.Errorf(job.KindInvalid, "bad_encoding", "the database is encoded in %s; Takt needs UTF8", a.encoding).
			WithHint("make another one, and name it in the address: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0")
	case a.readOnly:
		t := troubles[codeReadOnly]
		return job.Errorf(job.KindUnavailable, t.code, "open the database: %s", t.text).WithHint("%s", t.hint)
	case !a.ours && a.others:
		return job.Errorf(job.KindInvalid, "not_a_takt_database", "there are tables of another program in the database where Takt's would stand").
			WithHint("give Takt a database, or a schema, of its own (search_path)")
	}
	return nil
}

// migrate applies what is missing of the migrations, one server at a time.
func (s *Store) migrate(ctx context.Context) (err error) {
	const op = "migrate the database"
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	db := stdlib.OpenDB(*s.dsn.ConnConfig.Copy())
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true),
		goose.WithTableName(versionTable), goose.WithSessionLocker(locker))
	if err != nil {
		return classify(op, err)
	}
	if _, err := p.Up(ctx); err != nil {
		return classify(op, err)
	}
	return nil
}

func (s *Store) pools() (all []*pool) {
	for _, p := range []*pool{s.commits, s.keeper, s.takers, s.engines, s.people, s.lists} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// Close waits for the transactions in flight and closes the connections. Calls after it are refused.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.care.stop()
		s.renewals.close()
		for _, p := range s.pools() {
			p.close()
		}
	})
	return nil
}

// Ping writes to the journal of the database, but to no row: nobody waits for it, and a standby or a full disk shows.
func (s *Store) Ping(ctx context.Context) error {
	return s.writeOn(ctx, s.people, "ping", func(w *link) error {
		var readOnly string
		if _, err := w.one(qReadOnly, nil, &readOnly); err != nil {
			return err
		}
		if readOnly == "on" {
			t := troubles[codeReadOnly]
			return job.Errorf(job.KindUnavailable, t.code, "ping: %s", t.text).WithHint("%s", t.hint)
		}
		_, err := w.exec(qPing)
		return err
	})
}

var (
	qReadOnly = statement(`SELECT current_setting('transaction_read_only')`)
	qPing     = statement(`SELECT pg_logical_emit_message(true, 'takt', 'ping')`)
)
