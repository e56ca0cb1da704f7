//go:build race

package drill_test

const raceOn = true
