//go:build !race

package sqlite_test

// seeds of the random exam.
const seeds = 100
