package boottime

import (
	"testing"
	"time"
)

// script answers readings in turn, whatever the clock.
func script(readings ...time.Duration) func(uintptr) time.Duration {
	return func(uintptr) time.Duration {
		r := readings[0]
		if len(readings) > 1 {
			readings = readings[1:]
		}
		return r
	}
}

func TestMeasure(t *testing.T) {
	const s, ms, us = time.Second, time.Millisecond, time.Microsecond
	tests := []struct {
		name     string
		readings []time.Duration // monotonic, boot, monotonic; again while the gap is wide
		want     time.Duration
	}{
		{"at once", []time.Duration{1 * s, 4 * s, 1 * s}, 3 * s},
		{"middle of a narrow gap", []time.Duration{1 * s, 4*s + 50*us, 1*s + 100*us}, 3 * s},
		{"put aside once", []time.Duration{1 * s, 4*s + 70*ms, 1*s + 70*ms, 2 * s, 5 * s, 2 * s}, 3 * s},
		{"always put aside: the narrowest counts", []time.Duration{
			1 * s, 4 * s, 1*s + 90*ms, 2 * s, 5 * s, 2*s + 2*ms, 3 * s, 6 * s, 3*s + 90*ms,
			4 * s, 7 * s, 4*s + 90*ms, 5 * s, 8 * s, 5*s + 90*ms,
		}, 3*s - 1*ms},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := measure(script(tt.readings...)); got != tt.want {
				t.Errorf("measured %v, want %v", got, tt.want)
			}
		})
	}
}

func TestSuspensionCounts(t *testing.T) {
	c := Start()
	before := c.Now()
	c.base -= time.Hour // as if the machine had slept for an hour since the start
	c.woke(time.Hour)
	if got := c.Now() - before; got < time.Hour {
		t.Fatalf("an hour asleep moved the clock by %v", got)
	}
}

// woke makes what the clock saw of the wall clock older, as of a machine that was asleep since.
func (c *Clock) woke(slept time.Duration) {
	was := *c.asked.Load()
	was.wall -= slept
	c.asked.Store(&was)
}

// A suspension that the wall clock hides, because it was set back by as much, is found a little later.
func TestHiddenSuspension(t *testing.T) {
	c := Start()
	before := c.Now()
	c.base -= time.Hour
	time.Sleep(recheck)
	if got := c.Now() - before; got < time.Hour {
		t.Fatalf("an hour asleep moved the clock by %v", got)
	}
}

func TestFresh(t *testing.T) {
	const ms = time.Millisecond
	was := &reading{elapsed: 5 * time.Second, wall: 7 * time.Second}
	tests := []struct {
		name          string
		elapsed, wall time.Duration // since then
		want          bool
	}{
		{"at once", 0, 0, true},
		{"a little later", 9 * ms, 9 * ms, true},
		{"slewed", 9 * ms, 9*ms + 5*time.Microsecond, true},
		{"later", 10 * ms, 10 * ms, false},
		{"asleep", 1 * ms, 3 * time.Second, false},
		{"asleep for the least that is believed", 0, 10 * ms, false},
		{"set back", 1 * ms, -time.Second, false},
		{"read before", -1 * ms, -1 * ms, false},
	}
	for _, tt := range tests {
		now := reading{elapsed: was.elapsed + tt.elapsed, wall: was.wall + tt.wall}
		if got := was.fresh(now); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if none := (*reading)(nil); none.fresh(*was) {
		t.Error("fresh without a reading")
	}
}

func BenchmarkNow(b *testing.B) {
	c := Start()
	for b.Loop() {
		c.Now()
	}
}

func TestBelieve(t *testing.T) {
	tests := []struct {
		measured, want time.Duration
	}{
		{0, 0},
		{9 * time.Millisecond, 0},
		{-time.Second, 0},
		{10 * time.Millisecond, 10 * time.Millisecond},
		{9 * time.Millisecond, 10 * time.Millisecond}, // never falls
		{time.Second, time.Second},
		{0, time.Second},
	}
	var c Clock
	for _, tt := range tests {
		if got := c.believe(tt.measured); got != tt.want {
			t.Errorf("believe(%v) = %v, want %v", tt.measured, got, tt.want)
		}
	}
}
