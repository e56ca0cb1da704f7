package storetest

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// parentsOf are the uids of the jobs that a job runs after, as its newest revision names them.
func (w *twin) parentsOf(d *job.Definition) (uids []job.UID) {
	for _, a := range d.Spec.After {
		if j, there := w.jobs[jobName{d.Namespace, a.Job}]; there {
			uids = append(uids, j.revisions[0].UID)
		}
	}
	return uids
}

// childrenOf are the newest revisions of the jobs that run after one, by uid.
func (w *twin) childrenOf(parent job.UID) (all []job.Definition) {
	for _, j := range w.jobs {
		if d := j.revisions[len(j.revisions)-1]; slices.Contains(w.parentsOf(&d), parent) || d.UID == parent && d.Spec.CountsFromEnd() {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b job.Definition) int { return bytes.Compare(a.UID[:], b.UID[:]) })
	return all
}

func (w *twin) Children(_ context.Context, parent job.UID) ([]string, error) {
	names := []string{}
	for _, d := range w.childrenOf(parent) {
		if d.UID != parent {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// checkChildless refuses the deletion of what others name that stay.
func (w *twin) checkChildless(gone ...jobName) error {
	for at, j := range w.jobs {
		for _, a := range j.revisions[len(j.revisions)-1].Spec.After {
			if slices.Contains(gone, jobName{at.namespace, a.Job}) && !slices.Contains(gone, at) {
				return refuse(job.KindConflict, "job_has_children")
			}
		}
	}
	return nil
}

// checkSet refuses the jobs of a set that name what is not there, or themselves; when there are none, those that run after
// themselves by way of others.
func (w *twin) checkSet(all []store.AppliedJob, refused *job.SetError) {
	for _, check := range []func(*job.Definition) error{w.checkNames, w.checkCircle} {
		for i := range all {
			if all[i].Action == store.ActionUnchanged {
				continue
			}
			if e, bad := errors.AsType[*job.Error](check(&all[i].Definition)); bad {
				refused.Add(i, e)
			}
		}
		if len(refused.Items) > 0 {
			return
		}
	}
}

func (w *twin) checkAfter(d *job.Definition) error {
	if err := w.checkNames(d); err != nil {
		return err
	}
	return w.checkCircle(d)
}

func (w *twin) checkNames(d *job.Definition) error {
	for _, a := range d.Spec.After {
		if _, there := w.jobs[jobName{d.Namespace, a.Job}]; !there {
			return refuse(job.KindInvalid, "parent_not_found")
		}
		if a.Job == d.Name {
			return refuse(job.KindInvalid, "dependency_cycle")
		}
	}
	return nil
}

func (w *twin) checkCircle(d *job.Definition) error {
	above := w.parentsOf(d)
	for i := 0; i < len(above); i++ {
		if above[i] == d.UID {
			return refuse(job.KindInvalid, "dependency_cycle")
		}
		for _, uid := range w.parentsOf(w.definition(above[i], 0)) {
			if !slices.Contains(above, uid) {
				above = append(above, uid)
			}
		}
	}
	return nil
}

// tellChildren is what the end of an execution puts into inboxes.
func (w *twin) tellChildren(x *job.Execution) {
	for _, d := range w.childrenOf(x.JobUID) {
		places := map[int]bool{w.planner(d.UID): true}
		for _, e := range w.live {
			if e.JobUID == d.UID && awaits(&e) {
				places[e.Partition] = true
			}
		}
		for _, p := range slices.Sorted(maps.Keys(places)) {
			w.addEntry(p, d.Namespace, false, engine.Entry{Kind: engine.EntryParentEnded, Job: d.UID, Execution: x.ID})
			w.told++
		}
	}
}

func awaits(e *job.Execution) bool {
	return e.State == job.ExecutionScheduled && e.Reason == job.WaitUpstream
}

func (w *twin) UpstreamPage(_ context.Context, partition int, asks []engine.UpstreamAsk) (engine.UpstreamPage, error) {
	out := engine.UpstreamPage{Seq: w.parts[partition].Seq}
	var err error
	out.Asked, out.Items, err = store.ReadUpstreams(twinReads{w}, asks)
	return out, err
}

func (w *twin) Upstream(_ context.Context, x job.Execution) (engine.Upstream, []job.Parent, error) {
	u, err := store.ReadUpstream(twinReads{w}, engine.UpstreamAsk{Child: x.JobUID, Waiting: x.ID})
	return u, w.matched[x.ID], err
}

func (w *twin) Given(_ context.Context, asks []store.GivenAsk) (all [][]store.Given, err error) {
	for _, ask := range asks {
		one, err := store.ReadGiven(twinReads{w}, ask)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (w *twin) AwaitingPage(_ context.Context, partition int, want engine.WantAwaiting) (engine.AwaitingPage, error) {
	out := engine.AwaitingPage{Seq: w.parts[partition].Seq}
	for _, e := range ordered(w.live, byID) {
		if e.Partition != partition || !awaits(&e) || bytes.Compare(e.ID[:], want.After[:]) <= 0 {
			continue
		}
		if len(out.Items) == want.Limit {
			out.Partial = true
			break
		}
		out.Items = append(out.Items, engine.Awaiting{Execution: e.ID, Child: e.JobUID})
	}
	return out, nil
}

// twinReads implements store.UpstreamReads and store.GivenReads.
type twinReads struct{ *twin }

func (r twinReads) Newest(uid job.UID) (*job.Definition, int, int, error) {
	d := r.definition(uid, 0)
	if d == nil {
		return nil, 0, 0, nil
	}
	return d, r.planner(uid), r.place(uid), nil
}

func (r twinReads) UIDOf(namespace, name string) (uid job.UID, err error) {
	if j, there := r.jobs[jobName{namespace, name}]; there {
		uid = j.revisions[0].UID
	}
	return uid, nil
}

func (r twinReads) Find(id job.ExecutionID) (*engine.Row, error) {
	e, there := r.find(id)
	if !there {
		return nil, nil //nolint:nilnil // as the contract has it
	}
	return &engine.Row{Execution: e}, nil
}

func (r twinReads) NewestBetween(d *job.Definition, parent job.UID, name string, first, last job.ExecutionID, ended bool) (newest *engine.Row, err error) {
	look := func(all map[job.ExecutionID]job.Execution) {
		left := store.NewestOf
		for _, e := range slices.Backward(ordered(all, byID)) {
			if e.Job != name || e.Namespace != d.Namespace || e.JobUID != parent || bytes.Compare(e.ID[:], first[:]) < 0 || bytes.Compare(e.ID[:], last[:]) >= 0 {
				continue
			}
			if row := (&engine.Row{Execution: e}); newest == nil || store.Later(row, newest) {
				newest = row
			}
			if left--; left == 0 {
				return
			}
		}
	}
	look(r.history)
	if !ended {
		look(r.live)
	}
	return newest, nil
}

func (r twinReads) Decided(child job.UID, at job.Instant) (bool, error) {
	all, err := r.DecisionsIn(context.Background(), child, []string{""}, at, at)
	return len(all) > 0, err
}

func (r twinReads) Fill(row *engine.Row) error {
	*row = r.row(row.Execution)
	return nil
}

func (r twinReads) Matched(id job.ExecutionID) ([]job.Parent, error) { return r.matched[id], nil }

func (r twinReads) EachShard(row *engine.Row, from, limit int, see func(*job.Shard) error) error {
	shown := 0
	return store.SeeFrom(r.shardsOf(row.Execution.ID), from, func(s *job.Shard) error {
		if shown++; shown > limit {
			return store.ErrEnough
		}
		return see(s)
	})
}
