package boottime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/boottime"
)

func TestVirtualTimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := boottime.Start()
		for i := range 10 {
			if got, want := c.Now(), time.Duration(i)*time.Hour; got != want {
				t.Fatalf("after %d virtual hours the clock shows %v", i, got)
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestNeverFalls(t *testing.T) {
	c := boottime.Start()
	last := c.Now()
	for range 10_000 {
		now := c.Now()
		if now < last {
			t.Fatalf("%v after %v", now, last)
		}
		last = now
	}
}
