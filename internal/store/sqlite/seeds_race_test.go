//go:build race

package sqlite_test

// seeds of the random exam: the race detector makes SQLite, which is Go here, ten times slower, and what
// it looks for does not depend on the seed.
const seeds = 4
