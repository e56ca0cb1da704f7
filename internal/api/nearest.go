package api

import (
	"slices"
	"strings"
)

// nearest is the known name that differs from key by the fewest edits, at most a third of its length;
// "" when there is none.
func nearest(key string, known map[string]*shape) string {
	if len(key) > maxFieldShown {
		return ""
	}
	names := make([]string, 0, len(known))
	for n := range known {
		names = append(names, n)
	}
	slices.Sort(names)
	best, bestCost := "", len(key)/3+1
	for _, n := range names {
		if cost := edits(strings.ToLower(key), strings.ToLower(n)); cost < bestCost {
			best, bestCost = n, cost
		}
	}
	return best
}

// edits is the Levenshtein distance of two short words.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
