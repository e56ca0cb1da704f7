package api_test

import "strings"

const calendar1 = "/api/v1/namespaces/default/calendars/cn"

// calendarWith is a good calendar with one text in place of another.
func calendarWith(old, text string) string {
	return strings.Replace(`{"apiVersion":"takt/v1","kind":"Calendar","metadata":{"name":"cn"},"spec":{"weekly":["MON-FRI"],`+
		`"daily":[{"from":"09:30","to":"11:30"}],"closed":[{"from":"2026-10-01","to":"2026-10-07","name":"x"}]}}`, old, text, 1)
}

// hostileCalendars are hostile requests about calendars, and about jobs that name them.
var hostileCalendars = []hostileCase{
	{"calendar: no JSON", putTo(calendar1, secret), 400, "malformed_json", "body"},
	{"calendar: no body", putTo(calendar1, ""), 400, "body_required", "body"},
	{"calendar: a job", putTo(calendar1, calendarWith(`"Calendar"`, `"Job"`)), 422, "bad_value", "kind"},
	{"calendar: another name", putTo(calendar1, calendarWith(`"cn"`, `"us"`)), 422, "path_mismatch", "metadata.name"},
	{"calendar: another namespace", putTo(calendar1, calendarWith(`"name":"cn"`, `"name":"cn","namespace":"pay"`)), 422, "path_mismatch", "metadata.namespace"},
	{"calendar: unknown field", putTo(calendar1, calendarWith(`"weekly"`, `"weekdays"`)), 422, "unknown_field", "spec.weekdays"},
	{"calendar: wrong case", putTo(calendar1, calendarWith(`"from":"2026`, `"From":"2026`)), 422, "unknown_field", "spec.closed[0].From"},
	{"calendar: doubled key", putTo(calendar1, calendarWith(`"weekly"`, `"weekly":["SUN"],"weekly"`)), 400, "doubled_key", "spec.weekly"},
	{"calendar: no weekday", putTo(calendar1, calendarWith(`MON-FRI`, `MON-XXX`)), 422, "bad_calendar", "spec.weekly[0]"},
	{"calendar: a weekday with a step", putTo(calendar1, calendarWith(`MON-FRI`, `*/2`)), 422, "bad_calendar", "spec.weekly[0]"},
	{"calendar: never open", putTo(calendar1, calendarWith(`MON-FRI`, `none`)), 422, "bad_calendar", "spec.weekly"},
	{"calendar: no time", putTo(calendar1, calendarWith(`09:30`, `9h30`)), 422, "bad_calendar", "spec.daily[0]"},
	{"calendar: a window backwards", putTo(calendar1, calendarWith(`09:30`, `12:30`)), 422, "bad_calendar", "spec.daily[0]"},
	{"calendar: no date", putTo(calendar1, calendarWith(`2026-10-01`, `2026-13-01`)), 422, "bad_calendar", "spec.closed[0].from"},
	{"calendar: dates backwards", putTo(calendar1, calendarWith(`2026-10-01`, `2027-10-01`)), 422, "bad_calendar", "spec.closed[0]"},
	{"calendar: a range of two kinds", putTo(calendar1, calendarWith(`2026-10-01`, `10-01`)), 422, "bad_calendar", "spec.closed[0]"},
	{"calendar: a date as number", putTo(calendar1, calendarWith(`"2026-10-01"`, `20261001`)), 422, "wrong_type", "spec.closed[0].from"},
	{"calendar: no weekday at all", putTo(calendar1, calendarWith(`["MON-FRI"]`, `[]`)), 422, "bad_calendar", "spec.weekly"},
	{"calendar: no hours at all", putTo(calendar1, calendarWith(`[{"from":"09:30","to":"11:30"}]`, `[]`)), 422, "bad_calendar", "spec.daily"},
	{"calendar: no zone", putTo(calendar1, calendarWith(`"weekly"`, `"timeZone":"Mars/Olympus","weekly"`)), 422, "bad_calendar", "spec.timeZone"},
	{"calendar: a path for a zone", putTo(calendar1, calendarWith(`"weekly"`, `"timeZone":"../etc/passwd","weekly"`)), 422, "bad_calendar", "spec.timeZone"},
	{"calendar: NUL", putTo(calendar1, calendarWith(`"x"`, `"x\u0000"`)), 400, "nul_character", "spec.closed[0].name"},
	{"calendar: a long title", putTo(calendar1, calendarWith(`"weekly"`, `"title":"`+strings.Repeat("x", 257)+`","weekly"`)), 422, "out_of_range", "spec.title"},
	{"calendar: too many dates", putTo(calendar1, calendarWith(`{"from":"2026-10-01","to":"2026-10-07","name":"x"}`,
		strings.TrimSuffix(strings.Repeat(`{"from":"01-01"},`, 4097), ","))), 422, "out_of_range", "spec.closed"},
	{"calendar: If-Match of nothing", with(putTo(calendar1, calendarWith("", "")), "If-Match", "3"), 422, "bad_if_match", "header.If-Match"},
	{"calendar: a bad name", putTo("/api/v1/namespaces/default/calendars/A_B", calendarWith("", "")), 422, "bad_format", "path.name"},
	{"calendar: deleted with a body", request{method: "DELETE", path: calendar1, body: "{}"}, 400, "body_unexpected", "body"},
	{"calendar: rollback without a revision", post(calendar1+"/rollback", `{}`), 422, "required_field", "to"},
	{"calendar: revisions without a limit", get(calendar1 + "/revisions?limit=0"), 422, "out_of_range", "query.limit"},
	{"calendars: a parameter", get("/api/v1/namespaces/default/calendars?labels=a"), 422, "unknown_parameter", "query.labels"},
	{"apply: a bad calendar", post(applyPath, `{"documents":[],"calendars":[{"calendar":`+calendarWith(`MON-FRI`, `XXX`)+`}]}`), 422, "bad_calendar", "calendars[0].calendar.spec.weekly[0]"},
	{"apply: a calendar twice", post(applyPath, `{"documents":[],"calendars":[{"calendar":`+calendarWith("", "")+`},{"calendar":`+calendarWith("", "")+`}]}`), 422, "doubled_calendar", "calendars[1].calendar.metadata.name"},
	{"job: calendars as text", put(`"cron":"0 3 * * *"`, `"cron":"0 3 * * *","calendars":"cn"`), 422, "wrong_type", "spec.schedule.calendars"},
	{"job: a bad name of a calendar", put(`"cron":"0 3 * * *"`, `"cron":"0 3 * * *","calendars":["../cn"]`), 422, "bad_name", "spec.schedule.calendars[0]"},
	{"job: a calendar twice", put(`"cron":"0 3 * * *"`, `"cron":"0 3 * * *","calendars":["cn","cn"]`), 422, "bad_name", "spec.schedule.calendars[1]"},
	{"job: nine calendars", put(`"cron":"0 3 * * *"`, `"cron":"0 3 * * *","calendars":["a","b","c","d","e","f","g","h","i"]`), 422, "out_of_range", "spec.schedule.calendars"},
	{"job: an unknown policy", put(`"cron":"0 3 * * *"`, `"cron":"0 3 * * *","calendars":["a"],"closed":"nearest"`), 422, "bad_value", "spec.schedule.closed"},
	{"job: a policy without calendars", put(`"cron":"0 3 * * *"`, `"cron":"0 3 * * *","closed":"next"`), 422, "bad_schedule", "spec.schedule.closed"},
}
