package job_test

import (
	"slices"
	"testing"

	"github.com/taktsched/takt/internal/job"
)

// TestOwedRanges: a cursor owes ranges in the order of time, and forgets each as it is paid.
func TestOwedRanges(t *testing.T) {
	var c job.Cursor
	all := []job.InstantRange{{From: 1000, To: 3000}, {From: 5000, To: 5000}, {From: 9000, To: 12_000}}
	for _, r := range all {
		c.Owe(r)
	}
	if got := c.OwedRanges(); !slices.Equal(got, all) {
		t.Fatalf("owes %v, should be %v", got, all)
	}
	for at, owes := range map[job.Instant]bool{999: false, 1000: true, 3000: true, 4000: false, 5000: true, 5001: false, 9000: true, 12_000: true, 12_001: false} {
		if c.Owes(at) != owes {
			t.Errorf("owes %d: %v", at, !owes)
		}
	}
	for _, step := range []struct{ next, owed, to job.Instant }{
		{2000, 2000, 3000}, {3000, 3000, 3000}, {4000, 5000, 5000}, {0, 9000, 12_000}, {12_000, 12_000, 12_000}, {13_000, 0, 0},
	} {
		if c.OwesOn(step.next); c.Owed != step.owed || c.OwedTo != step.to {
			t.Errorf("behind %d it owes %d to %d, should be %d to %d", step.next, c.Owed, c.OwedTo, step.owed, step.to)
		}
	}
	if c != (job.Cursor{}) {
		t.Errorf("%+v is left of a cursor that owes nothing", c)
	}
}

// TestOwedGrows: what is missed right behind the newest range goes into that.
func TestOwedGrows(t *testing.T) {
	var c job.Cursor
	c.Owe(job.InstantRange{From: 1000, To: 2000})
	c.OweOn(3000)
	c.Owe(job.InstantRange{From: 5000, To: 5000})
	c.OweOn(6000)
	c.Owe(job.InstantRange{From: 8000, To: 9000})
	c.OweOn(10_000)
	if got, want := c.OwedRanges(), []job.InstantRange{{From: 1000, To: 3000}, {From: 5000, To: 6000}, {From: 8000, To: 10_000}}; !slices.Equal(got, want) {
		t.Errorf("%v, should be %v", got, want)
	}
}

// TestOwedDamaged: a text that nobody wrote costs its own part at most.
func TestOwedDamaged(t *testing.T) {
	c := job.Cursor{Owed: 1, OwedTo: 2, OwedLater: "x,7-6,-3-4,10-12,9"}
	if got, want := c.OwedRanges(), []job.InstantRange{{From: 1, To: 2}, {From: 10, To: 12}}; !slices.Equal(got, want) {
		t.Errorf("%v, should be %v", got, want)
	}
	if c.OwesOn(0); c.Owed != 10 || c.OwedTo != 12 {
		t.Errorf("goes on with %d to %d", c.Owed, c.OwedTo)
	}
	if c.OwesOn(0); c != (job.Cursor{}) {
		t.Errorf("%+v is left", c)
	}
}
