//go:build !race

package postgres_test

import "testing"

// unwatched leaves a test that looks for no race to the run without the race detector, which is this.
func unwatched(*testing.T) {}
