package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// A request that meets a connection which broke just before is made over the next one, with a key and without: of one
// without a key that ends unknown nobody can find out what became of it.
func TestTriggersOverBrokenConnections(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	dsn := c.Database(t)
	p := newProxy(t, c.HostPort())
	s, direct := openAt(t, postgres.Config{DSN: through(p, dsn, c), Partitions: 1}), openAt(t, postgres.Config{DSN: dsn})
	putOne(t, direct)
	verdicts := map[bool]map[string]int{true: {}, false: {}}
	for n := range 60 {
		one := store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{1, byte(n)})}
		keyed := n%2 == 0
		if keyed {
			one.Key = store.RequestKey{Namespace: "ns", Operation: "o", Key: fmt.Sprint(n), Hash: "h"}
		}
		if _, err := s.Trigger(t.Context(), store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{2, byte(n)})}, toFirst); err != nil {
			t.Fatal(err)
		}
		p.cut()
		kind := "ok"
		if _, err := s.Trigger(t.Context(), one, toFirst); err != nil {
			kind = string(job.KindOf(err))
		}
		verdicts[keyed][kind]++
	}
	if verdicts[true]["ok"] < 30 || verdicts[false]["ok"] < verdicts[true]["ok"]*9/10 {
		t.Errorf("with keys: %v, without: %v", verdicts[true], verdicts[false])
	}
}

// A read that meets a connection which broke just before is made over the next one.
func TestReadsOverBrokenConnections(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	p := newProxy(t, c.HostPort())
	s := openAt(t, postgres.Config{DSN: through(p, c.Database(t), c), Partitions: 1, OwnerTTL: time.Minute})
	reads := map[string]func(ctx context.Context) error{
		"a list": func(ctx context.Context) error { _, _, err := s.Jobs(ctx, "ns", store.Page{}); return err },
		"a backlog": func(ctx context.Context) error {
			_, err := s.BacklogPage(ctx, 0, engine.WantBacklog{Limit: 10})
			return err
		},
		"an inbox": func(ctx context.Context) error { _, err := s.InboxPage(ctx, 0, 10); return err },
		"a load":   func(ctx context.Context) error { _, err := s.LoadPartition(ctx, 0); return err },
		"a look":   func(ctx context.Context) error { _, err := s.PartitionRows(ctx); return err },
		"what is due": func(ctx context.Context) error {
			_, err := s.DuePage(ctx, 0, engine.WantDue{Until: noon, Limit: 10})
			return err
		},
		"the lineage":  func(ctx context.Context) error { _, err := s.Lineage(ctx); return err },
		"a namespace":  func(ctx context.Context) error { _, err := s.Retention(ctx, "ns"); return err },
		"what is live": func(ctx context.Context) error { _, err := s.Counts(ctx); return err },
	}
	for what, read := range reads {
		for range 10 {
			if err := read(t.Context()); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			p.cut()
		}
	}
}
