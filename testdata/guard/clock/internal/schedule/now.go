// Package schedule reads clocks.
package schedule

import (
	"time"
	clock "time"
)

func wait(d time.Duration) time.Duration {
	now := time.Now           // want
	time.Sleep(d)             // want
	<-clock.After(d)          // want
	return clock.Since(now()) // want
}
