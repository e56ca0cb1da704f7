//go:build !race

package drill_test

import "testing"

// raceOn tells that the race detector watches: then everything takes several times as long, and the long
// series play a part of themselves.
const raceOn = false

// long leaves a case that takes minutes under the race detector to the run without it, which is this.
func long(*testing.T) {}
