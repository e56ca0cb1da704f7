package jobfile

import (
	"errors"
	"fmt"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/schedule"
)

// checkSchedules applies what no tag can say: each schedule is one of its kinds and can be read, names are
// single, and main is the name of spec.schedule.
func (d *Doc) checkSchedules() Errors {
	var faults Errors
	if s := d.Job.Spec.Schedule; s != nil {
		faults = d.checkSchedule(s, "spec.schedule")
	}
	seen := map[string]bool{}
	for i := range d.Job.Spec.Schedules {
		field := fmt.Sprintf("spec.schedules[%d]", i)
		s := &d.Job.Spec.Schedules[i]
		switch {
		case s.Name == "main":
			faults = append(faults, d.At(field+".name", "main is the name of spec.schedule", "write it as spec.schedule, or give it another name"))
		case seen[s.Name]:
			faults = append(faults, d.At(field+".name", fmt.Sprintf("another schedule has the name %s", s.Name), ""))
		}
		seen[s.Name] = true
		one := s.Schedule()
		faults = append(faults, d.checkSchedule(&one, field)...)
	}
	return faults
}

func (d *Doc) checkSchedule(s *takt.ScheduleSpec, field string) Errors {
	spec := schedule.Spec{Cron: s.Cron, TimeZone: s.TimeZone, Every: s.Every.Std()}
	if s.At != nil {
		spec.At = *s.At
	}
	_, err := schedule.Parse(spec, time.Unix(0, 0))
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
