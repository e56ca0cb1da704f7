package postgres

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Mutants switch one part of the adapter off each.
var Mutants = map[string]func(*Store){
	"no fence check":         func(s *Store) { s.mutate = lax(guardFence) },
	"no state guard":         func(s *Store) { s.mutate = lax(guardExecution, guardShard) },
	"no planner guard":       func(s *Store) { s.mutate = lax(guardPlanner) },
	"half a set is written":  func(s *Store) { s.skip.wholeSet = true },
	"old servers are let in": func(s *Store) { s.skip.floor = true },
	"inbox entry not deleted": func(s *Store) {
		s.mutate = func(q query, text string) string {
			if q != qConsume {
				return text
			}
			return strings.NewReplacer("DELETE FROM", "SELECT id FROM", "RETURNING id", "").Replace(text)
		}
	},
}

func init() { maps.Copy(Mutants, lotMutants) }

// lax lets every row pass the guards of some codes.
func lax(codes ...string) func(query, string) string {
	return func(_ query, text string) string {
		for _, code := range codes {
			text = strings.Replace(text, "takt_guard(ok, '"+code, "takt_guard(true, '"+code, 1)
		}
		return text
	}
}

// PrepareAll prepares every statement of the package.
func PrepareAll(ctx context.Context, s *Store) error {
	return s.read(ctx, "prepare", func(l *link) error {
		var errs []error
		for _, text := range texts {
			if _, err := l.conn.Prepare(ctx, "", text); err != nil {
				errs = append(errs, job.Errorf(job.KindInternal, "", "%s", text).WithCause(err))
				if _, err := l.conn.Exec(ctx, `ROLLBACK`); err != nil {
					return err
				}
			}
		}
		return errors.Join(errs...)
	})
}

// Unfit is the refusal of a database that says so of itself.
func Unfit(version int, shown, encoding string) error {
	return about{version: version, shown: shown, encoding: encoding}.unfit()
}

// CommitSetting reads a setting of a connection of commits.
func CommitSetting(ctx context.Context, s *Store, name string) (value string, err error) {
	err = s.commits.QueryRow(ctx, `SELECT current_setting($1)`, name).Scan(&value)
	return value, err
}

// Bound bounds all transactions.
func Bound(s *Store, patience time.Duration) {
	for _, p := range s.pools() {
		p.patience, p.writes = patience, patience
	}
}

// Hasty bounds the begin of all transactions.
func Hasty(s *Store, begins time.Duration) {
	for _, p := range s.pools() {
		p.begins = begins
	}
}

// LongestPing is how long a connection that was idle may take to say that it lives.
func LongestPing(s *Store) (most time.Duration) {
	for _, p := range s.pools() {
		most = max(most, p.ping)
	}
	return most
}

// HoldEngines takes all connections of loads and pages.
func HoldEngines(t *testing.T, s *Store) (release func()) {
	t.Helper()
	var held []*pgxpool.Conn
	for range s.engines.Config().MaxConns {
		c, err := s.engines.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	return func() {
		for _, c := range held {
			c.Release()
		}
	}
}

// AmidInbox does something between the two ways that a page of the inbox takes.
func AmidInbox(s *Store, read, what func()) {
	before := s.engines.Stat().AcquireCount()
	s.singles.mu.Lock() // where a page stops that has its entries
	var reader sync.WaitGroup
	reader.Go(read)
	for st := s.engines.Stat(); st.AcquireCount() == before || st.AcquiredConns() > 0; st = s.engines.Stat() {
		time.Sleep(time.Millisecond)
	}
	what()
	s.singles.mu.Unlock()
	reader.Wait()
}

// ReadAfter does something in the midst of a read of an engine.
func ReadAfter(ctx context.Context, s *Store, what func()) error {
	return s.read(ctx, "read", func(l *link) error {
		what()
		_, err := seqOf(l, 0)
		return err
	})
}

// Vacuum vacuums as the upkeep does.
func Vacuum(ctx context.Context, s *Store) { s.vacuum(ctx) }

// CheckHearing makes a listener ask after so much silence whether its connection lives.
func CheckHearing(s *Store, after time.Duration) { s.hearCheck = after }

// Evict is what a successor does after it has waited in vain.
func Evict(ctx context.Context, s *Store, seen store.PartitionRow) error { return s.evict(ctx, seen) }

// AwaitRenewals waits until one transaction of renewals is on its way, and so many wait for it.
func AwaitRenewals(s *Store, waiting int) {
	for {
		s.renewals.mu.Lock()
		there := s.renewals.workers == 1 && len(s.renewals.waiting) == waiting
		s.renewals.mu.Unlock()
		if there {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TakeCommits takes all connections of commits, and gives them back.
func TakeCommits(t *testing.T, s *Store) {
	t.Helper()
	var held []*pgxpool.Conn
	for range s.commits.Config().MaxConns {
		c, err := s.commits.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	for _, c := range held {
		c.Release()
	}
}

// CommitConns is how many places of the pool of commits are taken.
func CommitConns(s *Store) int { return int(s.commits.Stat().TotalConns()) }

// Idle makes every connection of commits count as one that was idle, or none.
func Idle(s *Store, all bool) {
	if s.commits.idle = time.Hour; all {
		s.commits.idle = -1
	}
}

// LoseRenewal lets the first renewal lose a race after it has told of its beats, and the partition be somebody else's when it is tried again.
func LoseRenewal(ctx context.Context, s *Store) error {
	if _, err := s.people.Exec(ctx, `CREATE SEQUENCE lost`); err != nil {
		return err
	}
	s.mutate = func(q query, text string) string {
		if q != qRenew {
			return text
		}
		return `WITH n AS MATERIALIZED (SELECT nextval('lost') AS n), u AS (SELECT * FROM unnest($1::integer[], $2::text[], $3::bigint[]) u (id, owner, epoch))
			SELECT u.id, u.owner, u.epoch, 7::bigint FROM u, n WHERE n.n = 1
			UNION ALL SELECT 0, '', 0, 0 FROM n WHERE n.n = 1 AND takt_guard(false, '` + codeDeadlock + `', '') IS NULL`
	}
	return nil
}
