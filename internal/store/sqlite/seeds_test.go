//go:build !race

package sqlite_test

import "testing"

// seeds of the random exam.
const seeds = 100

// unwatched leaves a test that looks for no race to the run without the race detector, which is this.
func unwatched(*testing.T) {}
