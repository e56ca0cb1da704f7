//go:build race

package sqlite_test

import "testing"

// seeds of the random exam: the race detector makes SQLite, which is Go here, ten times slower, and what
// it looks for does not depend on the seed.
const seeds = 4

// judges leaves what judges the exam itself to the run without the race detector, of which `make test` makes one, too.
func judges(t *testing.T) {
	t.Helper()
	t.Skip("it looks for no race; it is run without the race detector")
}
