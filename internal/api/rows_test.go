//go:build !race

package api_test

// manyRows is how many rows a list has that is walked.
const manyRows = 100_000
