//go:build !race

package sqlite_test

import "testing"

// seeds of the random exam.
const seeds = 100

// judges leaves what judges the exam itself to the run without the race detector, which is this.
func judges(*testing.T) {}
