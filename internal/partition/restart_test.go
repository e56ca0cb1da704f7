package partition_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/partition"
)

// A server that died and is started again gets back what it comes first for. Nothing else moves: while its former life counts
// as live, the new one has a place of its own in the order, which is not the one that it will have.
func TestRestartMovesOnlyItsOwn(t *testing.T) {
	for phase := range 5 { // of the beats and looks of all at which it dies
		inCity(t, 16, func(c *city) {
			c.join("a", 1, nil)
			b := c.join("b", 1, nil)
			c.join("c", 1, nil)
			want := wanted(16, "a", "b", "c")
			c.until(90*time.Second, want)
			time.Sleep(time.Minute + 800*time.Millisecond + time.Duration(phase)*300*time.Millisecond) // everything may move
			stop := c.track()
			b.door.setSilent(true)
			time.Sleep(100 * time.Millisecond)
			c.join("b", 2, nil)
			time.Sleep(20 * time.Second)
			moves, _ := stop()
			for p, n := range moves {
				if want[p] != "b" && n > 0 {
					t.Errorf("phase %d: partition %d of %s moved %d times", phase, p, want[p], n)
				}
			}
			c.until(90*time.Second, want)
			c.leave(b)
		})
	}
}

// Nothing is given up for a server that has missed its beat: it looks like one that has died, and nobody else would take
// what is given up before its turn is over.
func TestNothingIsGivenToTheDying(t *testing.T) {
	inCity(t, 64, func(c *city) {
		c.join("a", 1, nil)
		c.until(5*time.Second, wanted(64, "a"))
		b := c.join("b", 1, nil)
		for b.node.Stats() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		b.door.setSilent(true) // more is to be handed over
		l := partition.Lease{}.Filled()
		time.Sleep(2*l.Renew + 2*l.Look)
		before := c.owners()
		for range 100 {
			for p, owner := range c.owners() {
				if before[p] == "a" && owner != "a" {
					t.Errorf("partition %d is given up for a server whose beat has stood still", p)
					return
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}
