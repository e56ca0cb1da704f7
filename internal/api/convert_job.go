package api

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
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
	spec, err := toSpec(&d.Spec)
	if err != nil {
		return control.PutRequest{}, err
	}
	return control.PutRequest{Namespace: namespace, Name: name, Labels: d.Metadata.Labels, Spec: spec}, nil
}

func disagree(field string) error {
	return job.Errorf(job.KindInvalid, "path_mismatch", "the document names another object than the path").WithField(field).
		WithHint("write the same name in both")
}

func toSpec(d *takt.JobSpec) (job.Spec, error) {
	s := job.Spec{Title: d.Title, Owner: d.Owner, Description: d.Description, Pool: d.Pool, Handler: d.Handler, Params: present(d.Params), Disabled: d.Enabled != nil && !*d.Enabled}
	if d.Schedule != nil {
		at, err := toScheduleSpec(d.Schedule, "spec.schedule")
		if err != nil {
			return s, err
		}
		s.Schedules = []job.Schedule{{ID: job.MainSchedule, MaxRuns: d.Schedule.MaxRuns, Spec: at}}
	}
	for i := range d.Schedules {
		field := fmt.Sprintf("spec.schedules[%d]", i)
		if d.Schedules[i].Name == job.MainSchedule {
			return s, job.Errorf(job.KindInvalid, "bad_name", "main is the name of spec.schedule").WithField(field + ".name").
				WithHint("write it as spec.schedule, or give it another name")
		}
		one := d.Schedules[i].Schedule()
		at, err := toScheduleSpec(&one, field)
		if err != nil {
			return s, err
		}
		s.Schedules = append(s.Schedules, job.Schedule{ID: d.Schedules[i].Name, MaxRuns: one.MaxRuns, Spec: at})
	}
	if d.Shards != nil {
		s.Shards = d.Shards.Count
	}
	if r := d.Retry; r != nil {
		s.Retry.MaxAttempts = r.MaxAttempts
		if b := r.Backoff; b != nil {
			s.Retry.Initial, s.Retry.Factor, s.Retry.Max, s.Retry.Jitter = b.Initial.Std(), b.Factor, b.Max.Std(), b.Jitter
		}
	}
	if t := d.Timeout; t != nil {
		s.Timeout = job.Timeout{Attempt: t.Attempt.Std(), Stall: t.Stall.Std(), Grace: t.Grace.Std()}
	}
	for _, a := range d.After {
		s.After = append(s.After, job.After{Job: a.Job, On: job.On(a.On), Match: job.Match(a.Match), TimeZone: a.TimeZone, Within: a.Within.Std()})
	}
	if o := d.Overlap; o != nil {
		s.Overlap = &job.Overlap{Policy: job.OverlapPolicy(o.Policy), MaxQueued: o.MaxQueued}
	}
	toMisfire(d, &s)
	return s, nil
}

func toScheduleSpec(d *takt.ScheduleSpec, field string) (schedule.Spec, error) {
	s := schedule.Spec{Cron: d.Cron, Dialect: schedule.Dialect(d.Dialect), TimeZone: d.TimeZone, Every: d.Every.Std(), Phase: d.Phase.Std(), Delay: d.Delay.Std(),
		Start: moment(d.StartAt), End: moment(d.EndAt), Jitter: d.Jitter.Std(), Calendars: some(d.Calendars), Closed: schedule.ClosedPolicy(d.Closed)}
	if d.DST != nil {
		s.DST = schedule.DST{Gap: schedule.GapPolicy(d.DST.Gap), Overlap: schedule.OverlapPolicy(d.DST.Overlap)}
	}
	set := 0
	for _, given := range []bool{d.Cron != "", d.Every != 0, d.Delay != 0, d.At != nil} {
		if given {
			set++
		}
	}
	if set != 1 {
		return s, job.Errorf(job.KindInvalid, "schedule_not_single", "a schedule is exactly one of cron, every, delay and at").WithField(field).
			WithHint("keep one; leave schedule out for a job that runs on request only")
	}
	s.At = moment(d.At)
	return s, nil
}

// moment is an instant in whole milliseconds; the zero time when there is none.
func moment(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return job.InstantOf(*t).Time()
}

// fromScheduleSpec is toScheduleSpec backwards.
func fromScheduleSpec(s *schedule.Spec) takt.ScheduleSpec {
	d := takt.ScheduleSpec{Cron: s.Cron, Dialect: string(s.Dialect), TimeZone: s.TimeZone, Every: takt.Duration(s.Every), Phase: takt.Duration(s.Phase), Delay: takt.Duration(s.Delay),
		At: instant(job.InstantOf(s.At)), StartAt: instant(job.InstantOf(s.Start)), EndAt: instant(job.InstantOf(s.End)), Jitter: takt.Duration(s.Jitter), Calendars: s.Calendars, Closed: string(s.Closed)}
	if s.DST != (schedule.DST{}) {
		d.DST = &takt.DSTSpec{Gap: string(s.DST.Gap), Overlap: string(s.DST.Overlap)}
	}
	return d
}

// present is v, or nil for an absent or null value.
func present(v json.RawMessage) json.RawMessage {
	if len(v) == 0 || string(v) == "null" {
		return nil
	}
	return v
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
