//go:build !race

package postgres_test

import "testing"

// judges leaves what judges the exam itself to the run without the race detector, which is this.
func judges(*testing.T) {}
