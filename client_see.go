package takt

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Explain tells what became, or becomes, of an instant of a job. at is RFC 3339, or a reading such as 2026-03-08T02:30 of
// the clocks in the job's time zone, or 2026-03-08T02:30[Asia/Shanghai] in another.
func (c *Client) Explain(ctx context.Context, job, at string) (Explanation, error) {
	return fetch[Explanation](ctx, c, "explain job "+job, c.path("jobs", job, "explain"), url.Values{"at": {at}})
}

// Upcoming lists the planned instants to come, of a job or (job "") of all, for the given time; 0: 24 h.
func (c *Client) Upcoming(ctx context.Context, job string, within time.Duration, page Page) (UpcomingList, error) {
	v := page.values()
	setNonEmpty(v, "job", job)
	if within != 0 {
		v.Set("for", Duration(within).String())
	}
	return fetch[UpcomingList](ctx, c, "look ahead", c.path("upcoming"), v)
}

// Backfill runs a job for each planned instant of a range of the past that has no succeeded execution. It is not repeated
// by itself: after ErrUnavailable look into Backfills.
func (c *Client) Backfill(ctx context.Context, job string, in BackfillRequest) (Backfill, error) {
	return send[Backfill](ctx, c, request{op: "backfill job " + job, method: http.MethodPost, path: c.path("jobs", job, "backfills"), body: in}, in.DryRun)
}

// CancelBackfill ends a backfill: nothing more is started.
func (c *Client) CancelBackfill(ctx context.Context, id string, in CancelBackfillRequest) (Backfill, error) {
	return send[Backfill](ctx, c, request{op: "cancel backfill " + id, method: http.MethodPost, path: c.path("backfills", id, "cancel"), body: in}, false)
}

// BackfillByID reads one.
func (c *Client) BackfillByID(ctx context.Context, id string) (Backfill, error) {
	return fetch[Backfill](ctx, c, "read backfill "+id, c.path("backfills", id), nil)
}

// Backfills lists them, newest first; job "" means every job.
func (c *Client) Backfills(ctx context.Context, job string, page Page) (BackfillList, error) {
	v := page.values()
	setNonEmpty(v, "job", job)
	return fetch[BackfillList](ctx, c, "list backfills", c.path("backfills"), v)
}
