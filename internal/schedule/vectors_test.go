package schedule_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

// vector is one of Takt's cron vectors: an expression, an instant and the three planned instants after
// it, or an error.
type vector struct {
	ID      string      `json:"id"`
	Expr    string      `json:"expr"`
	Dialect string      `json:"dialect"`
	Zone    string      `json:"tz"`
	From    time.Time   `json:"from"`
	Next    []time.Time `json:"next"`
	Error   bool        `json:"error"`
	Note    string      `json:"note"`
}

func vectors(t testing.TB) []vector {
	raw, err := os.ReadFile("testdata/cron_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 60 {
		t.Fatalf("%d vectors, want 60", len(all))
	}
	return all
}

func TestVectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t) {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			dialect := schedule.Dialect(v.Dialect)
			if v.Dialect == "quartz7" {
				dialect = schedule.Quartz
			}
			_, bad := schedule.ParseExpression(v.Expr, dialect, "")
			if v.Error != (bad != nil) {
				t.Fatalf("%q (%s): error %v, want one: %v", v.Expr, v.Note, bad, v.Error)
			}
			if bad != nil {
				return
			}
			checkNext(t, v, dialect)
		})
	}
}

func checkNext(t *testing.T, v vector, dialect schedule.Dialect) {
	s, err := schedule.Parse(schedule.Spec{Cron: v.Expr, Dialect: dialect, TimeZone: v.Zone}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	from := v.From
	for i, want := range v.Next {
		got, ok := s.Next(from)
		if !ok || !got.Equal(want) {
			t.Fatalf("%q in %s (%s): instant %d after %v is %v, %v; want %v", v.Expr, v.Zone, v.Note, i+1, from, got, ok, want)
		}
		from = got
	}
}

// Without a declared dialect a Quartz text is told from the others: it is never read by other rules.
func TestDialectOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]schedule.Dialect{
		"* * * * *":               schedule.Unix5,
		"@daily":                  schedule.Unix5,
		"0 0 * JUL WED":           schedule.Unix5,
		"0 0 0 * JUL WED":         schedule.Seconds6,
		"*/5 * * * * *":           schedule.Seconds6,
		"0 0 0 L * *":             schedule.Quartz,
		"0 0 0 15W * *":           schedule.Quartz,
		"0 0 0 * * 6L":            schedule.Quartz,
		"0 0 0 * * fril":          schedule.Quartz,
		"0 0 9 * * 6#3":           schedule.Quartz,
		"0 0 12 * * ?":            schedule.Quartz,
		"0 0 12 1 1 MON 2027":     schedule.Quartz,
		"0 0 12 ? * MON-FRI 2027": schedule.Quartz,
	} {
		if got := schedule.DialectOf(text); got != want {
			t.Errorf("DialectOf(%q) = %s, want %s", text, got, want)
		}
		s, err := schedule.Parse(schedule.Spec{Cron: text}, time.Time{})
		if err == nil && schedule.Reading(s) != want {
			t.Errorf("Parse(%q) reads %s, want %s", text, schedule.Reading(s), want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 5, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		spec  schedule.Spec
		field string
		pos   int
	}{
		{"nothing", schedule.Spec{}, "", 0},
		{"two", schedule.Spec{Cron: "* * * * *", Every: time.Minute}, "", 0},
		{"zone without cron", schedule.Spec{Every: time.Minute, TimeZone: "UTC"}, "timeZone", 0},
		{"unknown zone", schedule.Spec{Cron: "* * * * *", TimeZone: "Europe/Atlantis"}, "timeZone", 0},
		{"zone of the machine", schedule.Spec{Cron: "* * * * *", TimeZone: "Local"}, "timeZone", 0},
		{"zone path", schedule.Spec{Cron: "* * * * *", TimeZone: "../UTC"}, "timeZone", 0},
		{"two zones", schedule.Spec{Cron: "CRON_TZ=UTC * * * * *", TimeZone: "Europe/Berlin"}, "timeZone", 9},
		{"zone alone", schedule.Spec{Cron: "CRON_TZ=UTC"}, "cron", 12},
		{"zone without a name", schedule.Spec{Cron: "TZ= * * * * *"}, "timeZone", 4},
		{"zone and blank", schedule.Spec{Cron: "TZ=UTC  "}, "cron", 7},
		{"too long", schedule.Spec{Cron: "* * * * " + string(make([]byte, schedule.MaxText))}, "cron", schedule.MaxText + 1},
		{"blank", schedule.Spec{Cron: "  "}, "cron", 1},
		{"four fields", schedule.Spec{Cron: "* * * *"}, "cron", 8},
		{"four and blanks", schedule.Spec{Cron: "  * * * *  "}, "cron", 10},
		{"eight fields", schedule.Spec{Cron: "1 2 3 4 5 6 7 8"}, "cron", 11},
		{"six of five", schedule.Spec{Cron: "0 0 1 1 * 5", Dialect: schedule.Unix5}, "cron", 11},
		{"five of six", schedule.Spec{Cron: "0 0 1 1 *", Dialect: schedule.Seconds6}, "cron", 10},
		{"seven of six", schedule.Spec{Cron: "0 0 0 1 1 * 5", Dialect: schedule.Seconds6}, "cron", 13},
		{"too few after zone", schedule.Spec{Cron: "TZ=UTC * *"}, "cron", 11},
		{"Quartz by its #, five fields", schedule.Spec{Cron: "* * * * 1#6"}, "cron", 12},
		{"hour 24", schedule.Spec{Cron: "0 24 * * *"}, "cron", 3},
		{"second in list", schedule.Spec{Cron: "5,61 0 * * * *"}, "cron", 3},
		{"after zone", schedule.Spec{Cron: "TZ=UTC 0 24 * * *"}, "cron", 10},
		{"day 0", schedule.Spec{Cron: "0 0 0 * *"}, "cron", 5},
		{"month 13", schedule.Spec{Cron: "0 0 * 13 *"}, "cron", 7},
		{"name of another field", schedule.Spec{Cron: "0 0 * * JAN"}, "cron", 9},
		{"empty item", schedule.Spec{Cron: "1,,2 * * * *"}, "cron", 3},
		{"open range", schedule.Spec{Cron: "1- * * * *"}, "cron", 3},
		{"backwards", schedule.Spec{Cron: "0 0 * * FRI-MON"}, "cron", 9},
		{"step 0", schedule.Spec{Cron: "*/0 * * * *"}, "cron", 3},
		{"no step", schedule.Spec{Cron: "*/ * * * *"}, "cron", 3},
		{"huge", schedule.Spec{Cron: "0 99999999999999999999 * * *"}, "cron", 3},
		{"star in range", schedule.Spec{Cron: "0 *-5 * * *"}, "cron", 3},
		{"31 April", schedule.Spec{Cron: "0 0 31 4,6 *"}, "cron", 5},
		{"macro", schedule.Spec{Cron: "@reboot"}, "cron", 1},
		{"macro with fields", schedule.Spec{Cron: "@daily * * * *"}, "cron", 1},
		{"short period", schedule.Spec{Every: 999 * time.Millisecond}, "every", 0},
		{"negative period", schedule.Spec{Every: -time.Minute}, "every", 0},
		{"fine period", schedule.Spec{Every: time.Second + time.Microsecond}, "every", 0},
		{"long period", schedule.Spec{Every: schedule.MaxEvery + time.Second}, "every", 0},
		{"old instant", schedule.Spec{At: at.AddDate(-100, 0, 0)}, "at", 0},
		{"far instant", schedule.Spec{At: at.AddDate(8000, 0, 0)}, "at", 0},
	} {
		s, err := schedule.Parse(c.spec, at)
		e, ok := errors.AsType[*schedule.Error](err)
		if !ok || s != nil {
			t.Errorf("%s: %v, want a *schedule.Error", c.name, err)
			continue
		}
		if e.Field != c.field || e.Pos != c.pos || e.Message == "" {
			t.Errorf("%s: field %q position %d (%v), want %q %d", c.name, e.Field, e.Pos, e, c.field, c.pos)
		}
	}
}
