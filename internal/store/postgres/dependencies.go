package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qUnlink   = statement(`DELETE FROM job_dependencies WHERE child = $1`)
	qLink     = statement(`INSERT INTO job_dependencies (parent, child) VALUES ($1, $2) ON CONFLICT DO NOTHING`)
	qParents  = statement(`SELECT j.uid, j.name FROM job_dependencies d JOIN jobs j ON j.uid = d.parent WHERE d.child = $1 AND d.parent <> $1 ORDER BY j.name`)
	qChildren = statement(`SELECT j.uid, j.name FROM job_dependencies d JOIN jobs j ON j.uid = d.child WHERE d.parent = $1 AND d.child <> $1 ORDER BY j.name`)

	qLives = statement(`SELECT 1 FROM executions WHERE id = $1 UNION ALL ` + memberBy(`1`, `$1`))

	// The planner of each child is told, and each partition where an execution of it waits: it may have moved since. It leaves
	// with the commit, which cannot look first whether there are children.
	qTellChildren = statement(`INSERT INTO inbox (partition, rank, kind, namespace, job, execution, payload)
		SELECT w.place, 1, 'parent_ended', j.namespace, j.uid, u.execution, '{}'
		FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY u (execution, parent, n)` +
		eachOf("d", `SELECT child FROM job_dependencies WHERE parent = u.parent`) +
		eachOf("j", `SELECT j.namespace, j.uid, `+plannerOf+` AS planner FROM jobs j WHERE j.uid = d.child`) +
		eachOf("w", `SELECT j.planner AS place UNION ALL SELECT e.place FROM (`+awaitingIn+`) e WHERE e.place <> j.planner`) + `
		ORDER BY u.n, j.uid, w.place`)
)

// awaitingIn are the partitions in which executions of a child wait.
const awaitingIn = `SELECT DISTINCT ON (e.job_uid, e.partition) e.partition AS place FROM executions e
	WHERE e.job_uid BETWEEN d.child AND d.child AND e.state = 'scheduled' AND e.reason = 'upstream' ORDER BY e.job_uid, e.partition`

// dependencyClass is of the advisory locks under which who runs after whom changes, by namespace as those of names: no two
// transactions close a circle between them, and none takes a parent away that another one names.
const dependencyClass = 0x616674

// lockDependencies comes behind lockNames and before any row of a job.
func lockDependencies(w *link, namespaces ...string) error {
	stripes := map[int32]bool{}
	for _, namespace := range namespaces {
		stripes[stripeOf(namespace)] = true
	}
	for _, n := range slices.Sorted(maps.Keys(stripes)) {
		if _, err := w.exec(qNamesHold, int32(dependencyClass), n); err != nil {
			return err
		}
	}
	return nil
}

// dependent are the namespaces of jobs that run after others.
func dependent(items []store.PutJob) (namespaces []string) {
	for i := range items {
		if items[i].Definition.Spec.Depends() {
			namespaces = append(namespaces, items[i].Definition.Namespace)
		}
	}
	return namespaces
}

func namesOf(l *link, q query, uid job.UID) (all []store.JobName, err error) {
	err = l.each(q, []any{[16]byte(uid)}, func(rows pgx.Rows) error {
		var n store.JobName
		err := rows.Scan((*[16]byte)(&n.UID), &n.Name)
		all = append(all, n)
		return err
	})
	return all, err
}

// Children implements store.Reader.
func (s *Store) Children(ctx context.Context, parent job.UID) (names []string, err error) {
	err = s.look(ctx, "read children", func(r *link) error {
		all, err := namesOf(r, qChildren, parent)
		names = store.Names(all)
		return err
	})
	return names, err
}

// linkParents writes what a job's newest revision depends on. All jobs of its set have been written.
func linkParents(w *link, old, d *job.Definition) error {
	if (old == nil || !old.Spec.Depends()) && !d.Spec.Depends() {
		return nil
	}
	if _, err := w.exec(qUnlink, [16]byte(d.UID)); err != nil {
		return err
	}
	if d.Spec.CountsFromEnd() {
		if _, err := w.exec(qLink, [16]byte(d.UID), [16]byte(d.UID)); err != nil {
			return err
		}
	}
	for i := range d.Spec.After {
		var parent [16]byte
		found, err := w.one(qUID, []any{d.Namespace, d.Spec.After[i].Job}, &parent)
		if err != nil {
			return err
		}
		if !found {
			return store.UnknownParent(d, i)
		}
		if parent == d.UID {
			return job.OwnParent(i)
		}
		if _, err := w.exec(qLink, parent, [16]byte(d.UID)); err != nil {
			return err
		}
	}
	return nil
}

// linkJob is linkParents and checkCycle for one job by itself.
func linkJob(w *link, done *store.AppliedJob) error {
	if done.Action == store.ActionUnchanged {
		return nil
	}
	if err := linkParents(w, done.Before, &done.Definition); err != nil {
		return err
	}
	return checkCycle(w, &done.Definition)
}

// linkSet links all jobs of a set before it looks for circles, and finds all that are refused.
func linkSet(w *link, all []store.AppliedJob, refused *job.SetError) error {
	for _, link := range []func(*store.AppliedJob) error{
		func(done *store.AppliedJob) error { return linkParents(w, done.Before, &done.Definition) },
		func(done *store.AppliedJob) error { return checkCycle(w, &done.Definition) },
	} {
		for i := range all {
			if all[i].Action == store.ActionUnchanged {
				continue
			}
			err := link(&all[i])
			if e, ok := errors.AsType[*job.Error](err); ok {
				refused.Add(i, e)
			} else if err != nil {
				return err
			}
		}
		if len(refused.Items) > 0 {
			return nil
		}
	}
	return nil
}

// checkCycle comes when all jobs of a set are linked.
func checkCycle(w *link, d *job.Definition) error {
	if len(d.Spec.After) == 0 {
		return nil
	}
	return store.CheckCycle(d, func(uid job.UID) ([]store.JobName, error) { return namesOf(w, qParents, uid) })
}

// checkChildless refuses the deletion of jobs that others run after still.
func checkChildless(w *link, gone ...*job.Definition) error {
	for _, d := range gone {
		children, err := namesOf(w, qChildren, d.UID)
		if err != nil {
			return err
		}
		if len(children) > 0 {
			return store.HasChildren(d.Name, store.Names(children))
		}
	}
	return nil
}

// tellChildren puts an entry about each execution that ends into the inboxes of who runs after its job.
func (c *commit) tellChildren() error {
	var ids, uids [][16]byte
	for i := range c.batch.Executions {
		if x := &c.batch.Executions[i].Row; x.State.Ended() {
			ids, uids = append(ids, x.ID), append(uids, x.JobUID)
		}
	}
	if len(ids) > 0 {
		c.add(qTellChildren, ids, uids)
	}
	return nil
}

// matched keeps by which executions of its parents an execution was decided.
func (c *commit) matched() error {
	all := lastOf(c.batch.Matched, func(m *engine.Matched) job.ExecutionID { return m.Execution })
	if len(all) == 0 {
		return nil
	}
	texts := make([]string, len(all))
	for i := range all {
		var err error
		if texts[i], err = encode(all[i].Parents); err != nil {
			return err
		}
	}
	c.add(qMatchedPut, column(all, func(m *engine.Matched) [16]byte { return m.Execution }), texts)
	return nil
}
