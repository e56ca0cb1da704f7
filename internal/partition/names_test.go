package partition_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// paper is a log that many write.
type paper struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (p *paper) Write(b []byte) (int, error) { p.mu.Lock(); defer p.mu.Unlock(); return p.b.Write(b) }
func (p *paper) String() string              { p.mu.Lock(); defer p.mu.Unlock(); return p.b.String() }

// Two live servers of one name share the work, nothing flaps between them, and the log says it. The former life of a server
// that was started anew is no second one.
func TestTwoServersOfOneName(t *testing.T) {
	inCity(t, 16, func(c *city) {
		log := map[int]*paper{1: {}, 2: {}}
		twin := func(life int) *citizen {
			n := c.join("a", life, func(cfg *partition.Config) { cfg.Logger = slog.New(slog.NewTextHandler(log[life], nil)) })
			c.mu.Lock()
			c.nodes[[]string{"", "first", "second"}[life]] = n
			delete(c.nodes, "a")
			c.mu.Unlock()
			return n
		}
		first := twin(1)
		c.until(5*time.Second, wanted(16, "a"))
		second := twin(2)
		time.Sleep(90 * time.Second)
		one, two := len(first.node.Stats()), len(second.node.Stats())
		if one+two != 16 || one < 3 || two < 3 {
			t.Errorf("they own %d and %d of 16 partitions", one, two)
		}
		for life, l := range log {
			if n := strings.Count(l.String(), "has this server's name"); n != 1 {
				t.Errorf("server %d warned %d times:\n%s", life, n, l)
			}
		}
		before := strings.Count(log[1].String(), "acquired") + strings.Count(log[2].String(), "acquired")
		time.Sleep(5 * time.Minute)
		if after := strings.Count(log[1].String(), "acquired") + strings.Count(log[2].String(), "acquired"); after != before {
			t.Errorf("%d partitions moved while nothing happened", after-before)
		}
		c.mu.Lock()
		delete(c.nodes, "first")
		c.mu.Unlock()
		first.door.setSilent(true)
		first.stop()
		<-first.done
		time.Sleep(20 * time.Second)
		if n := len(second.node.Stats()); n != 16 {
			t.Errorf("the one that is left owns %d of 16 partitions", n)
		}
	})
	inCity(t, 4, func(c *city) {
		var log paper
		c.die(c.join("a", 1, nil))
		c.join("a", 2, func(cfg *partition.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		c.until(20*time.Second, wanted(4, "a"))
		time.Sleep(2 * time.Minute)
		if strings.Contains(log.String(), "has this server's name") {
			t.Errorf("a server that was started anew warns of its own former life:\n%s", &log)
		}
	})
}

// A job that has to move waits while a server lives that does not know moves, also one that hangs, and moves when that
// server's row is gone.
func TestMoveWaitsForOldServers(t *testing.T) {
	inCity(t, 4, func(c *city) {
		ctx := context.Background()
		old := c.join("old", 1, func(cfg *partition.Config) { cfg.Self.Level = -1 }) // 0 would mean the newest
		c.until(5*time.Second, wanted(4, "old"))                                     // who comes before it would let it in no more
		a := c.join("a", 1, nil)
		c.until(90*time.Second, wanted(4, "a", "old"))
		if got := a.node.LevelOfAll(); got >= engine.Level {
			t.Errorf("level %d of all, although one is older", got)
		}
		from, to := "", ""
		for i := 0; to == ""; i++ {
			pool := "p" + string(rune('a'+i))
			switch owner := c.owners()[partition.Of("default", pool, 4)]; {
			case owner == "a" && from == "":
				from = pool
			case from != "" && partition.Of("default", pool, 4) != partition.Of("default", from, 4):
				to = pool
			}
		}
		put := func(pool string) int64 {
			d := job.Definition{UID: job.UID{9}, Namespace: "default", Name: "j", Spec: job.Spec{Pool: pool, Handler: "h",
				Overlap:   &job.Overlap{Policy: job.OverlapAllow}, // else its move waits for executions that nobody runs
				Schedules: []job.Schedule{{ID: "main", Spec: schedule.Spec{Every: 5 * time.Second}}}}}
			_, entry, err := c.st.PutJob(ctx, store.PutJob{Definition: d, Partition: partition.Of("default", pool, 4), At: job.InstantOf(time.Now())})
			if err != nil {
				t.Fatal(err)
			}
			return entry.Entry
		}
		waits := func(entry int64) bool {
			pending, err := c.st.EntryPending(ctx, entry)
			if err != nil {
				t.Fatal(err)
			}
			return pending
		}
		made := put(from)
		time.Sleep(3 * time.Second)
		if waits(made) {
			t.Fatal("the job was not taken in")
		}
		moved := put(to)
		time.Sleep(20 * time.Second)
		if !waits(moved) {
			t.Error("the job moved although a server does not know moves")
		}
		old.door.setSilent(true)
		time.Sleep(20 * time.Second)
		if !waits(moved) {
			t.Error("the job moved although a server that hangs does not know moves")
		}
		old.door.setSilent(false)
		time.Sleep(5 * time.Second)
		c.leave(old)
		time.Sleep(15 * time.Second)
		if waits(moved) {
			t.Errorf("the job did not move, level of all %d", a.node.LevelOfAll())
		}
		row, err := c.st.Job(ctx, "default", "j")
		if err != nil || len(row.Cursors) != 1 {
			t.Fatalf("%+v, %v", row.Cursors, err)
		}
	})
}
