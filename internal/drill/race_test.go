//go:build race

package drill_test

import "testing"

const raceOn = true

// long leaves a case that takes minutes under the race detector to the run without it, of which `make test` makes one, too.
func long(t *testing.T) {
	t.Helper()
	t.Skip("long; it is played without the race detector")
}
