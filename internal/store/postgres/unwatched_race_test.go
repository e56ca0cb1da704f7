//go:build race

package postgres_test

import "testing"

// unwatched leaves a test that looks for no race to the run without the race detector, of which `make test` makes one, too (ALONE in the Makefile).
func unwatched(t *testing.T) {
	t.Helper()
	t.Skip("it looks for no race; it is run without the race detector")
}
