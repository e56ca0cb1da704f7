package takt

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// ChangeOptions say who changes something and why, and guard it.
type ChangeOptions struct {
	Author string // such as user@host
	Reason string
	// IfRevision: the change is refused with ErrConflict unless the job stands at this revision. 0: no guard.
	IfRevision int64
}

func (o ChangeOptions) query() url.Values {
	v := url.Values{}
	setNonEmpty(v, "author", o.Author)
	setNonEmpty(v, "reason", o.Reason)
	return v
}

func (o ChangeOptions) header() http.Header {
	if o.IfRevision == 0 {
		return nil
	}
	return http.Header{"If-Match": {strconv.Quote(strconv.FormatInt(o.IfRevision, 10))}}
}

// Apply creates and changes a set of jobs and calendars, all of it or nothing. Documents without a namespace go to the
// client's. Every fault of a refused set is in Problem.Errors, with fields such as
// documents[3].job.spec.pool. Sending an applied set again changes nothing, so the call is repeated while
// servers are unavailable, but not when it prunes or guards revisions.
func (c *Client) Apply(ctx context.Context, in ApplyRequest) (ApplyResult, error) {
	if in.Namespace == "" {
		in.Namespace = c.namespace
	}
	if in.Documents == nil {
		in.Documents = []ApplyDocument{}
	}
	repeatable := in.DryRun || in.Prune == ""
	for i := range in.Documents {
		repeatable = repeatable && (in.DryRun || in.Documents[i].IfRevision == 0)
	}
	for i := range in.Calendars {
		repeatable = repeatable && (in.DryRun || in.Calendars[i].IfRevision == 0)
	}
	return send[ApplyResult](ctx, c, request{op: "apply jobs", method: http.MethodPost, path: "/api/v1/apply", body: in}, repeatable)
}

// DeleteJob deletes a job. Its executions run to their end, or are cancelled when cancel is set.
func (c *Client) DeleteJob(ctx context.Context, name string, cancel bool, opt ChangeOptions) (DeletedJob, error) {
	q := opt.query()
	q.Set("running", "finish")
	if cancel {
		q.Set("running", "cancel")
	}
	return send[DeletedJob](ctx, c, request{op: "delete job " + name, method: http.MethodDelete, path: c.path("jobs", name), query: q,
		header: opt.header()}, false)
}

// PauseJob keeps a job's schedules from firing until the given instant; the zero time: until ResumeJob.
// Requests still run. opt.IfRevision is not looked at: a pause belongs to no revision.
func (c *Client) PauseJob(ctx context.Context, name string, until time.Time, opt ChangeOptions) (Job, error) {
	in := PauseRequest{Author: opt.Author, Reason: opt.Reason}
	if !until.IsZero() {
		in.Until = &until
	}
	return send[Job](ctx, c, request{op: "pause job " + name, method: http.MethodPost, path: c.path("jobs", name, "pause"), body: in}, true)
}

// ResumeJob ends a pause. Resuming a job that is not paused changes nothing.
func (c *Client) ResumeJob(ctx context.Context, name string) (Job, error) {
	return send[Job](ctx, c, request{op: "resume job " + name, method: http.MethodPost, path: c.path("jobs", name, "resume")}, true)
}

// RollbackJob makes a new revision that says what revision to said.
func (c *Client) RollbackJob(ctx context.Context, name string, to int64, opt ChangeOptions) (Job, error) {
	return send[Job](ctx, c, request{op: "roll back job " + name, method: http.MethodPost, path: c.path("jobs", name, "rollback"),
		body: RollbackRequest{To: to, Author: opt.Author, Reason: opt.Reason}, header: opt.header()}, true)
}

// Revisions lists the revisions of a job, newest first. Those of a deleted job stay readable until another
// one has its name.
func (c *Client) Revisions(ctx context.Context, name string, page Page) (JobRevisionList, error) {
	return fetch[JobRevisionList](ctx, c, "list revisions of job "+name, c.path("jobs", name, "revisions"), page.values())
}
