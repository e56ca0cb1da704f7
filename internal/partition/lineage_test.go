package partition_test

import (
	"context"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/partition"
)

// failOver puts the database on another history.
func (c *city) failOver(lineage string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lineage = lineage
}

// After a failover nothing is granted or judged for the longest TTL + P: whoever owned has dropped its engine by the next
// look, and nobody has one until then.
func TestFailover(t *testing.T) {
	l := partition.Lease{}.Filled()
	hold := l.TTL + l.OwnerTTL
	// quiet checks that nobody answers for at least the hold, and that everybody does soon after.
	quiet := func(c *city, since time.Time) {
		c.t.Helper()
		for time.Since(since) < hold-time.Second {
			for p, o := range c.owners() {
				if o != "" {
					c.t.Fatalf("partition %d has an engine at %s, %v after the failover", p, o, time.Since(since))
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		for _, n := range c.all() {
			if n.node.Ready() == nil && len(c.all()) == 1 {
				c.t.Error("ready although nobody answers")
			}
		}
		for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			all := true
			for _, o := range c.owners() {
				all = all && o != ""
			}
			if all {
				return
			}
			if time.Since(begun) > 15*time.Second {
				c.t.Fatalf("after the hold: owned by %q", c.owners())
			}
		}
	}
	t.Run("seen by those who own", func(t *testing.T) {
		inCity(t, 4, func(c *city) {
			c.join("a", 1, nil)
			c.join("b", 1, nil)
			c.until(20*time.Second, wanted(4, "a", "b"))
			c.failOver("another")
			since := time.Now()
			time.Sleep(l.Look + 10*time.Millisecond)
			quiet(c, since)
			time.Sleep(time.Minute)
			stop := c.track()
			time.Sleep(time.Minute)
			if _, gap := stop(); gap > time.Second {
				t.Errorf("held again for %v", gap)
			}
		})
	})
	t.Run("while nobody is up, and again who died in the hold", func(t *testing.T) {
		inCity(t, 4, func(c *city) {
			a := c.join("a", 1, nil)
			c.until(20*time.Second, wanted(4, "a"))
			c.leave(a)
			c.failOver("another")
			b := c.join("b", 1, nil)
			time.Sleep(hold - 2*time.Second)
			c.leave(b)
			c.join("c", 1, nil)
			quiet(c, time.Now())
		})
	})
	t.Run("and one more during the hold", func(t *testing.T) {
		inCity(t, 1, func(c *city) {
			c.join("a", 1, nil)
			c.until(20*time.Second, wanted(1, "a"))
			c.failOver("another")
			time.Sleep(hold / 2)
			c.failOver("a third")
			quiet(c, time.Now())
		})
	})
	t.Run("of a database that loses nothing", func(t *testing.T) {
		inCity(t, 4, func(c *city) {
			keeps := func(cfg *partition.Config) { cfg.NoLoss = true }
			a := c.join("a", 1, keeps)
			c.until(20*time.Second, wanted(4, "a"))
			c.failOver("another")
			time.Sleep(l.Look + 10*time.Millisecond)
			c.until(5*time.Second, wanted(4, "a"))
			c.leave(a) // a history that changed while nobody was up may be a restored backup
			c.failOver("a third")
			c.join("b", 1, keeps)
			quiet(c, time.Now())
		})
	})
	t.Run("mutant", func(t *testing.T) {
		inCity(t, 1, func(c *city) {
			ignore := func(cfg *partition.Config) { cfg.Switches.LineageIgnored = true }
			a := c.join("a", 1, ignore)
			c.until(20*time.Second, wanted(1, "a"))
			c.failOver("another")
			time.Sleep(time.Second)
			c.until(0, wanted(1, "a"))
			c.leave(a)
			c.join("b", 1, ignore)
			c.until(3*time.Second, wanted(1, "b"))
		})
	})
}

// A file that was restored holds its first server, and that one alone.
func TestRestoredFileIsHeldOnce(t *testing.T) {
	l := partition.Lease{}.Filled()
	inCity(t, 2, func(c *city) {
		rows, err := c.st.PartitionRows(context.Background())
		if err != nil || rows[0].Lineage == "" {
			t.Fatalf("%+v, %v", rows, err)
		}
		c.failOver("restored")
		a := c.join("a", 1, func(cfg *partition.Config) { cfg.Sole = true })
		begun := time.Now()
		c.until(time.Minute, wanted(2, "a"))
		if took := time.Since(begun); took < l.TTL+l.OwnerTTL {
			t.Errorf("held for %v", took)
		}
		c.leave(a)
		c.join("a", 2, func(cfg *partition.Config) { cfg.Sole = true })
		c.until(time.Second, wanted(2, "a"))
	})
}

// A store that has learned to tell more histories apart names the one that it is on longer than rows have it: that is no
// failover. Another history of the shorter name's is one.
func TestLongerNameOfTheSameHistory(t *testing.T) {
	inCity(t, 4, func(c *city) {
		c.failOver("h/1")
		a := c.join("a", 1, nil)
		c.until(time.Minute, wanted(4, "a"))
		c.leave(a)
		c.failOver("h/1/20.30")
		b := c.join("b", 1, nil)
		c.until(10*time.Second, wanted(4, "b"))
		rows, err := c.st.PartitionRows(context.Background())
		if err != nil || rows[0].Lineage != "h/1/20.30" {
			t.Errorf("settled on %q, %v", rows[0].Lineage, err)
		}
		c.leave(b)
		for _, other := range []string{"h/1/20.31", "h/2/20.31"} {
			c.failOver(other)
			n := c.join(other[4:], 1, nil)
			time.Sleep(15 * time.Second)
			if n := len(n.node.Stats()); n > 0 {
				t.Errorf("%d engines, fifteen seconds after a failover to %s", n, other)
			}
			time.Sleep(15 * time.Second)
			c.leave(n)
		}
	})
}
