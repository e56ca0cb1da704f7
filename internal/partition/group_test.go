package partition_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// holder is a session that holds every shard of one execution, on a real engine over a real database.
type holder struct {
	t       *testing.T
	node    *partition.Node
	session job.SessionID
	mu      sync.Mutex
	number  int64
	granted []engine.Assignment
}

func (h *holder) call() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.number++
	return h.number
}

// newHolder triggers a job of n shards and takes all of them.
func newHolder(ctx context.Context, t *testing.T, st store.Store, node *partition.Node, n int) *holder {
	t.Helper()
	at := job.Instant(946_684_800_000)
	def := job.Definition{UID: job.UID{1}, Namespace: "default", Name: "many", Spec: job.Spec{Pool: "p", Handler: "h", Shards: n}}
	_, w, err := st.PutJob(ctx, store.PutJob{Definition: def, At: at})
	if err != nil {
		t.Fatal(err)
	}
	node.Wake(0)
	tr, err := st.Trigger(ctx, store.Trigger{Namespace: "default", Job: "many", Execution: job.RequestedID(at, [10]byte{7}), Request: engine.Request{At: at}},
		func(job.Definition) int { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	node.Wake(0)
	if !node.AwaitEntry(ctx, 0, w.Entry) || !node.AwaitEntry(ctx, 0, tr.Entry) {
		t.Fatal("the owner did not take the job or its trigger in")
	}
	h := &holder{t: t, node: node, session: job.SessionIDOf(0, "default", "p", "w", "1")}
	ses := job.Session{ID: h.session, Namespace: "default", Pool: "p", Worker: "w", Incarnation: "1", Handlers: []string{"h"}, Slots: n}
	if _, err := node.Call(ctx, 0, 0, engine.SessionOpen{Session: ses, Call: h.call()}); err != nil {
		t.Fatal(err)
	}
	var held []job.Token
	for number := int64(1); len(h.granted) < n; number++ {
		reply, err := node.Call(ctx, 0, 0, engine.Poll{Session: h.session, Call: h.call(), Number: number, Free: n, Held: held})
		if err != nil {
			t.Fatal(err)
		}
		got := reply.Value.(*engine.Polled).Assignments
		if len(got) == 0 {
			t.Fatalf("a poll gave nothing after %d of %d shards", len(h.granted), n)
		}
		for _, a := range got {
			h.granted, held = append(h.granted, a), append(held, a.Token)
		}
	}
	return h
}

// checkpoint reports the k-th checkpoint of an assignment.
func (h *holder) checkpoint(ctx context.Context, a *engine.Assignment, k int) {
	reply, err := h.node.Call(ctx, 0, 0, engine.Report{Session: h.session, Call: h.call(), Items: []engine.ReportItem{{
		Execution: a.Execution.ID, Shard: a.Shard, Token: a.Token, Seq: int64(k), Kind: engine.ItemCheckpoint,
		Checkpoint: json.RawMessage(fmt.Sprintf(`{"k":%d}`, k)),
	}}})
	if err != nil {
		h.t.Errorf("shard %d, checkpoint %d: %v", a.Shard, k, err)
		return
	}
	if got := reply.Value.(*engine.Reported).Items; len(got) != 1 || got[0] != engine.ItemAccepted {
		h.t.Errorf("shard %d, checkpoint %d: %v", a.Shard, k, got)
	}
}

// 1,000 reports by 100 callers, each waiting for its answer before the next, end in at most 50 commits.
// The commits are real; only the short waits for company run in virtual time, so that the count does not
// depend on the machine.
func TestGroupCommit(t *testing.T) {
	const callers, each, most = 100, 10, 50
	path := filepath.Join(t.TempDir(), "takt.db")
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		node, err := partition.NewNode(t.Context(), partition.Config{Store: st, Incarnation: "one", Sole: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		var running, calling sync.WaitGroup
		running.Go(func() {
			if err := node.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		h := newHolder(ctx, t, st, node, callers)
		before := node.Stats()[0].Commits
		for i := range callers {
			calling.Go(func() {
				for k := range each {
					h.checkpoint(ctx, &h.granted[i], k+1)
				}
			})
		}
		calling.Wait()
		after := node.Stats()[0]
		commits := after.Commits - before
		t.Logf("%d reports in %d commits", callers*each, commits)
		if commits > most || commits < each {
			t.Errorf("%d reports by %d callers took %d commits, want %d … %d", callers*each, callers, commits, each, most)
		}
		if after.Engines != 1 || after.CommitErr != 0 {
			t.Errorf("stats %+v", after)
		}
		stop()
		running.Wait()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}
