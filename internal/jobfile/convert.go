package jobfile

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// Definition is a document as the server keeps it, of the namespace where it names none, with all that is wrong with it as
// far as that can be told without looking elsewhere. Read-only fields are left out.
func Definition(namespace string, d *takt.Job) (job.Definition, job.Faults) {
	if d.Metadata.Namespace != "" {
		namespace = d.Metadata.Namespace
	}
	spec, lost := JobSpecOf(&d.Spec)
	def := job.Definition{Namespace: namespace, Name: d.Metadata.Name, Labels: d.Metadata.Labels, Spec: spec}
	return def, lost.Join(job.FaultsOf(def.Check()))
}

// JobSpecOf is a spec as the server keeps it; the faults are about what a job.Spec cannot say.
func JobSpecOf(d *takt.JobSpec) (s job.Spec, faults job.Faults) {
	s = job.Spec{Title: d.Title, Owner: d.Owner, Description: d.Description, Pool: d.Pool, Handler: d.Handler, Params: present(d.Params),
		Disabled: d.Enabled != nil && !*d.Enabled}
	if d.Schedule != nil {
		s.Schedules = []job.Schedule{{ID: job.MainSchedule, MaxRuns: d.Schedule.MaxRuns, Spec: stored(d.Schedule)}}
	}
	for i := range d.Schedules {
		id, one := d.Schedules[i].Name, d.Schedules[i].Schedule()
		if id == job.MainSchedule {
			id = "" // it would be taken for the other one
			faults = append(faults, job.Errorf(job.KindInvalid, "bad_name", "main is the name of spec.schedule").WithField(fmt.Sprintf("spec.schedules[%d].name", i)).
				WithHint("write it as spec.schedule, or give it another name"))
		}
		s.Schedules = append(s.Schedules, job.Schedule{ID: id, MaxRuns: one.MaxRuns, Spec: stored(&one)})
	}
	if d.Shards != nil {
		s.Shards = d.Shards.Count
	}
	for _, a := range d.After {
		s.After = append(s.After, job.After{Job: a.Job, On: job.On(a.On), Match: job.Match(a.Match), TimeZone: a.TimeZone, Within: a.Within.Std()})
	}
	policies(d, &s)
	return s, faults
}

// policies turns what a job does when something goes wrong or comes in the way.
func policies(d *takt.JobSpec, s *job.Spec) {
	if r := d.Retry; r != nil {
		s.Retry.MaxAttempts = r.MaxAttempts
		if b := r.Backoff; b != nil {
			s.Retry.Initial, s.Retry.Factor, s.Retry.Max, s.Retry.Jitter = b.Initial.Std(), b.Factor, b.Max.Std(), b.Jitter
		}
	}
	if t := d.Timeout; t != nil {
		s.Timeout = job.Timeout{Attempt: t.Attempt.Std(), Stall: t.Stall.Std(), Grace: t.Grace.Std()}
	}
	if o := d.Overlap; o != nil {
		s.Overlap = &job.Overlap{Policy: job.OverlapPolicy(o.Policy), MaxQueued: o.MaxQueued}
	}
	if m := d.Misfire; m != nil {
		s.Misfire = job.Misfire{Policy: job.MisfirePolicy(m.Policy), Grace: m.Grace.Std(), Window: m.Window.Std(), Limit: m.Limit}
	}
	if a := d.AutoPause; a != nil {
		s.AutoPause.AfterFailures = a.AfterFailures
	}
}

// SpecOf is a schedule as the calculus takes it, with calendars that are always open: only the server knows what they say.
func SpecOf(d *takt.ScheduleSpec) schedule.Spec {
	s := stored(d)
	s.Resolve = alwaysOpen
	return s
}

func stored(d *takt.ScheduleSpec) schedule.Spec {
	s := schedule.Spec{Cron: d.Cron, Dialect: schedule.Dialect(d.Dialect), TimeZone: d.TimeZone, Every: d.Every.Std(), Delay: d.Delay.Std(),
		At: moment(d.At), Start: moment(d.StartAt), End: moment(d.EndAt), Jitter: d.Jitter.Std(), Calendars: some(d.Calendars), Closed: schedule.ClosedPolicy(d.Closed)}
	if d.Phase != nil {
		if s.Phase = d.Phase.Std(); s.Phase == 0 {
			s.Phase = s.Every // one period later is the same, and 0 would say that there is none
		}
	}
	if d.DST != nil {
		s.DST = schedule.DST{Gap: schedule.GapPolicy(d.DST.Gap), Overlap: schedule.OverlapPolicy(d.DST.Overlap)}
	}
	return s
}

// CalendarOf is a calendar as the calculus takes it.
func CalendarOf(d *takt.CalendarSpec) job.CalendarSpec {
	dates := func(all []takt.CalendarDates) (out []schedule.Dates) {
		for _, d := range all {
			out = append(out, schedule.Dates{From: schedule.Date(d.From), To: schedule.Date(d.To), Name: d.Name})
		}
		return out
	}
	c := job.CalendarSpec{Title: d.Title, Calendar: schedule.Calendar{TimeZone: d.TimeZone, Weekly: d.Weekly, Open: dates(d.Open), Closed: dates(d.Closed)}}
	if d.Daily != nil {
		c.Daily = []schedule.Window{} // an empty list is another thing than none
	}
	for _, w := range d.Daily {
		c.Daily = append(c.Daily, schedule.Window{From: w.From, To: w.To})
	}
	return c
}

// alwaysOpen stands for calendars where none is known.
func alwaysOpen(string) *schedule.Calendar { return &schedule.Calendar{} }

// moment is an instant in whole milliseconds; the zero time when there is none.
func moment(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return job.InstantOf(*t).Time()
}

// present is v, or nil for an absent or null value.
func present(v json.RawMessage) json.RawMessage {
	if len(v) == 0 || string(v) == "null" {
		return nil
	}
	return v
}

// some is a list, or nil for an empty one.
func some[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}
