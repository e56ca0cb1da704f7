//go:build !linux

package boottime

import "time"

// asleep is by how much the wall clock ran ahead of the monotonic one since start: the larger of the two
// counts. A wall clock that is set forward ends leases early, which is the safe side.
func asleep(start time.Time) time.Duration {
	now := time.Now()
	return now.Round(0).Sub(start.Round(0)) - now.Sub(start) // Round(0) strips the monotonic reading
}
