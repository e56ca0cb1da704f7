package jobfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// checkRules applies what no tag can say, to all parts of a document in which the tags found no fault: so that a
// person sees every fault at once.
func (d *Doc) checkRules(text []byte, known Errors) (faults Errors) {
	var parts struct {
		Metadata struct {
			Labels json.RawMessage
		}
		Spec struct {
			Params, Schedule, Schedules, After json.RawMessage
		}
	}
	if !decodes(json.NewDecoder(bytes.NewReader(text)), &parts) {
		return nil // something is no mapping: that is known
	}
	if labels := map[string]string{}; json.Unmarshal(parts.Metadata.Labels, &labels) == nil && !known.below("metadata.labels") {
		if e := job.CheckLabels(labels); e != nil {
			faults = append(faults, d.At(e.Field, e.Message, e.Hint))
		}
	}
	if n := len(parts.Spec.Params); n > job.MaxParams {
		faults = append(faults, d.At("spec.params", fmt.Sprintf("params have %d bytes, at most %d are taken", n, job.MaxParams),
			"keep large inputs in your own storage and pass a reference"))
	}
	if e := job.CheckMasked("spec.params", parts.Spec.Params); e != nil {
		faults = append(faults, d.At(e.Field, e.Message, e.Hint))
	}
	var one *takt.ScheduleSpec
	if !known.below("spec.schedule") && json.Unmarshal(parts.Spec.Schedule, &one) == nil && one != nil {
		faults = append(faults, d.checkSchedule(one, "spec.schedule")...)
	}
	faults = append(faults, d.checkAfter(parts.Spec.After, one != nil || len(parts.Spec.Schedules) > 2, known)...)
	var many []json.RawMessage
	if json.Unmarshal(parts.Spec.Schedules, &many) != nil {
		return faults
	}
	seen := map[string]bool{}
	for i := range many {
		field := fmt.Sprintf("spec.schedules[%d]", i)
		var s takt.NamedSchedule
		var name struct{ Name string }
		if json.Unmarshal(many[i], &name) == nil && !known.below(field+".name") {
			faults = append(faults, d.checkName(name.Name, field+".name", seen)...)
		}
		if !known.below(field) && json.Unmarshal(many[i], &s) == nil {
			one := s.Schedule()
			faults = append(faults, d.checkSchedule(&one, field)...)
		}
	}
	return faults
}

// checkAfter judges what a job runs after, as far as one document can tell; own: it has schedules.
func (d *Doc) checkAfter(text json.RawMessage, own bool, known Errors) Errors {
	var all []takt.AfterSpec
	if known.below("spec.after") || json.Unmarshal(text, &all) != nil {
		return nil //nolint:nilerr // its form is judged elsewhere
	}
	s := job.Spec{After: make([]job.After, len(all))}
	for i, a := range all {
		s.After[i] = job.After{Job: a.Job, On: job.On(a.On), Match: job.Match(a.Match), TimeZone: a.TimeZone, Within: a.Within.Std()}
	}
	if own {
		s.Schedules = make([]job.Schedule, 1)
	}
	if e, bad := errors.AsType[*job.Error](s.CheckAfter()); bad {
		return Errors{d.At(e.Field, e.Message, e.Hint)}
	}
	return nil
}

// checkName judges the name of one of spec.schedules: it is single, and not main.
func (d *Doc) checkName(name, field string, seen map[string]bool) (faults Errors) {
	switch {
	case name == job.MainSchedule:
		faults = Errors{d.At(field, "main is the name of spec.schedule", "write it as spec.schedule, or give it another name")}
	case seen[name]:
		faults = Errors{d.At(field, fmt.Sprintf("another schedule has the name %s", name), "names are single in a job")}
	}
	seen[name] = true
	return faults
}

func (d *Doc) checkSchedule(s *takt.ScheduleSpec, field string) Errors {
	if faults := d.checkCalendarNames(s.Calendars, field); len(faults) > 0 {
		return faults
	}
	_, err := schedule.Parse(SpecOf(s), time.Unix(0, 0))
	if bad, ok := errors.AsType[*schedule.Error](err); ok {
		text := *bad
		if text.Field != "" {
			field = join(field, text.Field)
			text.Field = "" // named once is enough
		}
		return Errors{d.At(field, text.Error(), bad.Hint)}
	}
	if err != nil {
		return Errors{d.At(field, err.Error(), "")}
	}
	return nil
}

// SpecOf is a schedule as the calculus takes it.
func SpecOf(s *takt.ScheduleSpec) schedule.Spec {
	at := func(t *time.Time) time.Time {
		if t == nil {
			return time.Time{}
		}
		return *t
	}
	spec := schedule.Spec{Cron: s.Cron, Dialect: schedule.Dialect(s.Dialect), TimeZone: s.TimeZone, Every: s.Every.Std(), Phase: s.Phase.Std(), Delay: s.Delay.Std(),
		At: at(s.At), Start: at(s.StartAt), End: at(s.EndAt), Jitter: s.Jitter.Std(),
		Calendars: s.Calendars, Closed: schedule.ClosedPolicy(s.Closed), Resolve: alwaysOpen}
	if s.DST != nil {
		spec.DST = schedule.DST{Gap: schedule.GapPolicy(s.DST.Gap), Overlap: schedule.OverlapPolicy(s.DST.Overlap)}
	}
	return spec
}

// Passed are warnings about schedules that have no instant after now: they do not fire.
func (d *Doc) Passed(now time.Time) (warnings Errors) {
	check := func(s *takt.ScheduleSpec, at string) {
		if field := schedule.Passed(SpecOf(s), now); field != "" {
			message, hint := schedule.PassedText(field)
			warnings = append(warnings, d.At(at+"."+field, message, hint))
		}
	}
	if s := d.Job.Spec.Schedule; s != nil {
		check(s, "spec.schedule")
	}
	for i := range d.Job.Spec.Schedules {
		one := d.Job.Spec.Schedules[i].Schedule()
		check(&one, fmt.Sprintf("spec.schedules[%d]", i))
	}
	return warnings
}
