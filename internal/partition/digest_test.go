package partition_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/schedule"
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
	begin := job.Cursor{Job: job.UID{0, 9}}
	for _, tc := range []struct {
		page engine.DuePage
		want []int // sizes
	}{
		{engine.DuePage{Seq: 7, Until: 9, Items: items}, []int{1, 1, 1, 1, 1}},
		{engine.DuePage{Seq: 7, Until: 9, After: &begin, Items: items}, []int{1, 1, 1, 1, 1}},
		{engine.DuePage{Owed: true, Seq: 7, Items: items}, []int{1, 2, 2}},
		{engine.DuePage{Owed: true, Seq: 7, Items: items, Partial: true}, []int{1, 2, 2}},
		{engine.DuePage{Owed: true, Seq: 7}, []int{0}},
	} {
		var sizes []int
		var all []engine.Due
		got := partition.Digest(tc.page, true)
		after := tc.page.After // each part goes on behind the one before
		for i, ev := range got {
			p := ev.(engine.DuePage)
			if !reflect.DeepEqual(p.After, after) {
				t.Errorf("part %d of %+v goes on behind %v, not %v", i, tc.page, p.After, after)
			}
			if n := len(p.Items); n > 0 {
				after = &p.Items[n-1].Cursor
			}
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

// What other partitions have goes along with a page of executions, whole or cut.
func TestExecutionPageKeepsElsewhere(t *testing.T) {
	page := engine.ExecutionPage{Seq: 7, Asked: []job.ExecutionID{{1}, {2}, {3}}, Rows: []engine.Row{
		{Execution: job.Execution{ID: job.ExecutionID{1}}}, {Execution: job.Execution{ID: job.ExecutionID{2}}}}}
	engine.PutElsewhere(&page, &job.Execution{ID: job.ExecutionID{3}, State: job.ExecutionSucceeded, Partition: 5})
	for _, single := range []bool{false, true} {
		found := false
		for _, ev := range partition.Digest(page, single) {
			p := ev.(engine.ExecutionPage)
			at, is := p.Elsewhere[job.ExecutionID{3}]
			if is && (at.Partition != 5 || !slices.Contains(p.Asked, job.ExecutionID{3})) {
				t.Errorf("one by one %v: %+v asked %v", single, at, p.Asked)
			}
			found = found || is
		}
		if !found {
			t.Errorf("one by one %v: what partition 5 has is lost", single)
		}
	}
}

// desk is an engine with a database of schedules, of which the first ones are set aside.
type desk struct {
	t     *testing.T
	e     *engine.Engine
	all   []engine.Due
	bad   []engine.Event
	mono  time.Duration
	made  map[string]job.Trigger
	reads int
}

const deskStart = job.Instant(1_767_225_600_000) // 2026-01-01T00:00:00Z

func newDesk(t *testing.T, bad, good int, owed bool) *desk {
	cfg := engine.Default()
	cfg.PageSize = 2
	d := &desk{t: t, e: engine.New(cfg), mono: time.Second, made: map[string]job.Trigger{}}
	for i := range bad + good {
		u, name := job.UID{byte(i + 1)}, fmt.Sprintf("j%02d", i)
		def := &job.Definition{UID: u, Namespace: "default", Name: name, Revision: 1, CreatedAt: deskStart - 1000}
		def.Spec = job.Spec{Pool: "p", Handler: "h", Schedules: []job.Schedule{{ID: job.MainSchedule, Spec: schedule.Spec{Every: time.Minute}}}}
		c := job.Cursor{Job: u, Schedule: job.MainSchedule, Revision: 1, Next: deskStart}
		if owed {
			c.Owed, c.OwedTo, c.Next = deskStart-60_000, deskStart-60_000, deskStart.Add(time.Hour)
		}
		item := engine.Due{Definition: def, Cursor: c}
		if d.all = append(d.all, item); i < bad {
			d.bad = append(d.bad, engine.DuePage{Items: []engine.Due{item}})
		}
	}
	return d
}

// page reads as a store does.
func (d *desk) page(w engine.WantDue) engine.DuePage {
	p := engine.DuePage{Owed: w.Owed, Until: w.Until, After: w.After}
	for _, x := range d.all {
		switch {
		case d.made[x.Definition.Name] != "", w.Owed != (x.Cursor.Owed != 0), !w.Owed && x.Cursor.Next > w.Until:
		case w.After != nil && cmp.Compare(x.Cursor.Job[0], w.After.Job[0]) <= 0:
		case len(p.Items) == w.Limit:
			p.Partial = true
		default:
			p.Items = append(p.Items, x)
		}
	}
	d.reads++
	return p
}

// step takes events, and what they want to be read.
func (d *desk) step(events ...engine.Event) {
	r := d.e.Step(engine.Now{Mono: d.mono, Wall: deskStart.Add(d.mono)}, append(events, engine.Tick{}))
	for _, w := range r.Batch.Executions {
		d.made[w.Row.Job] = w.Row.Trigger
	}
	if r.Want.Due == nil || d.reads > 100 {
		return
	}
	for _, part := range partition.Digest(d.page(*r.Want.Due), false, d.bad...) {
		d.step(part)
	}
}

// The rows of whole pages are set aside: what is behind them is read, and planned, all the same.
func TestReadGoesOnBehindPoison(t *testing.T) {
	for _, owed := range []bool{false, true} {
		bad := 7
		if owed {
			bad = 2*job.MaxSchedules + 1 // a page of debts has as many
		}
		d := newDesk(t, bad, 3, owed)
		d.step(engine.Loaded{Owes: owed})
		for range 5 {
			d.mono += time.Second
			d.step()
		}
		if len(d.made) != 3 || d.reads > 100 {
			t.Errorf("owed %t: behind %d schedules that are set aside %v ran, after %d reads", owed, bad, d.made, d.reads)
		}
	}
}

// A page of queued executions that are all set aside is not read again and again.
func TestBacklogGoesOnBehindPoison(t *testing.T) {
	var rows []engine.Row
	for i := range 3 {
		at := deskStart.Add(time.Duration(i) * time.Second)
		rows = append(rows, engine.Row{Execution: job.Execution{ID: job.PlannedID(job.UID{1}, at), PlannedAt: at}})
	}
	last := engine.Place{At: rows[2].Execution.PlannedAt, ID: rows[2].Execution.ID}
	for _, x := range []struct {
		page    engine.BacklogPage
		bad     []engine.Row
		through engine.Place
	}{
		{engine.BacklogPage{Rows: rows, Partial: true}, rows, last},
		{engine.BacklogPage{Rows: rows, Partial: true}, rows[1:], last},
		{engine.BacklogPage{Rows: rows, Partial: true}, rows[:2], engine.Place{}},
		{engine.BacklogPage{Rows: rows}, rows, engine.Place{}},
	} {
		got := partition.Digest(x.page, false, engine.BacklogPage{Rows: x.bad})
		p := got[len(got)-1].(engine.BacklogPage)
		if len(got) != 1 || p.Through != x.through || p.Partial != x.page.Partial || len(p.Rows) != len(rows)-len(x.bad) {
			t.Errorf("without %d rows: %+v", len(x.bad), got)
		}
	}
}
