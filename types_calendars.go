package takt

import "time"

// Calendar is a document that says which days, and which hours of them, are open. Schedules of its namespace name it.
type Calendar struct {
	APIVersion string           `json:"apiVersion" enum:"takt/v1" doc:"Version of the document."`
	Kind       string           `json:"kind" enum:"Calendar" doc:"Kind of the document."`
	Metadata   CalendarMetadata `json:"metadata"`
	Spec       CalendarSpec     `json:"spec"`
	Status     *CalendarStatus  `json:"status,omitempty" readOnly:"true" doc:"Set by the server; ignored in requests."`
}

// CalendarMetadata names a calendar.
type CalendarMetadata struct {
	Name      string            `json:"name" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Unique in the namespace."`
	Namespace string            `json:"namespace,omitempty" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Given by the path; when set it must agree."`
	Labels    map[string]string `json:"labels,omitempty" maxProperties:"32"`
	Revision  int64             `json:"revision,omitempty" readOnly:"true" doc:"Rises with each change, also over a deletion; If-Match guards edits."`
	CreatedAt *time.Time        `json:"createdAt,omitempty" readOnly:"true"`
	UpdatedAt *time.Time        `json:"updatedAt,omitempty" readOnly:"true"`
}

// CalendarSpec says what is open. A date is open when open lists it; else closed when closed lists it; else weekly decides.
// Of an open day the daily windows are open.
type CalendarSpec struct {
	Title    string           `json:"title,omitempty" maxLength:"256" doc:"For people, in any language."`
	TimeZone string           `json:"timeZone,omitempty" maxLength:"64" doc:"IANA name of the zone whose dates and hours these are; default: the schedule's."`
	Weekly   []string         `json:"weekly,omitempty" maxItems:"16" doc:"Open weekdays such as MON-FRI or SAT; absent: all; none: none, only what open lists."`
	Daily    []CalendarWindow `json:"daily,omitempty" maxItems:"16" doc:"Open hours of open days; absent: the whole day."`
	Open     []CalendarDates  `json:"open,omitempty" maxItems:"4096" doc:"Make-up workdays, or the days that an inclusion consists of."`
	Closed   []CalendarDates  `json:"closed,omitempty" maxItems:"4096" doc:"Holidays."`
}

// CalendarWindow is a part of the day.
type CalendarWindow struct {
	From string `json:"from" maxLength:"8" doc:"Such as 09:30 or 09:30:00."`
	To   string `json:"to" maxLength:"8" doc:"Not included; 24:00 is the end of the day."`
}

// CalendarDates is a date or a range of dates.
type CalendarDates struct {
	From string `json:"from" maxLength:"10" doc:"2026-10-01, or 10-01 for that day of every year."`
	To   string `json:"to,omitempty" maxLength:"10" doc:"Included; default: the one day."`
	Name string `json:"name,omitempty" maxLength:"256" doc:"Shown where an instant moves because of it."`
}

// CalendarStatus is what the server knows of a calendar.
type CalendarStatus struct {
	Jobs   []string `json:"jobs,omitempty" doc:"Jobs whose schedules name it, at most 100; of a read of this one calendar."`
	Unfit  string   `json:"unfit,omitempty" doc:"Why what is stored of it cannot be used, as hands or damage made it: schedules that name it do not fire until it is applied again."`
	Effect string   `json:"effect,omitempty" enum:"effective,pending" doc:"Of a write: whether the jobs that name it keep to it yet."`
}

// CalendarList is a page of calendars.
type CalendarList struct {
	Items []Calendar `json:"items" nullable:"false"`
	Next  string     `json:"next,omitempty" doc:"Pass as after to get the next page."`
}

// ApplyCalendar is one calendar of a set.
type ApplyCalendar struct {
	Calendar   Calendar `json:"calendar"`
	IfRevision int64    `json:"ifRevision,omitempty" minimum:"0" doc:"Refuse the set unless the calendar stands at this revision; 0: no guard."`
}

// AppliedCalendar is what becomes of one calendar of a set.
type AppliedCalendar struct {
	Action   string        `json:"action" enum:"created,changed,unchanged"`
	Calendar Calendar      `json:"calendar" doc:"As it is now."`
	Changes  []FieldChange `json:"changes,omitempty"`
	Jobs     int           `json:"jobs,omitempty" doc:"How many jobs named it and keep to the change."`
	Effect   string        `json:"effect,omitempty" enum:"effective,pending"`

	Warnings []ProblemError `json:"warnings,omitempty" doc:"What was taken and is probably not meant: jobs with schedules that never fire by it."`
}

// CalendarRevision is one revision of a calendar.
type CalendarRevision struct {
	Revision int64         `json:"revision"`
	At       time.Time     `json:"at"`
	Author   string        `json:"author,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Deleted  bool          `json:"deleted,omitempty" doc:"It is the calendar's deletion."`
	Changes  []FieldChange `json:"changes,omitempty" doc:"Against the revision before; absent for the first, and for the last of a page."`
	Calendar *Calendar     `json:"calendar,omitempty"`
}

// CalendarRevisionList is a page of revisions, newest first.
type CalendarRevisionList struct {
	Items []CalendarRevision `json:"items" nullable:"false"`
	Next  string             `json:"next,omitempty"`
}

// DeletedCalendar is the answer to a deletion. Its revisions stay readable.
type DeletedCalendar struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Revision  int64  `json:"revision" doc:"The last one that said something."`
}
