//go:build linux

package pg_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// TestFrozenOwner stops an owner with SIGSTOP for longer than its lease. The others take over; awake again it commits
// nothing under its old epochs, answers no call by what it remembers, and drops its engines. Its workers keep their shards.
func TestFrozenOwner(t *testing.T) {
	drilled(t)
	pg := pgtest.Start(t)
	f := newFleet(t, pg.Empty(t), 3, drillLease())
	planned := f.underLoad()
	rows := watch(t, f.dsn)
	s, pool := f.ownerOf()
	p := partition.Of("default", pool, partitions)
	u := f.upheaval(s)
	s.signal(t, syscall.SIGSTOP)
	u.at = time.Now()
	until(t, "others own what the frozen one had", func() error {
		for p, epoch := range u.epochs {
			if _, ok := rows.after(p, epoch); !ok {
				return fmt.Errorf("partition %d", p)
			}
		}
		return nil
	})
	took := spansOf(rows.taken(t, []upheaval{u}))
	time.Sleep(length(t, time.Second) / 2)
	type answer struct {
		code int
		body string
	}
	answers := make(chan answer, 8)
	open, err := json.Marshal(takt.OpenRequest{Namespace: "default", Pool: pool, Worker: "late", Incarnation: "late-1", Slots: 1, Handlers: []string{"none"}, LocalTime: time.Now(), Call: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range cap(answers) { // they wait in the socket of the frozen process
		go func() {
			code, body := call(s.addr, http.MethodPost, "/api/v1/worker/open", string(open))
			answers <- answer{code, body}
		}()
	}
	time.Sleep(time.Second)
	s.signal(t, syscall.SIGCONT)
	for range cap(answers) {
		a := <-answers
		var opened takt.OpenResponse
		switch _ = json.Unmarshal([]byte(a.body), &opened); {
		case a.code == http.StatusOK && opened.Epoch > u.epochs[p]: // passed on to the owner
		case a.code == http.StatusServiceUnavailable && strings.Contains(a.body, `"no_owner"`):
		default:
			t.Errorf("awake again, it answers %d %s; its epoch was %d", a.code, a.body, u.epochs[p])
		}
	}
	until(t, "the frozen server tells that its ownership ended", func() error {
		text, err := os.ReadFile(filepath.Join(f.dir, s.name+".log"))
		if err != nil {
			return err
		}
		return yes(strings.Count(string(text), "partition ownership ended") >= len(u.epochs))
	})
	f.ready(s)
	f.calm(planned)
	if err := os.Remove(filepath.Join(f.dir, "stalls-"+s.name)); err != nil { // they were its own pause
		t.Fatal(err)
	}
	v := f.collect(f.dsn)
	v.sound(f.leases())
	rows.rise(t)
	v.judge(f, planned)
	v.within("from SIGSTOP to the next owner's row", took, takeoverLimit(f), 1)
	for p, epoch := range u.epochs {
		c, _ := rows.after(p, epoch)
		for _, e := range v.events {
			if e.Partition == p && int64(e.Epoch) == epoch && e.At.Time().After(c.at) {
				t.Errorf("partition %d: a commit at %s under the epoch that ended at %s", p, e.At, c.at)
			}
		}
	}
	for _, e := range v.again() {
		t.Errorf("shard %d of %s was given out again as attempt %d, although its worker lived", e.Shard, e.Execution, e.Attempt)
	}
}

// ownerOf finds a server that owns a pool with work.
func (f *fleet) ownerOf() (owner *server, pool string) {
	f.t.Helper()
	for _, s := range f.servers {
		has := owned(f.t, f.dsn, s.incarnation)
		for _, pool := range f.pools {
			if _, ok := has[partition.Of("default", pool, partitions)]; ok {
				return s, pool
			}
		}
	}
	f.t.Fatal("no server owns a pool")
	return nil, ""
}
