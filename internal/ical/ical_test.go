package ical_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/ical"
	"github.com/taktsched/takt/internal/schedule"
)

func file(events ...string) string {
	var b strings.Builder
	b.WriteString("BEGIN:VCALENDAR\r\nX-WR-CALNAME:Feiertage\r\n")
	for _, e := range events {
		b.WriteString("BEGIN:VEVENT\r\n" + strings.ReplaceAll(e, "\n", "\r\n") + "\r\nEND:VEVENT\r\n")
	}
	return b.String() + "END:VCALENDAR\r\n"
}

func shown(all []schedule.Dates) string {
	var out []string
	for _, d := range all {
		text := string(d.From)
		if d.To != "" {
			text += ".." + string(d.To)
		}
		out = append(out, strings.TrimSpace(text+" "+d.Name))
	}
	return strings.Join(out, "; ")
}

func TestDays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, closed, open, zone string }{
		"a date":                   {file("DTSTART;VALUE=DATE:20261225\nSUMMARY:Weihnachten"), "2026-12-25 Weihnachten", "", ""},
		"a range":                  {file("DTSTART;VALUE=DATE:20261001\nDTEND;VALUE=DATE:20261008\nSUMMARY:国庆节"), "2026-10-01..2026-10-07 国庆节", "", ""},
		"an end that is no end":    {file("DTSTART;VALUE=DATE:20261001\nDTEND;VALUE=DATE:20261001"), "2026-10-01", "", ""},
		"a duration":               {file("DTSTART;VALUE=DATE:20261001\nDURATION:P1W"), "2026-10-01..2026-10-07", "", ""},
		"hours that are days":      {file("DTSTART:20261001T000000\nDURATION:PT48H"), "2026-10-01..2026-10-02", "", ""},
		"midnights of a zone":      {file("DTSTART;TZID=Asia/Shanghai:20261001T000000\nDTEND;TZID=Asia/Shanghai:20261003T000000"), "2026-10-01..2026-10-02", "", "Asia/Shanghai"},
		"UTC":                      {file("DTSTART:20261001T000000Z\nDTEND:20261002T000000Z"), "2026-10-01", "", "UTC"},
		"make-up workdays":         {file("DTSTART;VALUE=DATE:20260920\nSUMMARY:国庆节 补班", "DTSTART;VALUE=DATE:20261001\nSUMMARY:国庆节 假期"), "2026-10-01 国庆节 假期", "2026-09-20 国庆节 补班", ""},
		"folded, with escapes":     {file("DTSTART;VALUE=DATE:20261001\nSUMMARY:one\\, t\n wo\\; th\n\tree\\nfour"), "2026-10-01 one, two; three four", "", ""},
		"a quoted parameter":       {file("DTSTART;X-A=\"a:b;c\";VALUE=DATE:20261001"), "2026-10-01", "", ""},
		"an alarm inside":          {file("DTSTART;VALUE=DATE:20261001\nBEGIN:VALARM\nDTSTART:bad\nEND:VALARM"), "2026-10-01", "", ""},
		"cancelled":                {file("DTSTART;VALUE=DATE:20261001\nSTATUS:CANCELLED", "DTSTART;VALUE=DATE:20261002"), "2026-10-02", "", ""},
		"each year":                {file("DTSTART;VALUE=DATE:19491001\nRRULE:FREQ=YEARLY\nSUMMARY:国庆节"), "10-01 国庆节", "", ""},
		"each year, twice said":    {file("DTSTART;VALUE=DATE:19491001\nRRULE:FREQ=YEARLY;BYMONTH=10;BYMONTHDAY=1;WKST=MO"), "10-01", "", ""},
		"days of each year":        {file("DTSTART;VALUE=DATE:20251231\nDTEND;VALUE=DATE:20260102\nRRULE:FREQ=YEARLY"), "12-31..01-01", "", ""},
		"over the end of February": {file("DTSTART;VALUE=DATE:20270228\nDTEND;VALUE=DATE:20270302\nRRULE:FREQ=YEARLY"), "2027-02-28..2027-03-01; 2028-02-28..2028-02-29", "", ""},
		"three times":              {file("DTSTART;VALUE=DATE:20260501\nRRULE:FREQ=YEARLY;COUNT=3"), "2026-05-01; 2027-05-01; 2028-05-01", "", ""},
		"until":                    {file("DTSTART;VALUE=DATE:20260501\nRRULE:FREQ=YEARLY;INTERVAL=2;UNTIL=20300501T000000Z"), "2026-05-01; 2028-05-01; 2030-05-01", "", ""},
		"leap days":                {file("DTSTART;VALUE=DATE:20240229\nRRULE:FREQ=YEARLY;COUNT=2"), "2024-02-29; 2028-02-29", "", ""},
		"the fourth Thursday":      {file("DTSTART;VALUE=DATE:20261126\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH\nSUMMARY:Thanksgiving"), "2026-11-26 Thanksgiving; 2027-11-25 Thanksgiving; 2028-11-23 Thanksgiving", "", ""},
		"the last Monday":          {file("DTSTART;VALUE=DATE:20260525\nRRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO"), "2026-05-25; 2027-05-31; 2028-05-29", "", ""},
		"a rule behind the years":  {file("DTSTART;VALUE=DATE:20400525\nRRULE:FREQ=YEARLY;INTERVAL=3"), "2040-05-25", "", ""},
		"in order":                 {file("DTSTART;VALUE=DATE:20261003", "DTSTART;VALUE=DATE:20261001"), "2026-10-01; 2026-10-03", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, faults := ical.Parse(c.text, ical.Options{Open: []string{"补班"}, Through: 2028})
			if len(faults) > 0 || shown(got.Closed) != c.closed || shown(got.Open) != c.open || got.TimeZone != c.zone || got.Title != "Feiertage" {
				t.Errorf("closed %q, open %q, zone %q, %v", shown(got.Closed), shown(got.Open), got.TimeZone, faults)
			}
		})
	}
}

func TestFaultsNameTheirLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		line int
		says string
	}{
		"empty":              {"", 1, "no event"},
		"no iCalendar":       {"hello", 1, "no line of iCalendar"},
		"no end":             {"BEGIN:VCALENDAR\nBEGIN:VEVENT\n", 3, "has no END"},
		"a wrong end":        {"BEGIN:VCALENDAR\nEND:VEVENT\n", 2, "without its BEGIN"},
		"no start":           {file("SUMMARY:x"), 5, "no DTSTART"},
		"no date":            {file("DTSTART;VALUE=DATE:20261301"), 4, "no date"},
		"a time of day":      {file("DTSTART:20261001T093000\nDTEND:20261001T113000"), 4, "a part of a day"},
		"no length":          {file("DTSTART:20261001T000000"), 4, "takes no day"},
		"half a day":         {file("DTSTART;VALUE=DATE:20261001\nDURATION:PT12H"), 5, "whole days"},
		"both ends":          {file("DTSTART;VALUE=DATE:20261001\nDTEND;VALUE=DATE:20261002\nDURATION:P1D"), 6, "DTEND and DURATION"},
		"backwards":          {file("DTSTART;VALUE=DATE:20261003\nDTEND;VALUE=DATE:20261001"), 5, "takes -2 days"},
		"mixed":              {file("DTSTART;VALUE=DATE:20261003\nDTEND:20261004T000000"), 5, "not of the kind"},
		"two starts":         {file("DTSTART;VALUE=DATE:20261003\nDTSTART;VALUE=DATE:20261004"), 5, "a second DTSTART"},
		"two zones":          {file("DTSTART:20261001T000000Z\nDTEND;TZID=Asia/Tokyo:20261003T000000"), 5, "a calendar has one"},
		"no zone":            {file("DTSTART;TZID=Mars/Olympus:20261001T000000\nDTEND:20261003T000000"), 4, "no time zone"},
		"weekly":             {file("DTSTART;VALUE=DATE:20261003\nRRULE:FREQ=WEEKLY;BYDAY=SA"), 5, "is not read"},
		"any weekday":        {file("DTSTART;VALUE=DATE:20261003\nRRULE:FREQ=YEARLY;BYDAY=4TH"), 5, "is not read"},
		"another month":      {file("DTSTART;VALUE=DATE:20261003\nRRULE:FREQ=YEARLY;BYMONTH=1,2"), 5, "is not read"},
		"without a word":     {file("DTSTART;VALUE=DATE:20261003\nRRULE:COUNT=3"), 5, "is not read"},
		"an exception":       {file("DTSTART;VALUE=DATE:20261003\nRRULE:FREQ=YEARLY\nEXDATE;VALUE=DATE:20271003"), 6, "one by one"},
		"behind folded ones": {"BEGIN:VCALENDAR\nX:a\n b\n c\nBEGIN:VEVENT\nDTSTART:x\nEND:VEVENT\nEND:VCALENDAR", 6, "no date"},
		"no UTF-8":           {"BEGIN:VCALENDAR\nX:\xff\nEND:VCALENDAR", 1, "UTF-8"},
		"too large":          {strings.Repeat("X:y\n", ical.MaxSize/4+1), 1, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, faults := ical.Parse(c.text, ical.Options{Through: 2028})
			if len(faults) == 0 || faults[0].Line != c.line || !strings.Contains(faults[0].Message, c.says) || faults[0].Hint == "" {
				t.Errorf("%v", faults)
			}
		})
	}
}

// What is read fits into a calendar, and closes just the days that the events say.
func TestAnyRangesCloseTheirDays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type span struct{ from, days int }
		spans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) span {
			return span{rapid.IntRange(0, 700).Draw(t, "from"), rapid.IntRange(1, 20).Draw(t, "days")}
		}), 1, 20).Draw(t, "spans")
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		closed := map[int]bool{}
		var events []string
		for _, s := range spans {
			from := begin.AddDate(0, 0, s.from)
			events = append(events, fmt.Sprintf("DTSTART;VALUE=DATE:%s\nDTEND;VALUE=DATE:%s", from.Format("20060102"), from.AddDate(0, 0, s.days).Format("20060102")))
			for n := range s.days {
				closed[s.from+n] = true
			}
		}
		days, faults := ical.Parse(file(events...), ical.Options{})
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		c := schedule.Calendar{Closed: days.Closed}
		s, err := schedule.Parse(schedule.Spec{Cron: "0 12 * * *", Calendars: []string{"c"}, Resolve: func(string) *schedule.Calendar { return &c }}, begin)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 720 {
			noon := begin.AddDate(0, 0, n).Add(12 * time.Hour)
			if schedule.Matches(s, noon) == closed[n] {
				t.Fatalf("%v: closed is %v", noon, closed[n])
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(file("DTSTART;VALUE=DATE:20261001\nDTEND;VALUE=DATE:20261008\nSUMMARY:x", "DTSTART:20261001T000000Z\nDURATION:P1D\nRRULE:FREQ=YEARLY;COUNT=3"))
	f.Add(file("DTSTART;VALUE=DATE:00010101\nRRULE:FREQ=YEARLY;BYMONTH=1;BYDAY=-5SU"))
	f.Fuzz(func(t *testing.T, text string) {
		days, faults := ical.Parse(text, ical.Options{Open: []string{"x"}, Through: 2040})
		if len(faults) > 0 {
			return
		}
		if err := schedule.CheckCalendar(schedule.Calendar{TimeZone: days.TimeZone, Open: days.Open, Closed: days.Closed}); err != nil {
			t.Errorf("%q gives what no calendar is: %v", text, err)
		}
	})
}
