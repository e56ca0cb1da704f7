package takt

import (
	"context"
	"net/http"
	"net/url"
)

// Calendars lists calendars by name.
func (c *Client) Calendars(ctx context.Context, page Page) (CalendarList, error) {
	return fetch[CalendarList](ctx, c, "list calendars", c.path("calendars"), page.values())
}

// Calendar reads a calendar, with the jobs that name it. ErrNotFound when there is none of that name.
func (c *Client) Calendar(ctx context.Context, name string) (Calendar, error) {
	return fetch[Calendar](ctx, c, "get calendar "+name, c.path("calendars", name), url.Values{})
}

// PutCalendar creates or replaces the calendar of k's name and returns it as stored. The jobs that name it keep to it from
// the moment that Status.Effect is effective. Putting what is already there changes nothing.
func (c *Client) PutCalendar(ctx context.Context, k Calendar, opt ChangeOptions) (Calendar, error) {
	return send[Calendar](ctx, c, request{op: "put calendar " + k.Metadata.Name, method: http.MethodPut, path: c.path("calendars", k.Metadata.Name),
		body: k, query: opt.query(), header: opt.header()}, opt.IfRevision != 0)
}

// DeleteCalendar deletes a calendar that no job names.
func (c *Client) DeleteCalendar(ctx context.Context, name string, opt ChangeOptions) (DeletedCalendar, error) {
	return send[DeletedCalendar](ctx, c, request{op: "delete calendar " + name, method: http.MethodDelete, path: c.path("calendars", name),
		query: opt.query(), header: opt.header()}, false)
}

// RollbackCalendar makes a new revision that says what revision to said.
func (c *Client) RollbackCalendar(ctx context.Context, name string, to int64, opt ChangeOptions) (Calendar, error) {
	return send[Calendar](ctx, c, request{op: "roll back calendar " + name, method: http.MethodPost, path: c.path("calendars", name, "rollback"),
		body: RollbackRequest{To: to, Author: opt.Author, Reason: opt.Reason}, header: opt.header()}, true)
}

// CalendarRevisions lists the revisions of a calendar, newest first, over all its lives.
func (c *Client) CalendarRevisions(ctx context.Context, name string, page Page) (CalendarRevisionList, error) {
	return fetch[CalendarRevisionList](ctx, c, "list revisions of calendar "+name, c.path("calendars", name, "revisions"), page.values())
}
