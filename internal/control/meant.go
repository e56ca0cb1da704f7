package control

import (
	"context"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/filter"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// instantMeant sets At to the planned instant that text means, and gives the revision in force the calendars of then.
func (c *Control) instantMeant(ctx context.Context, ev *Evidence, text string) error {
	revision, asked := ev.InForce, ev.At
	ev.Today = revision
	var err error
	if ev.InForce, err = c.keepTo(ctx, revision, asked); err != nil {
		return err
	}
	if err = c.mean(ctx, ev, text); err != nil || ev.At == asked {
		return err
	}
	d := ev.Newest
	then, err := c.revisionsAt(ctx, d.Namespace, d.Name, ev.At.Time().Format(time.RFC3339Nano))
	if err != nil {
		return err
	}
	if ev.Asked != 0 && then.InForce != nil && then.InForce.Revision != revision.Revision {
		return c.editedWithin(ctx, ev, then.InForce, text)
	}
	ev.InForce, err = c.keepTo(ctx, revision, ev.At)
	return err
}

// editedWithin is for a second in which the job was edited, before the instant that the old revision has in it: what the new one
// has behind the edit is meant, else that instant of the old one, which is none any more.
func (c *Control) editedWithin(ctx context.Context, ev *Evidence, revision *job.Definition, text string) (err error) {
	again := *ev
	again.At, again.Asked, again.Today = ev.Asked, 0, revision
	if again.InForce, err = c.keepTo(ctx, revision, ev.At); err != nil {
		return err
	}
	*ev, again = again, *ev
	asked := ev.At
	if err := c.mean(ctx, ev, text); err != nil {
		return err
	}
	if ev.At > revision.UpdatedAt {
		return nil
	}
	ev.At, ev.Asked = again.At, asked
	return nil
}

// mean sets At to the planned instant that text, which named it, means: lists show whole seconds, and a text without a
// fraction means any planned instant of its second.
func (c *Control) mean(ctx context.Context, ev *Evidence, text string) error {
	if ev.InForce == nil {
		return nil
	}
	lines := linesOf(ev.InForce)
	if reading, is := schedule.ReadingOf(text); is && ev.readClocks(lines, ev.clocksOf(text), reading) {
		return nil
	}
	asked := ev.At
	ev.At = meant(lines, asked)
	if _, is := having(lines, ev.At); is || asked%1000 != 0 || strings.ContainsAny(text, ".,") {
		return nil
	}
	if at, is := within(lines, ev.Cursors, asked); is {
		ev.mean(at)
		return nil
	}
	// What ends make has instants that no schedule tells.
	d := ev.Newest
	rows, _, err := c.read.Executions(ctx, store.ExecutionFilter{Namespace: d.Namespace, Job: d.Name, Page: store.Page{Limit: 1}, Query: plannedIn(asked, asked.Add(time.Second))})
	if err != nil {
		return err
	}
	if len(rows) > 0 && rows[0].JobUID == d.UID && (rows[0].Trigger == job.TriggerAfter || rows[0].ID == job.PlannedID(d.UID, rows[0].PlannedAt)) {
		ev.mean(rows[0].PlannedAt)
		return nil
	}
	decided, err := c.read.DecisionsIn(ctx, d.UID, []string{""}, asked, asked.Add(time.Second)-1)
	if err != nil {
		return err
	}
	if len(decided) > 0 {
		ev.mean(decided[0].From)
		return nil
	}
	bare := bareLines(ev.InForce) // the instant may be one that a calendar closes
	if ev.At = meant(bare, asked); ev.At == asked {
		if at, is := within(bare, nil, asked); is {
			ev.mean(at)
		}
	}
	return nil
}

// plannedIn asks for executions of planned instants from one up to another.
func plannedIn(from, before job.Instant) filter.Query {
	term := func(op filter.Op, at job.Instant) filter.Term {
		return filter.Term{Field: "planned", Op: op, Number: int64(at)}
	}
	return filter.Query{Terms: []filter.Term{term(filter.AtLeast, from), term(filter.Less, before),
		{Field: "trigger", Op: filter.Is, Not: true, Texts: []string{string(job.TriggerRequest)}}}}
}

// mean sets At to another instant than the one that was asked for.
func (ev *Evidence) mean(at job.Instant) {
	if at != ev.At {
		ev.At, ev.Asked = at, ev.At
	}
}

// within is the first planned instant of a second.
func within(lines []line, cursors []job.Cursor, second job.Instant) (best job.Instant, is bool) {
	for _, l := range lines {
		next, ok := l.s.Next((second - 1).Time())
		at := job.InstantOf(next)
		if l.delayed() {
			at = cursorOf(cursors, l.id).Next
			ok = at >= second
		}
		if ok && at < second.Add(time.Second) && (!is || at < best) {
			best, is = at, true
		}
	}
	return best, is
}

// meant is the planned instant that a person means by at: itself, or where the spread has moved it.
func meant(lines []line, at job.Instant) job.Instant {
	if _, is := having(lines, at); is {
		return at
	}
	for _, l := range lines {
		for next, ok := l.s.Next(at.Add(-time.Millisecond).Time()); ok && next.Sub(at.Time()) <= schedule.MaxJitter; next, ok = l.s.Next(next) {
			if from := schedule.Nominal(l.s, next); from.Equal(at.Time()) {
				return job.InstantOf(next)
			} else if from.After(at.Time().Add(schedule.MaxJitter)) {
				break
			}
		}
	}
	return at
}
