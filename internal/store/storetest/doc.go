// Package storetest is the exam that every adapter of the store contract passes: tables of cases, one
// file per role, and random histories compared with an in-memory twin that is too simple to be wrong in the same
// way. An adapter's test calls Run; a mutant's test calls Failure and wants one.
package storetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/taktsched/takt/internal/store"
)

// TB is what the exam needs of *testing.T, so that a recorder can take its place.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any) // does not return
}

// Harness says how to make the adapter under examination.
type Harness struct {
	// Open makes an empty store with the given number of partitions. The exam closes it. It may be called by many
	// goroutines.
	Open func(tb TB, partitions int) store.Store
	// Seeds is the number of random histories, 0 means 100; Operations is their length, 0 means 1,000.
	Seeds, Operations int
	// First is how the names of the cases begin that Judge holds first: those that are likely to find a mutant.
	First string
}

func (h Harness) size() (seeds, operations int) {
	seeds, operations = h.Seeds, h.Operations
	if seeds == 0 {
		seeds = 100
	}
	if operations == 0 {
		operations = 1000
	}
	return seeds, operations
}

// examCase is one named case on a fresh store with two partitions.
type examCase struct {
	name string
	run  func(tb TB, s store.Store)
}

func allCases() []examCase {
	var all []examCase
	for _, role := range [][]examCase{partitionCases, serverCases, commitCases, engineCases, controlCases, readerCases, byteCases, logCases, jobCases, retentionCases, filterCases, moveCases, followCases, forgetCases, scheduledCases, calendarCases, upstreamCases, givenCases, backfillCases, misfireCases, bulkCases, blockCases, toldCases, lotCases} {
		all = append(all, role...)
	}
	return all
}

// Run holds the exam. Seeds run in parallel.
func Run(t *testing.T, h Harness) {
	for _, c := range allCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			runCase(t, h, c)
		})
	}
	seeds, operations := h.size()
	for seed := range seeds {
		t.Run(fmt.Sprintf("Random/seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			runHistory(t, h, uint64(seed), operations)
		})
	}
}

func runCase(tb TB, h Harness, c examCase) {
	tb.Helper()
	s := h.Open(tb, 2)
	defer closeStore(tb, s)
	c.run(tb, s)
}

func closeStore(tb TB, s store.Store) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Errorf("Close: %v", err)
	}
}

// Verdict is how an adapter did: the first complaints of the cases and of the random histories, "" for none.
type Verdict struct{ Case, History string }

// Judge holds the exam without a *testing.T, up to the first complaint of each half.
func Judge(h Harness) Verdict {
	var v Verdict
	cases := allCases()
	slices.SortStableFunc(cases, func(a, b examCase) int {
		if first := strings.HasPrefix(a.name, h.First); first != strings.HasPrefix(b.name, h.First) {
			return map[bool]int{true: -1, false: 1}[first]
		}
		return 0
	})
	for _, c := range cases {
		if v.Case = record(func(tb TB) { runCase(tb, h, c) }); v.Case != "" {
			v.Case = c.name + ": " + v.Case
			break
		}
	}
	seeds, operations := h.size()
	for seed := range seeds {
		if v.History = record(func(tb TB) { runHistory(tb, h, uint64(seed), operations) }); v.History != "" {
			v.History = fmt.Sprintf("seed %d: %s", seed, v.History)
			break
		}
	}
	return v
}

// recorder keeps the first complaint.
type recorder struct {
	mu    sync.Mutex
	first string
}

func (*recorder) Helper()             {}
func (*recorder) Logf(string, ...any) {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first == "" {
		r.first = fmt.Sprintf(format, args...)
	}
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// record runs f in a goroutine of its own, which Fatalf may end.
func record(f func(TB)) string {
	var r recorder
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(&r)
	}()
	<-done
	return r.first
}

var ctx = context.Background()
