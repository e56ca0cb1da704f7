package schedule_test

import (
	"errors"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

// One reader of instants serves all flags and fields: offsets, readings of a zone, and of one that the text names itself.
func TestReadInstant(t *testing.T) {
	t.Parallel()
	berlin, err := schedule.ZoneNamed("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		zone *time.Location
		last bool
		want string // in UTC; "": refused
		step bool
	}{
		{"2026-03-29T02:30:00+02:00", nil, false, "2026-03-29T00:30:00Z", false},
		{"2026-03-29T02:30Z", berlin, false, "2026-03-29T02:30:00Z", false},
		{"2026-03-28T02:30", berlin, false, "2026-03-28T01:30:00Z", false},
		{"2026-03-28 02:30", berlin, false, "2026-03-28T01:30:00Z", false},
		{"2026-03-28", berlin, false, "2026-03-27T23:00:00Z", false},
		{"2026-03-29T02:30:00[Europe/Berlin]", nil, false, "2026-03-29T01:00:00Z", true},
		{"2026-03-29T02:30", berlin, false, "2026-03-29T01:00:00Z", true},
		{"2026-03-29T02:30[Asia/Shanghai]", berlin, false, "2026-03-28T18:30:00Z", false},
		{"2026-10-25T02:30[Europe/Berlin]", nil, false, "2026-10-25T00:30:00Z", false},
		{"2026-10-25T02:30[Europe/Berlin]", nil, true, "2026-10-25T01:30:00Z", false},
		{"2026-10-25T02:30:00Z[Europe/Berlin]", berlin, false, "", false},
		{"2026-03-28T02:30", nil, false, "", false},
		{"2026-13-28T02:30[Europe/Berlin]", nil, false, "", false},
		{"2026-03-28T02:30[]", berlin, false, "", false},
		{"2026-03-28T02:30[UTC", berlin, false, "", false},
		{"noon", berlin, false, "", false},
	} {
		at, step, err := schedule.ReadInstant(c.text, c.zone, c.last)
		bad, refused := errors.AsType[*schedule.Error](err)
		switch {
		case c.want == "" && (!refused || bad.Hint == ""):
			t.Errorf("%s: %v, %v; want a refusal that says what to do", c.text, at, err)
		case c.want != "" && (err != nil || at.UTC().Format(time.RFC3339) != c.want || (step != nil) != c.step):
			t.Errorf("%s: %v, %v, %v; want %s", c.text, at, step, err, c.want)
		}
	}
	_, _, err = schedule.ReadInstant("2026-03-29T02:30[Mars/Base]", berlin, false)
	if bad, ok := errors.AsType[*schedule.Error](err); !ok || bad.Field != "timeZone" || bad.Hint == "" {
		t.Errorf("a zone that is none: %v", err)
	}
}
