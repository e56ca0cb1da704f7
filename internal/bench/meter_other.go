//go:build !linux

package bench

// ofSelf: this system is not asked.
func ofSelf() map[string]float64 { return nil }

func parentOf(int) int                { return 0 }
func cpuOfFamily(int) (float64, bool) { return 0, false }
