package job

import (
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

func calendarJob(calendars map[string]*Calendar, names ...string) Definition {
	return Definition{Namespace: "ns", Name: "j", Calendars: calendars, Spec: Spec{Pool: "p", Handler: "h",
		Schedules: []Schedule{{ID: MainSchedule, Spec: schedule.Spec{Cron: "0 9 * * *", Calendars: names}}, {ID: "b", Spec: schedule.Spec{Every: time.Hour}}}}}
}

func TestStampRisesWithEachChangeOfACalendar(t *testing.T) {
	t.Parallel()
	a, b := &Calendar{Revision: 3}, &Calendar{Revision: 5}
	d := calendarJob(map[string]*Calendar{"a": a, "b": b, "other": {Revision: 9}}, "a", "b")
	before := d.Stamp()
	d.Calendars["a"] = &Calendar{Revision: 4}
	if d.Stamp() <= before {
		t.Errorf("stamp %d after a change, %d before", d.Stamp(), before)
	}
	without := calendarJob(d.Calendars)
	if n := without.Stamp(); n != 0 {
		t.Errorf("a job without calendars has the stamp %d", n)
	}
}

func TestCheckCalendarsNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	weekdays := &Calendar{Revision: 1, Spec: CalendarSpec{Calendar: schedule.Calendar{Weekly: []string{"MON-FRI"}}}}
	for name, c := range map[string]struct {
		calendars   map[string]*Calendar
		field, code string
	}{
		"there":   {map[string]*Calendar{"cn": weekdays}, "", ""},
		"missing": {nil, "spec.schedule.calendars[0]", "calendar_not_found"},
		"unfit":   {map[string]*Calendar{"cn": {Unfit: "its stored spec cannot be read"}}, "spec.schedule.calendars[0]", "bad_schedule"},
	} {
		d := calendarJob(c.calendars, "cn")
		err := d.CheckCalendars()
		e, _ := err.(*Error)
		if c.code == "" && err != nil || c.code != "" && (e == nil || e.Field != c.field || e.Code != c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseKeepsToTheCalendars(t *testing.T) {
	t.Parallel()
	d := calendarJob(map[string]*Calendar{"cn": {Spec: CalendarSpec{Calendar: schedule.Calendar{Closed: []schedule.Dates{{From: "2026-10-01", To: "2026-10-07"}}}}}}, "cn")
	s, err := d.Parse(d.Spec.Schedules[0].Spec)
	if err != nil {
		t.Fatal(err)
	}
	if at, _ := s.Next(time.Date(2026, 9, 30, 12, 0, 0, 0, time.UTC)); at.Day() != 8 {
		t.Errorf("next is %v", at)
	}
}

func TestCalendarSpecValidate(t *testing.T) {
	t.Parallel()
	for field, s := range map[string]CalendarSpec{
		"":               {Title: "t", Calendar: schedule.Calendar{Weekly: []string{"MON-FRI"}}},
		"spec.title":     {Title: strings.Repeat("x", MaxTitle+1)},
		"spec":           {Calendar: schedule.Calendar{Closed: []schedule.Dates{{From: "01-01", Name: "\x00"}}}},
		"spec.weekly[0]": {Calendar: schedule.Calendar{Weekly: []string{"XYZ"}}},
		"spec.timeZone":  {Calendar: schedule.Calendar{TimeZone: "Mars/Olympus"}},
	} {
		err := s.Validate()
		e, _ := err.(*Error)
		if field == "" && err != nil || field != "" && (e == nil || e.Field != field) {
			t.Errorf("%q: %v", field, err)
		}
	}
}
