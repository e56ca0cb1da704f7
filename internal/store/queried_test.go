package store_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/filter"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// A term on planned is about the instant that is shown; the list is in the order of the first one.
func TestQueriedRescheduled(t *testing.T) {
	t.Parallel()
	const day = 24 * 3_600_000
	execution := func(first, now job.Instant, state job.ExecutionState) job.Execution {
		return job.Execution{ID: job.RequestedID(first*day, [10]byte{1}), Namespace: "ns", PlannedAt: now * day, State: state}
	}
	all := []job.Execution{ // newest first
		execution(50, 20, job.ExecutionScheduled), // moved to an earlier day
		execution(40, 40, job.ExecutionScheduled),
		execution(35, 1, job.ExecutionFailed), // moved, then run: it ends no list
		execution(30, 30, job.ExecutionFailed),
		execution(10, 25, job.ExecutionScheduled), // moved to a later day
		execution(5, 5, job.ExecutionScheduled),
	}
	listed := func(_ context.Context, f store.ExecutionFilter) (rows []job.Execution, _ string, err error) {
		var after job.ExecutionID
		more, err := store.ParseAfter("e", f.After, &after)
		for _, e := range all {
			if (!more || bytes.Compare(e.ID[:], after[:]) < 0) && (f.State == "" || f.State == e.State) {
				rows = append(rows, e)
			}
		}
		return rows, "", err
	}
	for text, want := range map[string][]job.Instant{
		"state:scheduled planned<1970-02-01":                    {50, 10, 5},
		"state:scheduled planned>1970-01-15":                    {50, 40, 10},
		"state:scheduled planned>1970-01-15 planned<1970-02-01": {50, 10},
		"planned>1970-01-29":                                    {40, 30},
		"planned<1970-01-03":                                    nil, // first planned later: not found, unless by state:scheduled
	} {
		q, err := filter.Parse(text, time.UnixMilli(1<<40))
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := store.Queried(t.Context(), "e", store.ExecutionFilter{Namespace: "ns", Query: q}, listed)
		var got []job.Instant
		for i := range rows {
			got = append(got, rows[i].ID.PlannedAt()/day)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: first planned on days %v, %v, want %v", text, got, err, want)
		}
	}
}
