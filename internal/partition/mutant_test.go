package partition_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/partition"
)

// Each part of the ownership that no mutant of the drill removes is removed here, and is seen to be missing.

// What has moved rests for a minute: a server that comes and goes does not carry partitions to and fro.
func TestMutantNeverRests(t *testing.T) {
	for _, mutant := range []bool{false, true} {
		inCity(t, 8, func(c *city) {
			change := func(cfg *partition.Config) { cfg.Switches.NeverRests = mutant }
			c.join("a", 1, change)
			c.until(5*time.Second, wanted(8, "a"))
			b := c.join("b", 1, change)
			c.until(30*time.Second, wanted(8, "a", "b"))
			c.leave(b)
			c.until(5*time.Second, wanted(8, "a"))
			left := time.Now()
			c.join("b", 2, change)
			c.until(2*time.Minute, wanted(8, "a", "b"))
			if took := time.Since(left); (took < 30*time.Second) != mutant {
				t.Errorf("mutant %v: moved back after %v", mutant, took)
			}
		})
	}
}

// A server says that it stops before it releases anything: who comes next does not wait for its rank. What a mutant does
// depends on whether the other server looks between the two, so it gets several tries; the real one must never be late.
func TestMutantReleasesUnsaid(t *testing.T) {
	const tries = 40
	for _, mutant := range []bool{false, true} {
		late, n := 0, 0
		for ; n < tries && (!mutant || late == 0); n++ {
			inCity(t, 8, func(c *city) {
				c.hints = &board{ears: map[int]func(int){}}
				change := func(cfg *partition.Config) { cfg.Switches.ReleasesUnsaid = mutant }
				a := c.join("a", 1, change)
				c.join("b", 1, change)
				c.until(20*time.Second, wanted(8, "a", "b"))
				time.Sleep(1234*time.Millisecond + time.Duration(n)*37*time.Millisecond)
				stop := c.track()
				c.leave(a)
				c.until(10*time.Second, wanted(8, "b"))
				if _, gap := stop(); gap > 300*time.Millisecond {
					late++
				}
			})
			if !mutant && n == 9 {
				break
			}
		}
		if (late > 0) != mutant {
			t.Errorf("mutant %v: %d of %d times late", mutant, late, n)
		}
	}
}

// Of what the database's clock may show by now the least counts: else instants come early.
func TestMutantClockUpperBound(t *testing.T) {
	for _, mutant := range []bool{false, true} {
		inCity(t, 1, func(c *city) {
			d := &ticking{there: 100 * time.Millisecond}
			n := c.join("a", 1, func(cfg *partition.Config) {
				withClock(d, time.Now)(cfg)
				cfg.Switches.ClockUpperBound = mutant
			})
			c.until(10*time.Second, wanted(1, "a"))
			if early := time.Until(n.node.Now()) > time.Millisecond; early != mutant {
				t.Errorf("mutant %v: planned by %s at %s", mutant, n.node.Now(), time.Now())
			}
		})
	}
}
