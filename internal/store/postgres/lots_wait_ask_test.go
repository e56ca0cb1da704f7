package postgres_test

import (
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// TestLotsWaitAsked: who asks for the cancel of one that waits in a lot is heard by its owner.
func TestLotsWaitAsked(t *testing.T) {
	t.Parallel()
	s := openAt(t, postgres.Config{DSN: pgtest.Start(t).Database(t), Partitions: 1})
	f := owner(t, s)
	b := queues(f, 20, 1)
	if err := s.Commit(t.Context(), f, b); err != nil {
		t.Fatal(err)
	}
	x := b.Executions[7].Row
	if _, err := s.Ask(t.Context(), store.Ask{Kind: engine.EntryCancel, Namespace: x.Namespace, Execution: x.ID, At: noon}); err != nil {
		t.Fatal(err)
	}
	page, err := s.InboxPage(t.Context(), 0, 10)
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Execution != x.ID {
		t.Fatalf("%+v, %v", page.Entries, err)
	}
	_, err = s.Ask(t.Context(), store.Ask{Kind: engine.EntryCancel, Namespace: x.Namespace, Execution: job.ExecutionID{9}, At: noon})
	wantKind(t, "one that is not there", err, job.KindNotFound, "execution_not_found")
}
