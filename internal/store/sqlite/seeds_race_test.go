//go:build race

package sqlite_test

import "testing"

// seeds of the random exam: the race detector makes SQLite, which is Go here, ten times slower, and what
// it looks for does not depend on the seed.
const seeds = 4

// unwatched leaves a test that looks for no race to the run without the race detector, of which `make test` makes one, too (ALONE in the Makefile).
func unwatched(t *testing.T) {
	t.Helper()
	t.Skip("it looks for no race; it is run without the race detector")
}
