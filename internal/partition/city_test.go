package partition_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// city is several nodes with their memberships on one database, in a bubble.
type city struct {
	t     *testing.T
	st    *sqlite.Store
	parts int
	hints *board // nil: the store gives none

	mu      sync.Mutex
	deaf    map[string]bool // servers that nobody reaches
	cut     map[[2]string]bool
	lineage string
	nodes   map[string]*citizen
	ends    []func() // of what watches
}

// citizen is one life of a server.
type citizen struct {
	name string
	node *partition.Node
	door *door
	stop context.CancelFunc
	done chan error
}

// door is a server's way to the database.
type door struct {
	*sqlite.Store
	c       *city
	mu      sync.Mutex
	silent  bool
	shut    bool // nothing can be acquired
	unasked bool // its level is not told to the database
}

func (d *door) setSilent(v bool) { d.mu.Lock(); defer d.mu.Unlock(); d.silent = v }

func (d *door) setShut(v bool) { d.mu.Lock(); defer d.mu.Unlock(); d.shut = v }

func (d *door) setUnasked(v bool) { d.mu.Lock(); defer d.mu.Unlock(); d.unasked = v }

// pass hangs while the database does not answer.
func (d *door) pass(ctx context.Context) error {
	d.mu.Lock()
	silent := d.silent
	d.mu.Unlock()
	if !silent {
		return nil
	}
	<-ctx.Done()
	return job.Errorf(job.KindUnavailable, "silent", "the database does not answer")
}

func (d *door) PartitionRows(ctx context.Context) ([]store.PartitionRow, error) {
	if err := d.pass(ctx); err != nil {
		return nil, err
	}
	return d.Store.PartitionRows(ctx)
}

func (d *door) AcquirePartition(ctx context.Context, seen store.PartitionRow, owner string, clock int64, level int) (store.PartitionRow, error) {
	if err := d.pass(ctx); err != nil {
		return seen, err
	}
	d.mu.Lock()
	shut := d.shut
	if d.unasked {
		level = engine.Level
	}
	d.mu.Unlock()
	if shut {
		return seen, job.Errorf(job.KindUnavailable, "shut", "the database lets nothing be acquired")
	}
	return d.Store.AcquirePartition(ctx, seen, owner, clock, level)
}

func (d *door) RaiseFloor(ctx context.Context, level int) (int, error) {
	if err := d.pass(ctx); err != nil {
		return 0, err
	}
	return d.Store.RaiseFloor(ctx, level)
}

func (d *door) RenewPartition(ctx context.Context, f store.Fence) (int64, error) {
	if err := d.pass(ctx); err != nil {
		return 0, err
	}
	return d.Store.RenewPartition(ctx, f)
}

func (d *door) ReleasePartition(ctx context.Context, f store.Fence) error {
	if err := d.pass(ctx); err != nil {
		return err
	}
	return d.Store.ReleasePartition(ctx, f)
}

func (d *door) Commit(ctx context.Context, f store.Fence, b *engine.Batch) error {
	if err := d.pass(ctx); err != nil {
		return err
	}
	return d.Store.Commit(ctx, f, b)
}

func (d *door) PutServer(ctx context.Context, s store.Server) (int64, error) {
	if err := d.pass(ctx); err != nil {
		return 0, err
	}
	return d.Store.PutServer(ctx, s)
}

func (d *door) Servers(ctx context.Context) ([]store.Server, error) {
	if err := d.pass(ctx); err != nil {
		return nil, err
	}
	return d.Store.Servers(ctx)
}

func (d *door) RemoveServer(ctx context.Context, incarnation string, beat int64) error {
	if err := d.pass(ctx); err != nil {
		return err
	}
	return d.Store.RemoveServer(ctx, incarnation, beat)
}

func (d *door) Lineage(ctx context.Context) (string, error) {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	if d.c.lineage != "" {
		return d.c.lineage, nil
	}
	return d.Store.Lineage(ctx)
}

// inCity plays a scenario in a bubble on a database of so many partitions.
func inCity(t *testing.T, parts int, play func(c *city)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "takt.db"), Partitions: parts, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		c := &city{t: t, st: st, parts: parts, deaf: map[string]bool{}, cut: map[[2]string]bool{}, nodes: map[string]*citizen{}}
		defer func() {
			for _, end := range c.ends {
				end()
			}
			for _, n := range c.all() {
				n.door.setSilent(false)
				c.leave(n)
			}
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}()
		play(c)
	})
}

// join starts a server. Its incarnation is its name and the number of its life.
func (c *city) join(name string, life int, change func(*partition.Config)) *citizen {
	c.t.Helper()
	d := &door{Store: c.st, c: c}
	var st partition.Store = d
	if c.hints != nil {
		st = &hinting{door: d, board: c.hints}
	}
	cfg := partition.Config{Store: st, Server: name, Incarnation: fmt.Sprintf("%s-%d", name, life),
		Self: store.Server{Address: "http://" + name, Key: "key of " + name},
		Reach: func(ctx context.Context, to store.Server) error {
			c.mu.Lock()
			away := c.deaf[to.Name] || c.cut[[2]string{name, to.Name}]
			c.mu.Unlock()
			if away {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}
	if change != nil {
		change(&cfg)
	}
	node, err := partition.NewNode(context.Background(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	n := &citizen{name: name, node: node, door: d, done: make(chan error, 1)}
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	go func() { n.done <- node.Run(ctx) }()
	c.mu.Lock()
	c.nodes[name] = n
	c.mu.Unlock()
	return n
}

// leave stops a server gracefully.
func (c *city) leave(n *citizen) {
	c.t.Helper()
	n.stop()
	if err := <-n.done; err != nil {
		c.t.Errorf("%s: %v", n.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[n.name] == n {
		delete(c.nodes, n.name)
	}
}

// die ends a server of which nothing reaches the database any more.
func (c *city) die(n *citizen) {
	c.t.Helper()
	n.door.setSilent(true)
	c.leave(n)
}

func (c *city) all() []*citizen {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*citizen
	for _, n := range c.nodes {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *citizen) int { return slices.Compare([]byte(a.name), []byte(b.name)) })
	return all
}

// owners lists, by partition, who has a loaded engine.
func (c *city) owners() []string {
	owners := make([]string, c.parts)
	for _, n := range c.all() {
		for _, st := range n.node.Stats() {
			owners[st.Partition] += n.name
		}
	}
	return owners
}

// wanted lists who comes first for each partition.
func wanted(parts int, live ...string) []string {
	want := make([]string, parts)
	for p := range want {
		for _, s := range live {
			if partition.Rank(p, s, live) == 0 {
				want[p] = s
			}
		}
	}
	return want
}

// until lets time pass until the owners are as wanted.
func (c *city) until(limit time.Duration, want []string) time.Duration {
	c.t.Helper()
	begun := time.Now()
	for !slices.Equal(c.owners(), want) {
		if time.Since(begun) > limit {
			c.t.Fatalf("after %v: owned by %q, want %q", limit, c.owners(), want)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(begun)
}

// track watches who owns what, each 10 ms, until the returned function is called, which gives the moves of each
// partition and the longest time that one had no owner.
func (c *city) track() (stop func() (moves []int, gap time.Duration)) {
	end, done := make(chan struct{}), make(chan struct{})
	moves, last, lost := make([]int, c.parts), c.owners(), make([]time.Time, c.parts)
	var gap time.Duration
	go func() {
		defer close(done)
		for {
			for p, o := range c.owners() {
				switch {
				case o == "" && lost[p].IsZero():
					lost[p] = time.Now()
				case o != "":
					if !lost[p].IsZero() {
						gap = max(gap, time.Since(lost[p]))
						lost[p] = time.Time{}
					}
					if last[p] != o && last[p] != "" {
						moves[p]++
					}
					last[p] = o
				}
			}
			select {
			case <-end:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	over := sync.OnceFunc(func() { close(end); <-done })
	c.ends = append(c.ends, over)
	return func() ([]int, time.Duration) {
		over()
		return moves, gap
	}
}

// board carries hints between servers.
type board struct {
	mu   sync.Mutex
	ears map[int]func(int)
	next int
	told int
}

// hinting is a door with hints.
type hinting struct {
	*door
	board *board
}

func (h *hinting) Hint(_ context.Context, p int) error {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	h.board.told++
	for _, wake := range h.board.ears {
		wake(p)
	}
	return nil
}

func (h *hinting) Hear(ctx context.Context, wake func(int)) error {
	h.board.mu.Lock()
	id := h.board.next
	h.board.next++
	h.board.ears[id] = wake
	h.board.mu.Unlock()
	<-ctx.Done()
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	delete(h.board.ears, id)
	return nil
}
