package api

import (
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/jobfile"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// toPut turns a document into a write. Path and document must agree; status and the read-only fields
// are ignored, so that what was read can be sent back.
func toPut(namespace, name string, d *takt.Job) (control.PutRequest, error) {
	switch {
	case d.Metadata.Name != name:
		return control.PutRequest{}, disagree("metadata.name")
	case d.Metadata.Namespace != "" && d.Metadata.Namespace != namespace:
		return control.PutRequest{}, disagree("metadata.namespace")
	}
	spec, faults := jobfile.JobSpecOf(&d.Spec)
	return control.PutRequest{Namespace: namespace, Name: name, Labels: d.Metadata.Labels, Spec: spec, Faults: faults}, nil
}

func disagree(field string) error {
	return job.Errorf(job.KindInvalid, "path_mismatch", "the document names another object than the path").WithField(field).
		WithHint("write the same name in both")
}

// fromScheduleSpec is a schedule as documents write it.
func fromScheduleSpec(s *schedule.Spec) takt.ScheduleSpec {
	d := takt.ScheduleSpec{Cron: s.Cron, Dialect: string(s.Dialect), TimeZone: s.TimeZone, Every: takt.Duration(s.Every), Delay: takt.Duration(s.Delay),
		At: instant(job.InstantOf(s.At)), StartAt: instant(job.InstantOf(s.Start)), EndAt: instant(job.InstantOf(s.End)), Jitter: takt.Duration(s.Jitter), Calendars: s.Calendars, Closed: string(s.Closed)}
	if s.Phase != 0 {
		d.Phase = new(takt.Duration(s.Phase))
	}
	if s.DST != (schedule.DST{}) {
		d.DST = &takt.DSTSpec{Gap: string(s.DST.Gap), Overlap: string(s.DST.Overlap)}
	}
	return d
}

// fromJob is the document of a job, with its status, as people may read it.
func (s *server) fromJob(r *store.JobRow) takt.Job {
	d := &r.Definition
	j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job",
		Metadata: takt.JobMetadata{Name: d.Name, Namespace: d.Namespace, Labels: d.Labels, Revision: d.Revision,
			CreatedAt: instant(d.CreatedAt), UpdatedAt: instant(d.UpdatedAt)},
		Spec: fromSpec(&d.Spec), Status: &takt.JobStatus{}}
	j.Spec.Params, j.Status.Unfit = job.Mask(d.Spec.Params), unfit(d)
	if !d.UID.IsZero() {
		j.Metadata.UID = d.UID.String()
	}
	if p := d.Pause; p != nil && (p.Until == 0 || p.Until > job.InstantOf(s.now())) {
		j.Status.Paused = &takt.JobPause{At: p.At.Time(), Until: instant(p.Until), By: p.By, Reason: p.Reason}
	}
	var next, last job.Instant
	for _, c := range r.Cursors {
		if c.Next != 0 && (next == 0 || c.Next < next) {
			next = c.Next
		}
		last = max(last, c.Last)
	}
	j.Status.NextPlannedAt, j.Status.LastPlannedAt = instant(next), instant(last)
	progress(r, j.Status)
	return j
}

// unfit says why a job, or a schedule of it, cannot be used as it is stored; "" when it can.
func unfit(d *job.Definition) string {
	if d.Unfit != "" {
		return d.Unfit
	}
	for _, s := range d.Spec.Schedules {
		if _, err := d.Parse(s.Spec); err != nil {
			return "schedule " + s.ID + ": " + err.Error()
		}
	}
	return ""
}

func fromSpec(s *job.Spec) takt.JobSpec {
	d := takt.JobSpec{Title: s.Title, Owner: s.Owner, Description: s.Description, Pool: s.Pool, Handler: s.Handler, Params: s.Params}
	for _, x := range s.Schedules {
		one := fromScheduleSpec(&x.Spec)
		one.MaxRuns = x.MaxRuns
		if x.ID == job.MainSchedule {
			d.Schedule = &one
			continue
		}
		d.Schedules = append(d.Schedules, one.Named(x.ID))
	}
	if s.Shards != 0 {
		d.Shards = &takt.ShardsSpec{Count: s.Shards}
	}
	if r := s.Retry; r != (job.Retry{}) {
		d.Retry = &takt.RetrySpec{MaxAttempts: r.MaxAttempts}
		if r.MaxAttempts = 0; r != (job.Retry{}) {
			d.Retry.Backoff = &takt.BackoffSpec{Initial: takt.Duration(r.Initial), Factor: r.Factor, Max: takt.Duration(r.Max), Jitter: r.Jitter}
		}
	}
	if t := s.Timeout; t != (job.Timeout{}) {
		d.Timeout = &takt.TimeoutSpec{Attempt: takt.Duration(t.Attempt), Stall: takt.Duration(t.Stall), Grace: takt.Duration(t.Grace)}
	}
	for _, a := range s.After {
		d.After = append(d.After, takt.AfterSpec{Job: a.Job, On: string(a.On), Match: string(a.Match), TimeZone: a.TimeZone, Within: takt.Duration(a.Within)})
	}
	if o := s.Overlap; o != nil {
		d.Overlap = &takt.OverlapSpec{Policy: string(o.Policy), MaxQueued: o.MaxQueued}
	}
	fromMisfire(s, &d)
	if s.Disabled {
		d.Enabled = new(bool)
	}
	return d
}

// instant is i as documents show it; nil for "none".
func instant(i job.Instant) *time.Time {
	if i == 0 {
		return nil
	}
	t := i.Time()
	return &t
}
