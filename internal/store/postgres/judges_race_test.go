//go:build race

package postgres_test

import "testing"

// judges leaves what judges the exam itself to the run without the race detector, of which `make test` makes one, too.
func judges(t *testing.T) {
	t.Helper()
	t.Skip("it looks for no race; it is run without the race detector")
}
