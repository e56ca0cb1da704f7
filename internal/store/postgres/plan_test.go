package postgres_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

var rewrite = flag.Bool("rewrite", false, "write the plans into testdata")

// An owner knows its rows: each hot statement finds them by key or by an index that has nothing else. What reads a whole
// table, or builds a hash of one, was chosen when the table was empty, and is what a full one is slow by. (What is made of
// arguments or of rows that a statement wrote may be scanned.)
var slow = regexp.MustCompile(`Seq Scan on \w+|Bitmap|Hash Join|Merge Join|Hash Anti|Hash Semi`)

// TestHotPlans: the plans are the same whatever the planner was told of the tables' size, and have not changed.
func TestHotPlans(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).Database(t)
	fill := openAt(t, postgres.Config{DSN: dsn, Partitions: 4})
	f := owner(t, fill)
	// All commits are of one instant, early in its month: the upkeep, which makes the month of a week later whenever its beat
	// comes, adds no table amid the test.
	at := instant(2026, 11, 1)
	batch, _ := ended(f, 1, at)
	if err := fill.Commit(t.Context(), f, batch); err != nil { // makes months
		t.Fatal(err)
	}
	postgres.MakeAhead(t.Context(), fill, at)
	f.Seq++
	plans := func(when string) string {
		s := openAt(t, postgres.Config{DSN: dsn}) // plans anew
		var b strings.Builder
		hot := postgres.HotTexts()
		for _, name := range slices.Sorted(maps.Keys(hot)) {
			plan, err := postgres.HotPlan(t.Context(), s, hot[name])
			if err != nil {
				t.Fatalf("%s, %s: %v", when, name, err)
			}
			if bad := slow.FindString(plan); bad != "" {
				t.Errorf("%s, %s: %s\n%s\n%s", when, name, bad, hot[name], plan)
			}
			fmt.Fprintf(&b, "-- %s\n%s\n\n", name, plan)
		}
		return b.String()
	}
	first := plans("never analysed")
	analyse := func() {
		if _, err := pgtest.Start(t).ExecIn(pgtest.Name(dsn), `ANALYZE`); err != nil {
			t.Fatal(err)
		}
	}
	analyse()
	if got := plans("analysed when empty"); got != first {
		t.Errorf("ANALYZE of empty tables changes plans:\n%s\nbefore:\n%s", got, first)
	}
	full := &engine.Batch{Seq: f.Seq + 1, At: at}
	for n := range 5000 {
		x, sh := benchRows(int64(n))
		x.State = []job.ExecutionState{job.ExecutionQueued, job.ExecutionRunning}[n%2]
		full.Executions = append(full.Executions, engine.ExecutionWrite{Row: x})
		full.Shards = append(full.Shards, engine.ShardWrite{Row: sh})
	}
	if err := fill.Commit(t.Context(), f, full); err != nil {
		t.Fatal(err)
	}
	if got := plans("full, and analysed when empty"); got != first {
		t.Errorf("rows change plans:\n%s\nbefore:\n%s", got, first)
	}
	analyse()
	if got := plans("analysed when full"); got != first {
		t.Errorf("ANALYZE of full tables changes plans:\n%s\nbefore:\n%s", got, first)
	}
	version, err := postgres.Major(t.Context(), fill)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", fmt.Sprintf("plans_%d.txt", version)), first)
}

// golden compares with a file that was reviewed. Other versions of PostgreSQL write plans differently: without a file there
// is nothing to compare with.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		t.Logf("no reviewed plans for this version of PostgreSQL (%s)", file)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("the plans differ from %s (go test ./internal/store/postgres -run HotPlans -rewrite writes it anew; review the diff):\n%s", file, got)
	}
}
