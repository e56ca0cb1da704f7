package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// TestLateSuccessor: somebody who waited for the owner before the one that is there now does not end that one's commit.
func TestLateSuccessor(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).Database(t)
	s := openAt(t, postgres.Config{DSN: dsn, Partitions: 1, OwnerTTL: 4 * time.Second})
	owner(t, s)
	seen, err := s.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AcquirePartition(t.Context(), seen[0], "the new owner", 2, engine.Level); err != nil {
		t.Fatal(err)
	}
	slow, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Close(context.Background()) }()
	commit := slow.StartPipeline(t.Context())
	commit.SendQueryParams(`UPDATE partitions SET seq = seq + 1 WHERE id = 0`, nil, nil, nil, nil)
	commit.SendFlushRequest()
	if err := commit.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := commit.GetResults(); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Evict(t.Context(), s, seen[0]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(commit.Sync(), commit.Close()); err != nil {
		t.Errorf("the commit of the new owner: %v", err)
	}
	if rows, err := s.PartitionRows(t.Context()); err != nil || rows[0].Owner != "the new owner" || rows[0].Seq != seen[0].Seq+1 {
		t.Errorf("%+v, %v", rows, err)
	}
}

// TestMonthWhileAnotherIsDropped: a drop waits for readers; who makes another month does not wait for it.
func TestMonthWhileAnotherIsDropped(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	dsn := c.Database(t)
	s := openAt(t, postgres.Config{DSN: dsn, Partitions: 1})
	postgres.MakeAhead(t.Context(), s, instant(2026, 3, 1))
	reader, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close(context.Background()) }()
	if _, err := reader.Exec(t.Context(), `BEGIN; SELECT count(*) FROM journal`); err != nil {
		t.Fatal(err)
	}
	dropped := make(chan error, 1)
	go func() {
		_, err := postgres.DropMonthsBefore(context.Background(), s, "journal", instant(2026, 4, 1))
		dropped <- err
	}()
	for n := int64(0); n == 0; { // until it waits
		if n, err = c.ExecIn(pgtest.Name(dsn), `SELECT 1 FROM pg_inherits WHERE inhdetachpending`); err != nil {
			t.Fatal(err)
		}
	}
	postgres.MakeAhead(t.Context(), s, instant(2030, 1, 1))
	if n, err := c.ExecIn(pgtest.Name(dsn), `SELECT 1 WHERE to_regclass('journal_2030_01') IS NOT NULL`); err != nil || n != 1 {
		t.Errorf("the other month was not made: %v", err)
	}
	select {
	case err := <-dropped:
		t.Errorf("the drop did not wait for the reader: %v", err)
	default:
	}
	if err := reader.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-dropped; err != nil {
		t.Errorf("the drop: %v", err)
	}
}

// TestPartitionOfSomebody: what a person attached by hand is no month of ours, and breaks nothing.
func TestPartitionOfSomebody(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	dsn := c.Database(t)
	s := openAt(t, postgres.Config{DSN: dsn, Partitions: 1})
	if _, err := c.ExecIn(pgtest.Name(dsn), `CREATE TABLE x PARTITION OF journal FOR VALUES FROM (5) TO (6)`); err != nil {
		t.Fatal(err)
	}
	postgres.MakeAhead(t.Context(), s, instant(2026, 3, 1))
	if names, err := postgres.DropMonthsBefore(t.Context(), s, "journal", instant(2026, 4, 1)); err != nil || len(names) != 1 {
		t.Errorf("dropped %v, %v", names, err)
	}
}

// warned passes on that a warning was logged.
type warned struct {
	slog.Handler
	text chan string
}

// Enabled, of a handler that discards, would be never.
func (w warned) Enabled(context.Context, slog.Level) bool { return true }

// Handle keeps the first.
func (w warned) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		select {
		case w.text <- r.Message:
		default:
		}
	}
	return nil
}

// TestHearIntoSilence: a listener whose database is gone without a word finds out.
func TestHearIntoSilence(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	p := newProxy(t, c.HostPort())
	dsn := c.Database(t)
	log := warned{slog.DiscardHandler, make(chan string, 1)}
	s, direct := openAt(t, postgres.Config{DSN: through(p, dsn, c), Partitions: 1, Log: slog.New(log)}), openAt(t, postgres.Config{DSN: dsn})
	postgres.CheckHearing(s, 50*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	heard, done := make(chan int, 100), make(chan error, 1)
	go func() { done <- s.Hear(ctx, func(p int) { heard <- p }) }()
	say := func() {
		t.Helper()
		for {
			if err := direct.Hint(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
			select {
			case <-heard:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	say()
	for range 3 { // some questions are answered meanwhile, and break nothing
		select {
		case <-heard:
		case <-time.After(100 * time.Millisecond):
		}
	}
	say()
	p.hold()
	<-log.text
	p.cut()
	say()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
