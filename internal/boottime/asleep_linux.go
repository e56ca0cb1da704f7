package boottime

import (
	"math"
	"syscall"
	"time"
	"unsafe"
)

// Clock ids of clock_gettime(2); syscall does not name them.
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

const (
	closeEnough = 200 * time.Microsecond // between the two readings of the monotonic clock
	tries       = 5
)

// asleep is how long the machine was suspended since it was started: CLOCK_BOOTTIME − CLOCK_MONOTONIC.
func asleep(time.Time) time.Duration { return measure(read) }

// measure brackets a reading of the boot clock by two of the monotonic one, because the thread may be
// put aside in between, and keeps the narrowest bracket.
func measure(read func(id uintptr) time.Duration) time.Duration {
	best, narrowest := time.Duration(0), time.Duration(math.MaxInt64)
	for range tries {
		before := read(clockMonotonic)
		boot := read(clockBoottime)
		gap := read(clockMonotonic) - before
		if gap < narrowest {
			best, narrowest = boot-before-gap/2, gap
		}
		if gap <= closeEnough {
			break
		}
	}
	return best
}

// read reads a clock past the runtime, whose virtual time inside a bubble must not count here. Both
// clocks exist since Linux 2.6.39, older than Go supports, so the call does not fail; if it ever did,
// zero for both is "never suspended".
func read(id uintptr) time.Duration {
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
