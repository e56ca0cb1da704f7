package partition_test

import (
	"reflect"
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

func dueOf(u byte, name string) engine.Due {
	return engine.Due{Cursor: job.Cursor{Job: job.UID{u}, Schedule: name}}
}

// A page of schedules stays what it is: one of debts, above all, for the engine waits for that before it asks for another.
func TestDuePageStaysWhole(t *testing.T) {
	items := []engine.Due{dueOf(1, "x"), dueOf(1, "y"), dueOf(2, "x")}
	for _, page := range []engine.DuePage{
		{Owed: true, Seq: 7},
		{Owed: true, Seq: 7, Items: items},
		{Owed: true, Seq: 7, Items: items, Partial: true},
		{Seq: 7, Until: 9, Items: items},
		{Seq: 7, Until: 9, Items: items, Partial: true},
	} {
		if got := partition.Digest(page, false); !reflect.DeepEqual(got, []engine.Event{page}) {
			t.Errorf("%+v became %+v", page, got)
		}
	}
}

// One by one: schedules that are due each alone, jobs that owe each with all their schedules. Only the last part of the last
// page says that there are no more.
func TestDuePageOneByOne(t *testing.T) {
	items := []engine.Due{dueOf(1, "x"), dueOf(2, "x"), dueOf(2, "y"), dueOf(3, "x"), dueOf(3, "y")}
	for _, tc := range []struct {
		page engine.DuePage
		want []int // sizes
	}{
		{engine.DuePage{Seq: 7, Until: 9, Items: items}, []int{1, 1, 1, 1, 1}},
		{engine.DuePage{Owed: true, Seq: 7, Items: items}, []int{1, 2, 2}},
		{engine.DuePage{Owed: true, Seq: 7, Items: items, Partial: true}, []int{1, 2, 2}},
		{engine.DuePage{Owed: true, Seq: 7}, []int{0}},
	} {
		var sizes []int
		var all []engine.Due
		got := partition.Digest(tc.page, true)
		for i, ev := range got {
			p := ev.(engine.DuePage)
			sizes, all = append(sizes, len(p.Items)), append(all, p.Items...)
			if p.Owed != tc.page.Owed || p.Seq != 7 || p.Until != tc.page.Until || p.Partial != (tc.page.Partial || i < len(got)-1) {
				t.Errorf("part %d of %+v: %+v", i, tc.page, p)
			}
		}
		if !reflect.DeepEqual(sizes, tc.want) || len(all) != len(tc.page.Items) || len(all) > 0 && !reflect.DeepEqual(all, items) {
			t.Errorf("%+v became parts of %v: %+v", tc.page, sizes, all)
		}
	}
}
