package takt

import (
	"context"
	"net/http"
	"time"
)

// RescheduleOptions say when an execution is to start instead.
type RescheduleOptions struct {
	// At is the new instant; one that has passed means now.
	At time.Time
	// In is counted from now, by the server's clock. It is looked at when At is zero.
	In   time.Duration
	Note string // why; at most 1 KiB
}

func (o RescheduleOptions) request() RescheduleRequest {
	in := RescheduleRequest{Note: o.Note}
	if o.At.IsZero() {
		in.In = Duration(o.In)
	} else {
		in.At = &o.At
	}
	return in
}

// Reschedule moves an execution that waits for its instant to another one. It keeps its id and its key.
// ErrConflict when it waits no more.
func (c *Client) Reschedule(ctx context.Context, id string, opt RescheduleOptions) (Rescheduled, error) {
	return send[Rescheduled](ctx, c, request{op: "reschedule execution " + id, method: http.MethodPost,
		path: c.path("executions", id, "reschedule"), body: opt.request()}, !opt.At.IsZero())
}

// RescheduleRequested is Reschedule for what a trigger of the job with the given idempotency key made. (A key of one or two
// dots alone cannot stand in a path: take the execution's id.)
func (c *Client) RescheduleRequested(ctx context.Context, job, key string, opt RescheduleOptions) (Rescheduled, error) {
	return send[Rescheduled](ctx, c, request{op: "reschedule the request " + key + " of job " + job, method: http.MethodPost,
		path: c.path("jobs", job, "requests", key, "reschedule"), body: opt.request()}, !opt.At.IsZero())
}

// CancelRequested is Cancel for what a trigger of the job with the given idempotency key made.
func (c *Client) CancelRequested(ctx context.Context, job, key, note string) (Asked, error) {
	return send[Asked](ctx, c, request{op: "cancel the request " + key + " of job " + job, method: http.MethodPost,
		path: c.path("jobs", job, "requests", key, "cancel"), body: AskRequest{Note: note}}, false)
}
