package main

import (
	"os"
	"runtime"
)

const heapFloor = 64 << 20 // bytes

// roomyHeap keeps the garbage collector from running all the time over the small heap of a server that is busy: it
// counts this memory, which is never touched and so takes none, and waits until as much has been allocated again.
// That costs up to 128 MiB. Whoever sets GOGC or GOMEMLIMIT has decided otherwise. The returned function gives it back.
func roomyHeap() (release func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	floor := make([]byte, heapFloor)
	return func() { runtime.KeepAlive(floor) }
}
