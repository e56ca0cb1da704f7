package job

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/taktsched/takt/internal/schedule"
)

// Calendar is one revision of a calendar. People write it; schedules of its namespace name it, and keep to its newest
// revision.
type Calendar struct {
	Namespace string
	Name      string
	Revision  int64 // rises with each change, and over deletions of the name
	Labels    map[string]string
	CreatedAt Instant
	UpdatedAt Instant // of this revision
	Spec      CalendarSpec
	Unfit     string // why what is stored can not be used; "" when it can
}

// CalendarSpec is what a calendar says. The JSON names are the stored form.
type CalendarSpec struct {
	Title string `json:"title,omitempty"`
	schedule.Calendar
}

// Validate checks a calendar's spec. Fields are paths in a document, such as "spec.open[3]". The error is of Faults, see
// Faults.Err.
func (s *CalendarSpec) Validate() error {
	var all Faults
	if n := utf8.RuneCountInString(s.Title); n > MaxTitle {
		all = append(all, invalid("too_long", "spec.title", "it has %d characters, at most %d are taken", n, MaxTitle).WithHint("shorten it"))
	}
	for _, text := range s.Texts() {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return append(all, invalid("bad_text", "spec", "it holds NUL or bytes that are not UTF-8").WithHint("write plain text, as UTF-8")).Err()
		}
		if n := utf8.RuneCountInString(text); n > MaxTitle && text != s.Title {
			return append(all, invalid("too_long", "spec", "a name in it has %d characters, at most %d are taken", n, MaxTitle).WithHint("shorten it")).Err()
		}
	}
	for _, bad := range schedule.CalendarFaults(s.Calendar) {
		field := "spec"
		if bad.Field != "" {
			field += "." + bad.Field
		}
		all = append(all, invalid("bad_calendar", field, "%s", bad.Message).WithHint("%s", bad.Hint))
	}
	return all.Err()
}

// Texts are all texts in it.
func (s *CalendarSpec) Texts() []string {
	all := append([]string{s.Title, s.TimeZone}, s.Weekly...)
	for _, w := range s.Daily {
		all = append(all, w.From, w.To)
	}
	for _, d := range slices.Concat(s.Open, s.Closed) {
		all = append(all, string(d.From), string(d.To), d.Name)
	}
	return all
}

// Calendars are the names of the calendars that the schedules keep to, each once, in order.
func (s *Spec) Calendars() []string {
	var names map[string]bool
	for i := range s.Schedules {
		for _, name := range s.Schedules[i].Calendars {
			if names == nil {
				names = map[string]bool{}
			}
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Stamp tells apart what the calendars of one revision of a job said at different times: it rises with each change of one.
// 0: it names none.
func (d *Definition) Stamp() (sum int64) {
	for _, name := range d.Spec.Calendars() {
		if c := d.Calendars[name]; c != nil {
			sum += c.Revision
		}
	}
	return sum
}

// resolve finds a calendar for the calculus.
func (d *Definition) resolve(name string) *schedule.Calendar {
	c := d.Calendars[name]
	if c == nil || c.Unfit != "" {
		return nil
	}
	return &c.Spec.Calendar
}

// unfitCalendar says why a calendar of a schedule cannot be used; nil when all can, or are missing.
func (d *Definition) unfitCalendar(s *schedule.Spec) *schedule.Error {
	for i, name := range s.Calendars {
		if c := d.Calendars[name]; c != nil && c.Unfit != "" {
			return &schedule.Error{Field: fmt.Sprintf("calendars[%d]", i), Message: fmt.Sprintf("calendar %.64q: %s", name, c.Unfit), Hint: "apply the calendar again"}
		}
	}
	return nil
}

// CheckCalendars tells whether the calendars that the schedules name are there and can be used, and leave something to plan.
func (d *Definition) CheckCalendars() error {
	named := 0
	for i := range d.Spec.Schedules {
		s := &d.Spec.Schedules[i]
		field := "spec.schedule"
		if s.ID != MainSchedule {
			field = fmt.Sprintf("spec.schedules[%d]", named)
			named++
		}
		if len(s.Calendars) == 0 {
			continue
		}
		for i, name := range s.Calendars {
			if d.Calendars[name] == nil {
				return invalid("calendar_not_found", fmt.Sprintf("%s.calendars[%d]", field, i), "there is no calendar %.64q in namespace %q", name, d.Namespace).
					WithHint("apply it first, or in the same set")
			}
		}
		if _, err := d.Parse(s.Spec); err != nil {
			return badSchedule(field, err)
		}
	}
	return nil
}
