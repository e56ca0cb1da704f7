package partition_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a store of one partition in memory with the fence of the contract. Its hooks run outside of
// its lock.
type memory struct {
	mu      sync.Mutex
	row     store.PartitionRow
	batches []engine.Batch // committed, in order
	epochs  []job.Epoch    // of the batches
	inbox   []engine.Entry
	due     []engine.Due
	renewed int
	reads   int // of the inbox
	others  int // reads of what is queued or waits for its instant

	servers []store.Server
	floor   int

	onCommit func(ctx context.Context, n int, b *engine.Batch) error // before the commit; n counts attempts. An error with KindUnknown and errLands is applied all the same
	onRenew  func() error
	onRows   func() error
	onInbox  func(ctx context.Context)
	attempts int
}

var errLands = errors.New("it landed")

func (m *memory) PartitionRows(context.Context) ([]store.PartitionRow, error) {
	if m.onRows != nil {
		if err := m.onRows(); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return []store.PartitionRow{m.row}, nil
}

func fenced(code string) error { return job.Errorf(job.KindFenced, code, "not the owner") }

func (m *memory) AcquirePartition(_ context.Context, seen store.PartitionRow, owner string, clock int64, level int) (store.PartitionRow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.row.Owner != seen.Owner || m.row.Epoch != seen.Epoch || m.row.Beat != seen.Beat {
		return store.PartitionRow{}, fenced("acquire")
	}
	if level < m.floor {
		return store.PartitionRow{}, store.TooOld(level, m.floor)
	}
	m.row.Owner = owner
	m.row.Epoch = max(m.row.Epoch+1, job.Epoch(m.row.LastToken)+1, job.Epoch(clock))
	m.row.Beat++
	return m.row, nil
}

func (m *memory) RaiseFloor(_ context.Context, level int) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.floor = max(m.floor, level)
	return m.floor, nil
}

func (m *memory) RenewPartition(_ context.Context, f store.Fence) (int64, error) {
	if m.onRenew != nil {
		if err := m.onRenew(); err != nil {
			return 0, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.row.Owner != f.Owner || m.row.Epoch != f.Epoch {
		return 0, fenced("renew")
	}
	m.row.Beat++
	m.renewed++
	return m.row.Beat, nil
}

func (m *memory) SettlePartition(_ context.Context, f store.Fence, lineage string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.row.Owner != f.Owner || m.row.Epoch != f.Epoch {
		return fenced("settle")
	}
	m.row.Lineage = lineage
	return nil
}

func (m *memory) PutServer(_ context.Context, v store.Server) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, s := range m.servers {
		if s.Incarnation == v.Incarnation {
			v.Beat = s.Beat + 1
			m.servers[i] = v
			return v.Beat, nil
		}
	}
	v.Beat = 1
	m.servers = append(m.servers, v)
	slices.SortFunc(m.servers, func(a, b store.Server) int { return strings.Compare(a.Incarnation, b.Incarnation) })
	return 1, nil
}

func (m *memory) Servers(context.Context) ([]store.Server, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.servers), nil
}

func (m *memory) RemoveServer(_ context.Context, incarnation string, beat int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.servers = slices.DeleteFunc(m.servers, func(s store.Server) bool {
		return s.Incarnation == incarnation && (beat == 0 || s.Beat == beat)
	})
	return nil
}

func (m *memory) ReleasePartition(_ context.Context, f store.Fence) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.row.Owner == f.Owner && m.row.Epoch == f.Epoch {
		m.row.Owner = ""
	}
	return nil
}

func (m *memory) Commit(ctx context.Context, f store.Fence, b *engine.Batch) error {
	m.mu.Lock()
	m.attempts++
	n := m.attempts
	m.mu.Unlock()
	var failure error
	if m.onCommit != nil {
		if failure = m.onCommit(ctx, n, b); failure != nil && !errors.Is(failure, errLands) {
			return failure
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.row.Owner != f.Owner || m.row.Epoch != f.Epoch || m.row.Seq != b.Seq-1 {
		return fenced("commit")
	}
	m.row.Seq = b.Seq
	m.batches, m.epochs = append(m.batches, *b), append(m.epochs, f.Epoch)
	m.inbox = slices.DeleteFunc(m.inbox, func(e engine.Entry) bool { return slices.Contains(b.Consumed, e.ID) })
	return failure
}

func (m *memory) LoadPartition(context.Context, int) (engine.Loaded, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return engine.Loaded{Seq: m.row.Seq, LastToken: m.row.LastToken}, nil
}

func (m *memory) InboxPage(ctx context.Context, _, limit int) (engine.InboxPage, error) {
	if m.onInbox != nil {
		m.onInbox(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	return engine.InboxPage{Seq: m.row.Seq, Entries: slices.Clone(m.inbox[:min(limit, len(m.inbox))]), Partial: limit < len(m.inbox)}, nil
}

func (m *memory) DuePage(context.Context, int, engine.WantDue) (engine.DuePage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return engine.DuePage{Seq: m.row.Seq, Items: slices.Clone(m.due)}, nil
}

func (m *memory) BacklogPage(context.Context, int, engine.WantBacklog) (engine.BacklogPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.others++
	return engine.BacklogPage{}, nil
}

func (m *memory) ScheduledPage(context.Context, int, engine.WantScheduled) (engine.ScheduledPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.others++
	return engine.ScheduledPage{}, nil
}

func (m *memory) ExecutionPage(context.Context, int, []job.ExecutionID) (engine.ExecutionPage, error) {
	return engine.ExecutionPage{}, nil
}

func (m *memory) ShardPage(context.Context, int, []engine.ShardRef) (engine.ShardPage, error) {
	return engine.ShardPage{}, nil
}

func (m *memory) UpstreamPage(context.Context, int, []engine.UpstreamAsk) (engine.UpstreamPage, error) {
	return engine.UpstreamPage{}, nil
}

func (m *memory) AwaitingPage(context.Context, int, engine.WantAwaiting) (engine.AwaitingPage, error) {
	return engine.AwaitingPage{}, nil
}

func (m *memory) EntryPending(_ context.Context, entry int64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.inbox, func(e engine.Entry) bool { return e.ID == entry }), nil
}

func (m *memory) put(id int64, kind engine.EntryKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inbox = append(m.inbox, engine.Entry{ID: id, Kind: kind})
}

func (m *memory) commits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.batches)
}

func (m *memory) renewals() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.renewed
}

func (m *memory) looks() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads
}

func (m *memory) tried() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.attempts
}

func (m *memory) state() store.PartitionRow {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row
}

// rig is a node over a memory with scripted cores.
type rig struct {
	t     *testing.T
	store *memory
	node  *partition.Node
	steps []seen // touched by the runner; read when the bubble is idle
	gone  []engine.ReplyID
	hang  chan struct{}
	stop  context.CancelFunc
	done  chan error
}

// newRig makes and starts a node. Call it inside a bubble, where the node is up when it returns.
func newRig(t *testing.T, st *memory, change func(*partition.Config)) *rig {
	t.Helper()
	return newRigOf(t, st, change, func(c *scripted) partition.Core { return c })
}

// newRigOf is newRig with other cores around the scripted ones.
func newRigOf(t *testing.T, st *memory, change func(*partition.Config), around func(*scripted) partition.Core) *rig {
	t.Helper()
	r := &rig{t: t, store: st, done: make(chan error, 1), hang: make(chan struct{})}
	cfg := partition.Config{Store: st, Server: "one", Incarnation: "one-1", Sole: true}
	if change != nil {
		change(&cfg)
	}
	partition.WithCore(&cfg, func(ec engine.Config) partition.Core {
		return around(&scripted{cfg: ec, seen: &r.steps, gone: &r.gone, hang: r.hang, eaten: map[int64]bool{}})
	})
	node, err := partition.NewNode(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.node = node
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.done <- node.Run(ctx) }()
	t.Cleanup(stop)
	return r
}

// end stops the node and waits for it.
func (r *rig) end() {
	r.t.Helper()
	r.stop()
	if err := <-r.done; err != nil {
		r.t.Errorf("Run: %v", err)
	}
}

// result is what a call brought.
type result struct {
	reply partition.Reply
	err   error
	at    time.Time
}

// call starts a call; its result comes later.
func (r *rig) call(ctx context.Context, ev engine.Event) <-chan result {
	ch := make(chan result, 1)
	go func() {
		reply, err := r.node.Call(ctx, 0, 0, ev)
		ch <- result{reply, err, time.Now()}
	}()
	return ch
}

func (r *rig) report(s job.SessionID) <-chan result {
	return r.call(context.Background(), engine.Report{Session: s})
}

// now takes a result that must be there.
func now(t *testing.T, ch <-chan result) result {
	t.Helper()
	select {
	case res := <-ch:
		return res
	default:
		t.Fatal("no answer yet")
		return result{}
	}
}

// pending fails when a call was answered.
func pending(t *testing.T, what string, ch <-chan result) {
	t.Helper()
	select {
	case res := <-ch:
		t.Fatalf("%s was answered too early: %+v, %v", what, res.reply.Value, res.err)
	default:
	}
}

// wantKind fails unless the error is of the kind and, when given, the code.
func wantKind(t *testing.T, res result, kind job.Kind, code string) {
	t.Helper()
	if job.KindOf(res.err) != kind {
		t.Fatalf("got %+v, %v; want an error of kind %s", res.reply.Value, res.err, kind)
	}
	if e, ok := errors.AsType[*job.Error](res.err); code != "" && (!ok || e.Code != code) {
		t.Fatalf("got %v, want code %s", res.err, code)
	}
}
