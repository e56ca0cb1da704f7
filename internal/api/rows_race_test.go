//go:build race

package api_test

// manyRows is how many rows a list has that is walked: the race detector makes that ten times slower, and `make test` walks the whole of it without.
const manyRows = 10_000
