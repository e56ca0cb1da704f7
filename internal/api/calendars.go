package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/jobfile"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

type (
	// CalendarPath names a calendar.
	CalendarPath struct {
		NamespacePath
		Name string `path:"name" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Name of the calendar."`
	}
	putCalendarInput struct {
		CalendarPath
		Author
		IfMatch     string `header:"If-Match" maxLength:"64" doc:"ETag of the revision that the change rests on, such as \"3\"."`
		IfNoneMatch string `header:"If-None-Match" enum:"*" doc:"Only if there is no such calendar."`
		Body        takt.Calendar
	}
	calendarOutput struct {
		Status int
		ETag   string `header:"ETag" doc:"The revision, for If-Match."`
		Body   takt.Calendar
	}
	deleteCalendarInput struct {
		CalendarPath
		Author
		IfMatch string `header:"If-Match" maxLength:"64" doc:"ETag of the revision that the change rests on, such as \"3\"."`
	}
	rollbackCalendarInput struct {
		CalendarPath
		IfMatch string `header:"If-Match" maxLength:"64" doc:"ETag of the revision that the change rests on, such as \"3\"."`
		Body    takt.RollbackRequest
	}
)

// namersShown is how many of the jobs that name a calendar a read of it shows.
const namersShown = 100

func (s *server) calendars() {
	const all, one = pathPeople + "/calendars", pathPeople + "/calendars/{name}"
	people, tags := intake{limit: s.limits.Body}, []string{"calendars"}
	register(s, huma.Operation{OperationID: "listCalendars", Method: http.MethodGet, Path: all, Tags: tags,
		Summary: "List calendars by name"}, people, s.listCalendars)
	register(s, huma.Operation{OperationID: "getCalendar", Method: http.MethodGet, Path: one, Tags: tags,
		Summary: "Read a calendar, with the jobs that name it"}, people, s.getCalendar)
	register(s, huma.Operation{OperationID: "putCalendar", Method: http.MethodPut, Path: one, Tags: tags,
		Summary: "Create or change a calendar",
		Description: "The document replaces the newest revision; an equal document makes no new one. The jobs that name it keep to it; nothing of the past fires. " +
			"201 when the calendar is new."}, people, s.putCalendar)
	register(s, huma.Operation{OperationID: "deleteCalendar", Method: http.MethodDelete, Path: one, Tags: tags,
		Summary: "Delete a calendar that no job names"}, people, s.deleteCalendar)
	register(s, huma.Operation{OperationID: "rollbackCalendar", Method: http.MethodPost, Path: one + "/rollback", Tags: tags,
		Summary: "Make a new revision that says what an older one said"}, people, s.rollbackCalendar)
	register(s, huma.Operation{OperationID: "listCalendarRevisions", Method: http.MethodGet, Path: one + "/revisions", Tags: tags,
		Summary: "List the revisions of a calendar, newest first, with its deletions"}, people, s.listCalendarRevisions)
}

func (s *server) listCalendars(ctx context.Context, in *struct {
	NamespacePath
	Page
}) (*answer[takt.CalendarList], error) {
	rows, next, err := s.control.Calendars(ctx, in.NS, in.of())
	if err != nil {
		return nil, err
	}
	list := takt.CalendarList{Items: make([]takt.Calendar, len(rows)), Next: next}
	for i := range rows {
		list.Items[i] = fromCalendar(&rows[i])
	}
	return &answer[takt.CalendarList]{list}, nil
}

func (s *server) getCalendar(ctx context.Context, in *CalendarPath) (*calendarOutput, error) {
	c, err := s.control.Calendar(ctx, in.NS, in.Name)
	if err != nil {
		return nil, err
	}
	out := &calendarOutput{Status: http.StatusOK, ETag: etag(c.Revision), Body: fromCalendar(&c)}
	out.Body.Status.Jobs, _, err = s.control.CalendarJobs(ctx, in.NS, in.Name, store.Page{Limit: namersShown})
	return out, err
}

func (s *server) putCalendar(ctx context.Context, in *putCalendarInput) (*calendarOutput, error) {
	revision, err := ifRevision(in.IfMatch, in.IfNoneMatch)
	if err != nil {
		return nil, err
	}
	r, err := toCalendar(in.NS, in.Name, &in.Body)
	if err != nil {
		return nil, err
	}
	r.IfRevision, r.Change = revision, in.change()
	return calendarWritten(s.control.PutCalendar(ctx, r))
}

// calendarWritten is the answer to a write of one calendar.
func calendarWritten(a control.AppliedCalendar, err error) (*calendarOutput, error) {
	if err != nil {
		return nil, err
	}
	out := &calendarOutput{Status: http.StatusOK, ETag: etag(a.Calendar.Revision), Body: fromCalendar(&a.Calendar)}
	out.Body.Status.Effect = string(a.Effect)
	if a.Action == store.ActionCreated {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func (s *server) deleteCalendar(ctx context.Context, in *deleteCalendarInput) (*answer[takt.DeletedCalendar], error) {
	revision, err := ifRevision(in.IfMatch, "")
	if err != nil {
		return nil, err
	}
	c, err := s.control.DeleteCalendar(ctx, control.CalendarRequest{Namespace: in.NS, Name: in.Name, IfRevision: revision, Change: in.change()})
	if err != nil {
		return nil, err
	}
	return &answer[takt.DeletedCalendar]{takt.DeletedCalendar{Namespace: c.Namespace, Name: c.Name, Revision: c.Revision}}, nil
}

func (s *server) rollbackCalendar(ctx context.Context, in *rollbackCalendarInput) (*calendarOutput, error) {
	revision, err := ifRevision(in.IfMatch, "")
	if err != nil {
		return nil, err
	}
	return calendarWritten(s.control.RollbackCalendar(ctx, control.CalendarRequest{Namespace: in.NS, Name: in.Name, IfRevision: revision,
		Change: job.Change{By: in.Body.Author, Reason: in.Body.Reason}}, in.Body.To))
}

func (s *server) listCalendarRevisions(ctx context.Context, in *struct {
	CalendarPath
	Page
}) (*answer[takt.CalendarRevisionList], error) {
	rows, next, err := s.control.CalendarRevisions(ctx, in.NS, in.Name, in.of())
	if err != nil {
		return nil, err
	}
	list := takt.CalendarRevisionList{Items: make([]takt.CalendarRevision, len(rows)), Next: next}
	for i := range rows {
		r := &rows[i]
		v := takt.CalendarRevision{Revision: r.Calendar.Revision, At: r.Calendar.UpdatedAt.Time(), Author: r.Change.By, Reason: r.Change.Reason, Deleted: r.Deleted}
		if !r.Deleted {
			c := fromCalendar(&r.Calendar)
			v.Calendar, c.Status = &c, nil
		}
		if i+1 < len(rows) && !r.Deleted && !rows[i+1].Deleted {
			v.Changes = calendarChanges(&rows[i+1].Calendar, &r.Calendar)
		}
		list.Items[i] = v
	}
	return &answer[takt.CalendarRevisionList]{list}, nil
}

// toCalendar turns a document into a write. Path and document must agree.
func toCalendar(namespace, name string, d *takt.Calendar) (control.CalendarRequest, error) {
	switch {
	case d.Metadata.Name != name:
		return control.CalendarRequest{}, disagree("metadata.name")
	case d.Metadata.Namespace != "" && d.Metadata.Namespace != namespace:
		return control.CalendarRequest{}, disagree("metadata.namespace")
	}
	return control.CalendarRequest{Namespace: namespace, Name: name, Labels: d.Metadata.Labels, Spec: jobfile.CalendarOf(&d.Spec)}, nil
}

func fromDates(all []schedule.Dates) (out []takt.CalendarDates) {
	for _, d := range all {
		out = append(out, takt.CalendarDates{From: string(d.From), To: string(d.To), Name: d.Name})
	}
	return out
}

func fromCalendarSpec(s *job.CalendarSpec) takt.CalendarSpec {
	d := takt.CalendarSpec{Title: s.Title, TimeZone: s.TimeZone, Weekly: s.Weekly, Open: fromDates(s.Open), Closed: fromDates(s.Closed)}
	for _, w := range s.Daily {
		d.Daily = append(d.Daily, takt.CalendarWindow{From: w.From, To: w.To})
	}
	return d
}

// fromCalendar is the document of a calendar.
func fromCalendar(c *job.Calendar) takt.Calendar {
	return takt.Calendar{APIVersion: takt.APIVersion, Kind: "Calendar", Spec: fromCalendarSpec(&c.Spec), Status: &takt.CalendarStatus{Unfit: c.Unfit},
		Metadata: takt.CalendarMetadata{Name: c.Name, Namespace: c.Namespace, Labels: c.Labels, Revision: c.Revision,
			CreatedAt: instant(c.CreatedAt), UpdatedAt: instant(c.UpdatedAt)}}
}

func fromAppliedCalendar(a *control.AppliedCalendar, dry bool) takt.AppliedCalendar {
	out := takt.AppliedCalendar{Action: string(a.Action), Calendar: fromCalendar(&a.Calendar), Jobs: a.Jobs}
	if !dry {
		out.Effect = string(a.Effect)
	}
	if len(a.Shut) > 0 {
		out.Warnings = []takt.ProblemError{{Field: "spec", Code: "never_open", Message: "it leaves no instant to come to schedules of these jobs: " + strings.Join(a.Shut, ", "),
			Hint: "list the days to come under open, or close fewer"}}
	}
	if a.Action != store.ActionUnchanged {
		out.Changes = calendarChanges(a.Before, &a.Calendar)
	}
	return out
}

// calendarChanges are the fields that differ between two revisions; nil stands for no document.
func calendarChanges(before, after *job.Calendar) []takt.FieldChange {
	return differences(flatCalendar(before), flatCalendar(after))
}

func flatCalendar(c *job.Calendar) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if c == nil {
		return out
	}
	doc := map[string]any{"spec": fromCalendarSpec(&c.Spec)}
	if len(c.Labels) > 0 {
		doc["metadata"] = map[string]any{"labels": c.Labels}
	}
	if text, err := json.Marshal(doc); err == nil { // it was read from JSON
		flatten(out, "", text)
	}
	return out
}
