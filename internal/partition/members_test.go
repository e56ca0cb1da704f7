package partition_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

// A server that joins gets what it comes first for, and nothing else moves; nothing has no owner for more than a
// second. One that leaves hands everything over as fast.
func TestJoinLeave(t *testing.T) {
	inCity(t, 16, func(c *city) {
		c.join("a", 1, nil)
		c.until(5*time.Second, wanted(16, "a"))
		stop := c.track()
		b := c.join("b", 1, nil)
		c.until(20*time.Second, wanted(16, "a", "b"))
		c.join("c", 1, nil)
		c.until(90*time.Second, wanted(16, "a", "b", "c")) // what has just moved rests for a minute
		time.Sleep(10 * time.Second)
		moves, gap := stop()
		t.Logf("moves %v, longest time without an owner %v", moves, gap)
		for p, n := range moves {
			changes := 0
			for i, live := range [][]string{{"a", "b"}, {"a", "b", "c"}} {
				before := [][]string{{"a"}, {"a", "b"}}[i]
				if wanted(16, before...)[p] != wanted(16, live...)[p] {
					changes++
				}
			}
			if n != changes {
				t.Errorf("partition %d moved %d times, want %d", p, n, changes)
			}
		}
		if gap > time.Second {
			t.Errorf("a partition had no owner for %v", gap)
		}
		for _, n := range c.all() {
			if err := n.node.Ready(); err != nil {
				t.Errorf("%s is not ready: %v", n.name, err)
			}
		}

		stop = c.track()
		begun := time.Now()
		c.leave(b)
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("the stop took %v", took)
		}
		c.until(5*time.Second, wanted(16, "a", "c"))
		if _, gap := stop(); gap > time.Second {
			t.Errorf("after a stop a partition had no owner for %v", gap)
		}
		rows, err := c.st.Servers(context.Background())
		if err != nil || len(rows) != 2 {
			t.Errorf("%d rows of servers, %v; want those of a and c", len(rows), err)
		}
	})
}

// With hints nobody waits for a look.
func TestHintedHandOver(t *testing.T) {
	for _, hints := range []bool{false, true} {
		inCity(t, 8, func(c *city) {
			if hints {
				c.hints = &board{ears: map[int]func(int){}}
			}
			a := c.join("a", 1, nil)
			c.join("b", 1, nil)
			c.until(20*time.Second, wanted(8, "a", "b"))
			time.Sleep(1234 * time.Millisecond)
			stop := c.track()
			c.leave(a)
			c.until(5*time.Second, wanted(8, "b"))
			_, gap := stop()
			t.Logf("hints %v: %v without an owner", hints, gap)
			if hints && (gap > 50*time.Millisecond || c.hints.told == 0) {
				t.Errorf("%v without an owner, although the release was hinted at (%d hints)", gap, c.hints.told)
			}
		})
	}
}

// A wake for a partition that is owned elsewhere reaches its owner.
func TestHintedInbox(t *testing.T) {
	inCity(t, 1, func(c *city) {
		c.hints = &board{ears: map[int]func(int){}}
		a := c.join("a", 1, nil)
		c.until(5*time.Second, []string{"a"})
		b := c.join("b", 1, func(cfg *partition.Config) { cfg.Live = func() []string { return []string{"a", "b"} } })
		time.Sleep(5100 * time.Millisecond)
		synctest.Wait()
		woken := c.hints.told
		other := b
		if c.owners()[0] == "b" {
			other = a
		}
		other.node.Wake(0)
		synctest.Wait()
		if c.hints.told != woken+1 {
			t.Errorf("%d hints, want one", c.hints.told-woken)
		}
	})
}

// A server that dies is replaced after its lease, its ranks apart at most; its row goes after a while.
func TestDeath(t *testing.T) {
	inCity(t, 8, func(c *city) {
		c.join("a", 1, nil)
		c.join("b", 1, nil)
		d := c.join("c", 1, nil)
		c.until(90*time.Second, wanted(8, "a", "b", "c"))
		time.Sleep(2 * time.Second)
		stop := c.track()
		c.die(d)
		time.Sleep(10 * time.Second)
		if slices.Contains(c.owners(), "") {
			t.Errorf("owned by %q", c.owners())
		}
		_, gap := stop()
		l := partition.Lease{}.Filled()
		if limit := l.OwnerTTL + l.Renew + 3*l.Look; gap > limit || gap < l.OwnerTTL-l.Renew {
			t.Errorf("without an owner for %v, want at most %v", gap, limit)
		}
		rows := func() (names []string) {
			all, err := c.st.Servers(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range all {
				names = append(names, r.Incarnation)
			}
			return names
		}
		if got := rows(); !slices.Contains(got, "c-1") {
			t.Errorf("the row of a server that has just died is gone: %v", got)
		}
		c.until(90*time.Second, wanted(8, "a", "b")) // two who look at different instants may take each other's
		time.Sleep(time.Minute)
		if got := rows(); !slices.Equal(got, []string{"a-1", "b-1"}) {
			t.Errorf("rows of %v, want those of the living", got)
		}
	})
}

// A restart under the same name is another owner: it waits until the lease of the one before is over.
func TestRestartSameName(t *testing.T) {
	inCity(t, 2, func(c *city) {
		a := c.join("a", 1, nil)
		c.until(5*time.Second, wanted(2, "a"))
		time.Sleep(2 * time.Second)
		c.die(a)
		begun := time.Now()
		c.join("a", 2, nil)
		c.until(10*time.Second, wanted(2, "a"))
		if took := time.Since(begun); took < 5*time.Second {
			t.Errorf("taken over %v after the death, before the lease was over", took)
		}
	})
}

// A server that hangs for a minute commits nothing when it wakes, has dropped its engines, answers no_owner, and comes
// back as a member although its row was removed.
func TestFrozen(t *testing.T) {
	inCity(t, 4, func(c *city) {
		a := c.join("a", 1, nil)
		c.join("b", 1, nil)
		c.until(20*time.Second, wanted(4, "a", "b"))
		a.door.setSilent(true)
		time.Sleep(time.Minute)
		if owned := a.node.Stats(); len(owned) != 0 {
			t.Errorf("a server without a database owns %d partitions", len(owned))
		}
		c.until(time.Second, wanted(4, "b"))
		a.door.setSilent(false)
		c.until(2*time.Minute, wanted(4, "a", "b"))
	})
}

// A server that comes and goes moves nothing more often than once a minute.
func TestFlapping(t *testing.T) {
	inCity(t, 8, func(c *city) {
		c.join("a", 1, nil)
		c.until(5*time.Second, wanted(8, "a"))
		begun := time.Now()
		stop := c.track()
		lives := 1
		for ; time.Since(begun) < 5*time.Minute; lives++ {
			b := c.join("b", lives, nil)
			time.Sleep(8 * time.Second)
			c.leave(b)
			time.Sleep(2 * time.Second)
		}
		moves, gap := stop()
		t.Logf("%d lives, moves %v, gap %v", lives, moves, gap)
		for p, n := range moves {
			if n > 2*6 { // there for balance, back because it stops
				t.Errorf("partition %d moved %d times in five minutes", p, n)
			}
		}
	})
}

// Owner names who answers, here or elsewhere.
func TestOwner(t *testing.T) {
	inCity(t, 8, func(c *city) {
		a := c.join("a", 1, nil)
		b := c.join("b", 1, nil)
		c.until(20*time.Second, wanted(8, "a", "b"))
		time.Sleep(time.Second)
		for p, name := range wanted(8, "a", "b") {
			for _, n := range []*citizen{a, b} {
				h, ok := n.node.Owner(p)
				if !ok || h.Server.Name != name || h.Server.Address != "http://"+name || h.Server.Key != "key of "+name || h.Epoch == 0 || h.Local != (n.name == name) {
					t.Errorf("%s says of partition %d: %+v, %v; want %s", n.name, p, h, ok, name)
				}
			}
		}
		if _, ok := a.node.Owner(8); ok {
			t.Error("a partition that there is not has an owner")
		}
		b.door.setSilent(true)
		time.Sleep(3 * time.Second)
		if _, ok := a.node.Owner(slices.Index(wanted(8, "a", "b"), "b")); !ok {
			t.Error("the owner of before is not named while its lease may run")
		}
	})
}

func TestSitters(t *testing.T) {
	type cs = []partition.Candidate
	tests := []struct {
		name    string
		servers cs
		want    []string
	}{
		{"alone", cs{{"a", nil}}, nil},
		{"alone, with a mark of one that has gone", cs{{"a", []string{"z"}}}, nil},
		{"nobody is marked", cs{{"a", nil}, {"b", nil}, {"c", nil}}, nil},
		{"all others mark one", cs{{"a", []string{"b"}}, {"b", nil}, {"c", []string{"b"}}}, []string{"b"}},
		{"it marks them, too", cs{{"a", []string{"b"}}, {"b", []string{"a", "c"}}, {"c", []string{"b"}}}, []string{"b"}},
		{"one still reaches it", cs{{"a", []string{"b"}}, {"b", nil}, {"c", nil}}, nil},
		{"two, one marks", cs{{"a", nil}, {"b", []string{"a"}}}, []string{"a"}},
		{"two, both mark: the first stays", cs{{"b", []string{"a"}}, {"a", []string{"b"}}}, []string{"b"}},
		{"nothing reaches anything: the first stays", cs{{"a", []string{"b", "c"}}, {"b", []string{"a", "c"}}, {"c", []string{"a", "b"}}}, []string{"b", "c"}},
		{"two of three", cs{{"a", nil}, {"b", []string{"c"}}, {"c", []string{"b"}}}, nil},
		{"two of three are deaf to all", cs{{"a", []string{"b", "c"}}, {"b", []string{"c"}}, {"c", []string{"b"}}}, []string{"b", "c"}},
	}
	for _, tt := range tests {
		if got := partition.Sitters(tt.servers); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v sit out, want %v", tt.name, got, tt.want)
		}
	}
}

// A server that no other reaches, but that reaches the database, would keep what it owns for ever, useless to every
// worker. It gives it back and sits out until it can be reached.
func TestUnreachable(t *testing.T) {
	for _, mutant := range []bool{false, true} {
		inCity(t, 8, func(c *city) {
			c.join("a", 1, nil)
			b := c.join("b", 1, func(cfg *partition.Config) { cfg.Switches.NeverSitsOut = mutant })
			c.join("c", 1, nil)
			c.until(90*time.Second, wanted(8, "a", "b", "c"))
			time.Sleep(2 * time.Second)
			c.mu.Lock()
			c.deaf["b"] = true
			c.mu.Unlock()
			stop := c.track()
			time.Sleep(20 * time.Second)
			if _, gap := stop(); !mutant && gap > time.Second {
				t.Errorf("what b gave back had no owner for %v", gap)
			}
			if mutant {
				if owned := b.node.Stats(); len(owned) == 0 {
					t.Error("without the rule it gave everything back, too: this proves nothing")
				}
				return
			}
			if slices.Contains(c.owners(), "b") || slices.Contains(c.owners(), "") {
				t.Errorf("owned by %q, want none without an owner and none by b", c.owners())
			}
			if b.node.Ready() == nil {
				t.Error("a server that sits out is ready")
			}
			time.Sleep(time.Minute)
			c.until(time.Second, wanted(8, "a", "c"))
			c.mu.Lock()
			c.deaf["b"] = false
			c.mu.Unlock()
			time.Sleep(35 * time.Second)
			c.until(90*time.Second, wanted(8, "a", "b", "c"))
			if err := b.node.Ready(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Two servers that cannot reach each other: one of them owns everything, and it stays the same one.
func TestMutuallyUnreachable(t *testing.T) {
	inCity(t, 8, func(c *city) {
		c.join("a", 1, nil)
		c.join("b", 1, nil)
		c.until(20*time.Second, wanted(8, "a", "b"))
		c.mu.Lock()
		c.cut[[2]string{"a", "b"}], c.cut[[2]string{"b", "a"}] = true, true
		c.mu.Unlock()
		time.Sleep(20 * time.Second)
		stop := c.track()
		for range 12 {
			c.until(0, wanted(8, "a"))
			time.Sleep(10 * time.Second)
		}
		if moves, gap := stop(); slices.Max(moves) > 0 || gap > 0 {
			t.Errorf("moves %v, %v without an owner", moves, gap)
		}
	})
}

// Servers of one database tell each other apart by incarnation; a row that says nothing new moves nothing.
func TestStrangersRow(t *testing.T) {
	inCity(t, 8, func(c *city) {
		if _, err := c.st.PutServer(context.Background(), store.Server{Incarnation: "z-1", Name: "z"}); err != nil {
			t.Fatal(err)
		}
		c.join("a", 1, nil)
		c.until(10*time.Second, wanted(8, "a"))
		stop := c.track()
		time.Sleep(2 * time.Minute)
		if moves, gap := stop(); slices.Max(moves) > 0 || gap > 0 {
			t.Errorf("a dead row moved something: %v, gap %v", moves, gap)
		}
	})
}

// Of a partition that is given up the next owner is known to be coming, by a server whose news is fresh, until it is there. Who
// stops, or hears nothing from the database, tells nobody to wait.
func TestComing(t *testing.T) {
	inCity(t, 1, func(c *city) {
		names := []string{"a", "b", "c"}
		slices.SortFunc(names, func(x, y string) int { return partition.Rank(0, x, names) - partition.Rank(0, y, names) })
		first := c.join(names[0], 1, nil)
		c.until(5*time.Second, names[:1])
		second, third := c.join(names[1], 1, nil), c.join(names[2], 1, nil)
		time.Sleep(3 * time.Second)
		coming := func(n *citizen) bool { _, anywhere := n.node.Coming(0); return anywhere }
		owner := func(n *citizen) bool { h, ok := n.node.Owner(0); return ok && h.Local }
		if coming(first) || coming(second) || coming(third) {
			t.Error("somebody is to come, although there is an owner")
		}
		second.door.setSilent(true) // comes next, as far as the third knows, and does not
		first.stop()
		gap, known := 0, 0
		for ; !owner(third); gap++ {
			if coming(third) {
				known++
			}
			if coming(first) || coming(second) {
				t.Error("who stops, or hears nothing, tells callers to wait")
			}
			time.Sleep(time.Millisecond)
		}
		t.Logf("%d ms without an owner, in %d of them one was to come", gap, known)
		if known < 400 || coming(third) {
			t.Errorf("one was to come for %d of %d ms, and is: %v", known, gap, coming(third))
		}
		third.door.setSilent(true)
		time.Sleep(6 * time.Second) // its lease is over
		if owner(third) || coming(third) {
			t.Errorf("owned: %v, to come: %v, on a server without a database", owner(third), coming(third))
		}
		first.done <- <-first.done // for who leaves it
	})
}
