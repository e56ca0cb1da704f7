package control

import (
	"context"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// PutRequest creates or changes a job.
type PutRequest struct {
	Namespace  string
	Name       string
	Labels     map[string]string
	Spec       job.Spec
	Faults     job.Faults // of the document that Spec cannot show
	IfRevision int64      // > 0: only if the newest revision is this one; -1: only if there is none; 0: any
	Change     job.Change
}

// Put is the answer to a PutRequest.
type Put struct {
	Row     store.JobRow // as written, with the cursors known after the wait
	Created bool         // this call made the job
	Effect  Effect
}

// PutJob writes a new revision of a job, or none when nothing differs. Errors: KindInvalid with the
// field, KindConflict "revision_changed" with the cause *Changed, and the store's.
func (c *Control) PutJob(ctx context.Context, r PutRequest) (Put, error) {
	if err := checkPut(&r); err != nil {
		return Put{}, err
	}
	if err := checkChange(r.Change); err != nil {
		return Put{}, err
	}
	if err := c.calendarsKnown(false, []PutRequest{r}); err != nil {
		return Put{}, err
	}
	put, err := c.toStore(&r, c.instant())
	if err != nil {
		return Put{}, err
	}
	written, receipt, err := c.write.PutJob(ctx, put)
	if err != nil {
		return Put{}, c.explain(ctx, r.Namespace, r.Name, r.IfRevision, err)
	}
	return c.written(ctx, written, receipt), nil
}

// written waits for the owner of a write to one job and looks at what it made of it.
func (c *Control) written(ctx context.Context, def job.Definition, receipt store.Written) Put {
	put := Put{Created: def.Revision == 1 && receipt.Entry != 0, Effect: c.effect(ctx, receipt)}
	put.Row = store.JobRow{Definition: def}
	// The write stands: a failing look at the cursors only leaves the status out.
	if row, err := c.read.Job(ctx, def.Namespace, def.Name); err == nil && row.Definition.UID == def.UID {
		put.Row.Cursors = row.Cursors
	}
	if receipt.Entry == 0 && !planned(put.Row) {
		put.Effect = Pending // an earlier, equal write still waits for its owner
	}
	return put
}

// planned tells whether the owner has computed the cursors of the row's revision.
func planned(row store.JobRow) bool {
	if row.Definition.Spec.Disabled {
		return true
	}
	for _, s := range row.Definition.Spec.Schedules {
		known := false
		for _, cur := range row.Cursors {
			known = known || cur.Schedule == s.ID && cur.Revision == row.Definition.Revision && cur.Stamp == row.Definition.Stamp()
		}
		if !known {
			return false
		}
	}
	return true
}

func checkPut(r *PutRequest) error {
	d := job.Definition{Namespace: r.Namespace, Name: r.Name, Labels: r.Labels, Spec: r.Spec}
	return r.Faults.Join(job.FaultsOf(d.Check())).Err()
}
