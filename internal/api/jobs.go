package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

const pathApply = "/api/v1/apply"

type (
	deleteJobInput struct {
		JobPath
		Author
		IfMatch string `header:"If-Match" maxLength:"64" doc:"ETag of the revision that the change rests on, such as \"3\"."`
		Running string `query:"running" enum:"finish,cancel" default:"finish" doc:"What becomes of executions that have not ended."`
	}
	pauseInput struct {
		JobPath
		Body *takt.PauseRequest
	}
	rollbackInput struct {
		JobPath
		IfMatch string `header:"If-Match" maxLength:"64" doc:"ETag of the revision that the change rests on, such as \"3\"."`
		Body    takt.RollbackRequest
	}
	// Author says who changes something and why.
	Author struct {
		By     string `query:"author" maxLength:"256" doc:"Who asks, such as user@host."`
		Reason string `query:"reason" maxLength:"1024" doc:"Why."`
	}
)

func (a Author) change() job.Change { return job.Change{By: a.By, Reason: a.Reason} }

// setBodies is how many times the size of one document a set of them may have.
const setBodies = 16

func (s *server) jobs() {
	const one = pathPeople + "/jobs/{name}"
	people, tags := intake{limit: s.limits.Body}, []string{"jobs"}
	register(s, huma.Operation{OperationID: "applyJobs", Method: http.MethodPost, Path: pathApply, Tags: tags,
		Summary: "Create and change a set of jobs and calendars, all or nothing",
		Description: "Every document is judged; when one is refused, nothing is written and each fault is named with its document. " +
			"With dryRun nothing is written either way."}, intake{limit: setBodies * s.limits.Body, patience: setTimeout}, s.applyJobs)
	register(s, huma.Operation{OperationID: "deleteJob", Method: http.MethodDelete, Path: one, Tags: tags,
		Summary:     "Delete a job",
		Description: "It plans nothing more. What it did stays readable. A job created later under the name is another one."}, people, s.deleteJob)
	register(s, huma.Operation{OperationID: "pauseJob", Method: http.MethodPost, Path: one + "/pause", Tags: tags,
		Summary: "Keep a job's schedules from firing; requests still run"}, people, s.pauseJob)
	register(s, huma.Operation{OperationID: "resumeJob", Method: http.MethodPost, Path: one + "/resume", Tags: tags,
		Summary: "End a pause; what it held is recorded as skipped"}, people, s.resumeJob)
	register(s, huma.Operation{OperationID: "rollbackJob", Method: http.MethodPost, Path: one + "/rollback", Tags: tags,
		Summary: "Make a new revision that says what an older one said"}, people, s.rollbackJob)
	register(s, huma.Operation{OperationID: "listRevisions", Method: http.MethodGet, Path: one + "/revisions", Tags: tags,
		Summary: "List the revisions of a job, newest first; of a deleted job too"}, people, s.listRevisions)
}

func (s *server) applyJobs(ctx context.Context, in *struct{ Body takt.ApplyRequest }) (*answer[takt.ApplyResult], error) {
	b := &in.Body
	r := control.ApplyRequest{DryRun: b.DryRun, Change: job.Change{By: b.Author, Reason: b.Reason}}
	if b.Prune != "" {
		selector, err := job.ParseSelector(b.Prune)
		if err != nil {
			return nil, underField(err, "prune")
		}
		r.Prune = &selector
	}
	for i := range b.Calendars {
		d := &b.Calendars[i]
		put, err := toCalendar(cmp.Or(d.Calendar.Metadata.Namespace, b.Namespace, "default"), d.Calendar.Metadata.Name, &d.Calendar)
		if err != nil {
			return nil, err // there is no path to be at odds with
		}
		put.IfRevision = d.IfRevision
		r.Calendars = append(r.Calendars, put)
	}
	for i := range b.Documents {
		d := &b.Documents[i]
		put, err := toPut(cmp.Or(d.Job.Metadata.Namespace, b.Namespace, "default"), d.Job.Metadata.Name, &d.Job)
		if err != nil {
			return nil, err // likewise
		}
		put.IfRevision = d.IfRevision
		r.Items = append(r.Items, put)
	}
	done, err := s.control.Apply(ctx, r)
	if err != nil {
		return nil, err
	}
	out := takt.ApplyResult{Items: make([]takt.AppliedJob, len(done.Jobs)), DryRun: b.DryRun}
	for i := range done.Calendars {
		out.Calendars = append(out.Calendars, fromAppliedCalendar(&done.Calendars[i], b.DryRun))
	}
	for i := range done.Jobs {
		out.Items[i] = s.fromApplied(&done.Jobs[i], b.DryRun)
	}
	return &answer[takt.ApplyResult]{out}, nil
}

func (s *server) fromApplied(a *control.Applied, dry bool) takt.AppliedJob {
	out := takt.AppliedJob{Action: string(a.Action), Job: s.fromJob(&a.Row), Effect: string(a.Effect),
		Fires: fromFires(a.Fires), FiresBefore: fromFires(a.FiresBefore), Silence: a.Silence}
	if dry {
		out.Effect = ""
	}
	if a.Action == store.ActionCreated || a.Action == store.ActionChanged {
		out.Warnings = warnings(&a.Definition, s.now())
	}
	switch a.Action {
	case store.ActionCreated:
		out.Changes = changes(nil, &a.Definition)
	case store.ActionChanged:
		out.Changes = changes(a.Before, &a.Definition)
	case store.ActionPruned:
		out.Changes = changes(&a.Definition, nil)
	}
	return out
}

func fromFires(all []control.Fire) []takt.Fire {
	out := make([]takt.Fire, len(all))
	for i, f := range all {
		out[i] = takt.Fire{At: f.At, TimeZone: f.Zone, Schedule: f.Schedule, Note: f.Note}
	}
	return out
}

func (s *server) deleteJob(ctx context.Context, in *deleteJobInput) (*answer[takt.DeletedJob], error) {
	revision, err := ifRevision(in.IfMatch, "")
	if err != nil {
		return nil, err
	}
	d, err := s.control.Delete(ctx, control.DeleteRequest{Namespace: in.NS, Name: in.Name, IfRevision: revision,
		Cancel: in.Running == "cancel", Change: in.change()})
	if err != nil {
		return nil, err
	}
	return &answer[takt.DeletedJob]{takt.DeletedJob{Namespace: in.NS, Name: in.Name, UID: d.Definition.UID.String(),
		Revision: d.Definition.Revision, Running: in.Running, Live: d.Live, Effect: string(d.Effect)}}, nil
}

func (s *server) pauseJob(ctx context.Context, in *pauseInput) (*jobOutput, error) {
	r := control.PauseRequest{Namespace: in.NS, Name: in.Name}
	if b := in.Body; b != nil {
		r.Change = job.Change{By: b.Author, Reason: b.Reason}
		if b.Until != nil {
			r.Until = job.InstantOf(*b.Until)
		}
	}
	return s.put(s.control.Pause(ctx, r))
}

func (s *server) resumeJob(ctx context.Context, in *JobPath) (*jobOutput, error) {
	return s.put(s.control.Resume(ctx, in.NS, in.Name))
}

func (s *server) rollbackJob(ctx context.Context, in *rollbackInput) (*jobOutput, error) {
	revision, err := ifRevision(in.IfMatch, "")
	if err != nil {
		return nil, err
	}
	return s.put(s.control.Rollback(ctx, control.RollbackRequest{Namespace: in.NS, Name: in.Name, To: in.Body.To, IfRevision: revision,
		Change: job.Change{By: in.Body.Author, Reason: in.Body.Reason}}))
}

// put is the answer to a write of one job that was there before.
func (s *server) put(p control.Put, err error) (*jobOutput, error) {
	if err != nil {
		return nil, err
	}
	out := &jobOutput{Status: http.StatusOK, ETag: etag(p.Row.Definition.Revision), Body: s.fromJob(&p.Row)}
	out.Body.Status.Effect = string(p.Effect)
	return out, nil
}

// warnings tell what a write took although it is probably not meant: an instant that has passed. It is no fault, for a
// file stays valid when its time has come; but nothing of the past fires, and that must not go unsaid.
func warnings(d *job.Definition, now time.Time) (out []takt.ProblemError) {
	named := 0
	for _, x := range d.Spec.Schedules {
		at := "spec.schedule."
		if x.ID != job.MainSchedule {
			at = fmt.Sprintf("spec.schedules[%d].", named)
			named++
		}
		x.Seed = job.Seed(d.Namespace, d.Name)
		if field := schedule.Passed(x.Spec, now); field != "" {
			message, hint := schedule.PassedText(field)
			out = append(out, takt.ProblemError{Field: at + field, Code: "instant_passed", Message: message,
				Hint: hint + ", or run the job now: takt trigger " + d.Name})
			continue
		}
		if len(x.Calendars) == 0 {
			continue
		}
		if s, err := d.Parse(x.Spec); err == nil {
			if _, due := s.Next(now); !due {
				out = append(out, takt.ProblemError{Field: at + "calendars", Code: "never_open", Message: "no instant to come is open in all calendars: the schedule does not fire",
					Hint: "give the calendars the days to come"})
			}
		}
	}
	return out
}

func (s *server) listRevisions(ctx context.Context, in *struct {
	JobPath
	Page
}) (*answer[takt.JobRevisionList], error) {
	rows, next, err := s.control.Revisions(ctx, in.NS, in.Name, in.of())
	if err != nil {
		return nil, err
	}
	list := takt.JobRevisionList{Items: make([]takt.JobRevision, len(rows)), Next: next}
	for i := range rows {
		d := &rows[i].Definition
		v := takt.JobRevision{Revision: d.Revision, At: d.UpdatedAt.Time(), Author: rows[i].Change.By, Reason: rows[i].Change.Reason,
			Job: s.fromJob(&store.JobRow{Definition: *d})}
		v.Job.Status = nil
		if i+1 < len(rows) {
			v.Changes = changes(&rows[i+1].Definition, d)
		}
		list.Items[i] = v
	}
	return &answer[takt.JobRevisionList]{list}, nil
}
