package partition_test

import (
	"testing"
	"time"
)

// ready tells whether each of some servers is.
func (c *city) ready(all ...*citizen) []bool {
	out := make([]bool, len(all))
	for i, n := range all {
		out[i] = n.node.Ready() == nil
	}
	return out
}

// always fails the test unless servers stay as ready as they are for a while.
func (c *city) always(d time.Duration, want bool, all ...*citizen) {
	c.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for i, is := range c.ready(all...) {
			if is != want {
				c.t.Fatalf("%s is ready: %v, %v before the end of %v: %v", all[i].name, is, time.Until(end), d, all[i].node.Ready())
			}
		}
	}
}

// The death of one server, or its stop, takes no other out of a load balancer.
func TestReadyWhileOthersGo(t *testing.T) {
	inCity(t, 16, func(c *city) {
		a, b := c.join("a", 1, nil), c.join("b", 1, nil)
		c.until(20*time.Second, wanted(16, "a", "b"))
		d := c.join("d", 1, nil)
		c.until(90*time.Second, wanted(16, "a", "b", "d"))
		if d.node.Ready() != nil {
			t.Fatal(d.node.Ready())
		}
		go func() { time.Sleep(100 * time.Millisecond); c.die(b) }()
		c.always(20*time.Second, true, a, d)
		c.until(time.Second, wanted(16, "a", "d"))
		go func() { time.Sleep(100 * time.Millisecond); c.leave(d) }()
		c.always(5*time.Second, true, a)
		c.until(time.Second, wanted(16, "a"))
	})
}

// A partition that nobody can own does: behind the time that any take-over needs.
func TestNotReadyForGood(t *testing.T) {
	inCity(t, 16, func(c *city) {
		a, b := c.join("a", 1, nil), c.join("b", 1, nil)
		c.until(20*time.Second, wanted(16, "a", "b"))
		a.door.setShut(true)
		c.die(b)
		late := c.join("late", 1, nil)
		late.door.setShut(true)
		c.always(10*time.Second, true, a)
		time.Sleep(15 * time.Second)
		c.always(20*time.Second, false, a, late)
		a.door.setShut(false)
		late.door.setShut(false)
		time.Sleep(10 * time.Second)
		c.always(time.Second, true, a, late)
	})
}
