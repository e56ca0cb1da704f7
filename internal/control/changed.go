package control

import (
	"context"
	"errors"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Changed is the cause of a "revision_changed": what the job said at the revision that the caller knew, and
// what it says now.
type Changed struct {
	Base, Have store.Revision
}

// Error says that it changed; the words are made where documents are known.
func (c *Changed) Error() string { return "changed by " + c.Have.Change.By }

func asError(err error) (*job.Error, bool) { return errors.AsType[*job.Error](err) }

func asSet(err error) (*job.SetError, bool) { return errors.AsType[*job.SetError](err) }

// explain adds to a "revision_changed" what has changed since. When that can not be read, the error stays
// as it is.
func (c *Control) explain(ctx context.Context, namespace, name string, base int64, err error) error {
	e, ok := asError(err)
	if !ok || e.Code != "revision_changed" || base <= 0 {
		return err
	}
	row, readErr := c.read.Job(ctx, namespace, name)
	if readErr != nil || row.Definition.Revision <= base {
		return err
	}
	var changed Changed
	if changed.Base, readErr = c.write.Revision(ctx, namespace, name, base); readErr != nil {
		return err
	}
	if changed.Have, readErr = c.write.Revision(ctx, namespace, name, row.Definition.Revision); readErr != nil {
		return err
	}
	return e.WithCause(&changed)
}

func (c *Control) explainSet(ctx context.Context, items []store.PutJob, err error) error {
	set, ok := asSet(err)
	if !ok {
		return err
	}
	for i := range set.Items {
		x := &set.Items[i]
		if x.Calendar {
			continue
		}
		d := &items[x.Index]
		if e, ok := asError(c.explain(ctx, d.Definition.Namespace, d.Definition.Name, d.IfRevision, x.Err)); ok {
			x.Err = e
		}
	}
	return set
}
