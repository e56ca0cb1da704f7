package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qUnlink   = statement(`DELETE FROM job_dependencies WHERE child = ?`)
	qLink     = statement(`INSERT INTO job_dependencies (parent, child) VALUES (?, ?) ON CONFLICT DO NOTHING`)
	qParents  = statement(`SELECT j.uid, j.name FROM job_dependencies d JOIN jobs j ON j.uid = d.parent WHERE d.child = ?1 AND d.parent <> ?1 ORDER BY j.name`)
	qChildren = statement(`SELECT j.uid, j.name FROM job_dependencies d JOIN jobs j ON j.uid = d.child WHERE d.parent = ?1 AND d.child <> ?1 ORDER BY j.name`)

	qHasChildren = statement(`SELECT 1 FROM job_dependencies WHERE parent = ? LIMIT 1`)
	// The planner of each child is told, and each partition where an execution of it waits: it may have moved since.
	qTellChildren = statement(`INSERT INTO inbox (partition, rank, kind, namespace, job, execution, payload)
		SELECT place, 1, 'parent_ended', namespace, uid, ?2, '{}' FROM (
			SELECT ` + plannerOf + ` AS place, j.namespace, j.uid FROM job_dependencies d JOIN jobs j ON j.uid = d.child WHERE d.parent = ?1
			UNION
			SELECT e.partition, j.namespace, j.uid FROM job_dependencies d JOIN jobs j ON j.uid = d.child
				JOIN executions e INDEXED BY executions_upstream ON e.job_uid = d.child AND e.state = 'scheduled' AND e.reason = 'upstream' WHERE d.parent = ?1)
		ORDER BY uid, place`)
)

func namesOf(l *link, q query, uid job.UID) (all []store.JobName, err error) {
	err = l.each(q, []any{uid[:]}, func(rows *sql.Rows) error {
		var id sql.RawBytes
		var n store.JobName
		err := rows.Scan(&id, &n.Name)
		copy(n.UID[:], id)
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
	if _, err := w.exec(qUnlink, d.UID[:]); err != nil {
		return err
	}
	if d.Spec.CountsFromEnd() {
		if _, err := w.exec(qLink, d.UID[:], d.UID[:]); err != nil {
			return err
		}
	}
	for i := range d.Spec.After {
		var parent []byte
		found, err := w.one(qUID, []any{d.Namespace, d.Spec.After[i].Job}, &parent)
		if err != nil {
			return err
		}
		if !found {
			return store.UnknownParent(d, i)
		}
		if bytes.Equal(parent, d.UID[:]) {
			return job.OwnParent(i)
		}
		if _, err := w.exec(qLink, parent, d.UID[:]); err != nil {
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
	has := map[job.UID]bool{}
	for i := range c.batch.Executions {
		x := &c.batch.Executions[i].Row
		if !x.State.Ended() || c.skip.children {
			continue
		}
		some, known := has[x.JobUID]
		if !known {
			var one int64
			var err error
			if some, err = c.one(qHasChildren, []any{x.JobUID[:]}, &one); err != nil {
				return err
			}
			has[x.JobUID] = some
		}
		if some {
			if _, err := c.exec(qTellChildren, x.JobUID[:], x.ID[:]); err != nil {
				return err
			}
		}
	}
	return nil
}
