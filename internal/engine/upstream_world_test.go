package engine_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// tellChildren puts entries about what ended in a batch where the store has to: the planner of each job that depends on the
// job, and each partition where executions of such a job wait for parents.
func (d *database) tellChildren(b *engine.Batch) {
	for i := range b.Executions {
		x := &b.Executions[i].Row
		if !x.State.Ended() {
			continue
		}
		for _, u := range slices.SortedFunc(maps.Keys(d.revisions), func(a, b job.UID) int { return bytes.Compare(a[:], b[:]) }) {
			child := d.newest(u)
			if child == nil || child.Deleted != nil || !(u == x.JobUID && child.Spec.CountsFromEnd()) && !slices.ContainsFunc(child.Spec.After, func(a job.After) bool { return d.named(a.Job) == x.JobUID }) {
				continue
			}
			places := map[int]bool{d.planner(u): true}
			for p, m := range d.mates {
				for _, r := range m.live {
					if r.row.JobUID == u && awaits(r) {
						places[p] = true
					}
				}
			}
			for _, p := range slices.Sorted(maps.Keys(places)) {
				d.mate(p).post(engine.Entry{Kind: engine.EntryParentEnded, Job: u, Execution: x.ID})
			}
		}
	}
}

func awaits(r *record) bool {
	return r.row.State == job.ExecutionScheduled && r.row.Reason == job.WaitUpstream
}

// named is the uid of a job that is there.
func (d *database) named(name string) (uid job.UID) {
	for u, revisions := range d.revisions {
		if len(revisions) > 0 && revisions[len(revisions)-1].Name == name && revisions[len(revisions)-1].Deleted == nil {
			uid = u
		}
	}
	return uid
}

func (d *database) anywhere(id job.ExecutionID) *record {
	for _, m := range d.mates {
		if r := cmp.Or(m.live[id], m.history[id]); r != nil {
			return r
		}
	}
	return nil
}

func (d *database) awaitingPage(w engine.WantAwaiting) engine.AwaitingPage {
	p := engine.AwaitingPage{Seq: d.seq}
	byID := func(a, b *record) int { return bytes.Compare(a.row.ID[:], b.row.ID[:]) }
	for _, r := range slices.SortedFunc(maps.Values(d.live), byID) {
		switch {
		case !awaits(r) || bytes.Compare(r.row.ID[:], w.After[:]) <= 0:
		case len(p.Items) == w.Limit:
			p.Partial = true
		default:
			p.Items = append(p.Items, engine.Awaiting{Execution: r.row.ID, Child: r.row.JobUID})
		}
	}
	return p
}

func (d *database) upstreamPage(asks []engine.UpstreamAsk) engine.UpstreamPage {
	p := engine.UpstreamPage{Seq: d.seq, Asked: asks}
	for _, ask := range asks {
		p.Items = append(p.Items, d.upstream(ask))
	}
	return p
}

func (d *database) upstream(ask engine.UpstreamAsk) engine.Upstream {
	u := engine.Upstream{UpstreamAsk: ask, Definition: d.newest(ask.Child), Planner: d.planner(ask.Child)}
	about := d.anywhere(ask.Ended)
	if !ask.Waiting.IsZero() {
		about = d.anywhere(ask.Waiting)
	}
	if u.Definition == nil || about == nil {
		return u
	}
	u.Place = place(u.Definition.Spec.Pool)
	for i := range u.Definition.Spec.After {
		u.Parents = append(u.Parents, d.parent(&u.Definition.Spec.After[i], &about.row, !ask.Ended.IsZero()))
	}
	if u.Target, u.At = ask.Waiting, about.row.PlannedAt; u.Target.IsZero() {
		u.Target, u.At = engine.TargetOf(u.Definition, &about.row, u.Parents)
	}
	if r := d.anywhere(u.Target); r != nil {
		row := d.full(r)
		u.Row = &row
	} else {
		u.Decided = d.decided(ask.Child, u.At)
	}
	return u
}

// decided tells whether a decision says what became of an instant of a job without a schedule.
func (d *database) decided(child job.UID, at job.Instant) bool {
	for _, m := range d.mates {
		for _, x := range m.decisions {
			if x.Job == child && x.Schedule == "" && x.From <= at && at <= x.To {
				return true
			}
		}
	}
	return false
}

func (d *database) parent(a *job.After, about *job.Execution, ended bool) job.Parent {
	uid := d.named(a.Job)
	if ended && about.JobUID == uid && a.Matching() == job.MatchPlanned {
		return parentOf(a, about)
	}
	first, last := a.Day(about.PlannedAt)
	var best *record
	for _, m := range d.mates {
		for _, r := range slices.Concat(slices.Collect(maps.Values(m.history)), slices.Collect(maps.Values(m.live))) {
			x := &r.row
			var fits bool
			switch a.Matching() {
			case job.MatchLatest:
				fits = x.State.Ended()
			case job.MatchDay:
				fits = x.PlannedAt >= first && x.PlannedAt <= last
			default:
				fits = x.ID == job.PlannedID(uid, about.PlannedAt)
			}
			if fits && x.JobUID == uid && (best == nil || bytes.Compare(x.ID[:], best.row.ID[:]) > 0) {
				best = r
			}
		}
	}
	if best == nil {
		return job.Parent{Job: a.Job}
	}
	return parentOf(a, &best.row)
}

func parentOf(a *job.After, x *job.Execution) job.Parent {
	return job.Parent{Job: a.Job, Execution: x.ID, State: x.State, Round: x.Round, PlannedAt: x.PlannedAt, EndedAt: x.EndedAt}
}

// running is what the store joins to an entry about a job that counts from an end.
func (d *database) running(e *engine.Entry) {
	e.Running = nil
	for _, c := range e.Cursors {
		id := e.NewestOf(c)
		for _, m := range d.mates {
			if m.live[id] != nil && !id.IsZero() {
				e.Running = append(e.Running, c.Schedule)
			}
		}
	}
}

// after reads after=a,b:failed:latest:2h:Zone: job, on, match, within and time zone, each of the last four may be left out.
func (c *command) after() (all []job.After, err error) {
	text := c.str("after", "")
	if text == "" {
		return nil, nil
	}
	for _, one := range strings.Split(text, ",") {
		var a job.After
		for i, part := range strings.Split(one, ":") {
			switch i {
			case 0:
				a.Job = part
			case 1:
				a.On = job.On(part)
			case 2:
				a.Match = job.Match(part)
			case 3:
				if a.Within, err = time.ParseDuration(cmp.Or(part, "0")); err != nil {
					return nil, fmt.Errorf("after: %w", err)
				}
			default:
				a.TimeZone = part
			}
		}
		all = append(all, a)
	}
	return all, nil
}

// matchedRow is how an answer shows by what an execution was decided.
func (n *names) matchedRow(m *engine.Matched) string {
	var s words
	s.add(true, "parents of %s:", n.exec(m.Execution))
	for _, p := range m.Parents {
		if p.Execution.IsZero() {
			s.add(true, "%s none", p.Job)
			continue
		}
		s.add(true, "%s %s %s", p.Job, n.exec(p.Execution), p.State)
		s.add(p.Round > 0, "round %d", p.Round)
	}
	return strings.Join(s, " ")
}
