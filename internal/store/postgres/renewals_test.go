package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// Renewals that come while one is on its way go together, each with its own answer.
func TestRenewalsGoTogether(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	dsn := c.Database(t)
	s := openAt(t, postgres.Config{DSN: dsn, Partitions: 32, OwnerTTL: time.Minute})
	rows, err := s.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fences := make([]store.Fence, len(rows))
	for i := range rows {
		row, err := s.AcquirePartition(t.Context(), rows[i], "me", 1, engine.Level)
		if err != nil {
			t.Fatal(err)
		}
		fences[i] = row.Fence
	}
	fences[7].Epoch-- // one that is no owner any more
	free := holdBeat(t, dsn, 0)
	errs := make([]error, len(fences))
	var wg sync.WaitGroup
	renew := func(i int) {
		wg.Go(func() {
			beat, err := s.RenewPartition(t.Context(), fences[i])
			if errs[i] = err; err == nil && beat != 1 {
				errs[i] = fmt.Errorf("beat %d", beat)
			}
		})
	}
	renew(0)
	postgres.AwaitRenewals(s, 0) // it is on its way, and waits for the row
	for i := 1; i < len(fences); i++ {
		renew(i)
	}
	postgres.AwaitRenewals(s, len(fences)-1)
	free()
	wg.Wait()
	for i, err := range errs {
		if i == 7 {
			wantKind(t, "renewal by one who is no owner", err, job.KindFenced, "fence")
		} else if err != nil {
			t.Errorf("partition %d: %v", i, err)
		}
	}
	if n, err := c.ExecIn(pgtest.Name(dsn), `SELECT DISTINCT xmin::text FROM partition_beats WHERE id <> 7`); err != nil || n != 2 {
		t.Errorf("%d transactions, %v", n, err)
	}
}

// A renewal that lost a race is tried again, and what it says is of the last try: who was told that it holds what another one took
// meanwhile would go on answering workers (R8).
func TestRenewalThatLostARace(t *testing.T) {
	t.Parallel()
	s := openAt(t, postgres.Config{DSN: pgtest.Start(t).Database(t), Partitions: 1})
	f := owner(t, s)
	if err := postgres.LoseRenewal(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	beat, err := s.RenewPartition(t.Context(), f)
	if err == nil {
		t.Errorf("renewed, with beat %d", beat)
	}
	wantKind(t, "a renewal of what somebody else has by now", err, job.KindFenced, "fence")
}

// holdBeat keeps the row that a renewal writes from everybody else.
func holdBeat(t *testing.T, dsn string, partition int) (free func()) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := c.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `SELECT FROM partition_beats WHERE id = $1 FOR UPDATE`, partition)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}
