//go:build !race

package drill_test

// raceOn tells that the race detector watches: then everything takes several times as long, and the long
// series play a part of themselves.
const raceOn = false
