package filter_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/taktsched/takt/internal/filter"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// row ran for a minute and ended an hour ago.
func row() *filter.Row {
	at := func(ago time.Duration) int64 { return now.Add(-ago).UnixMilli() }
	return &filter.Row{State: "failed", Job: "billing-a", Pool: "p", Handler: "h", Trigger: "schedule", Reason: "retries_exhausted",
		Shards: 8, Round: 1, Created: at(3 * time.Hour), Planned: at(2 * time.Hour), Started: at(61 * time.Minute), Ended: at(time.Hour)}
}

func TestMatches(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "  \t\n": true,
		"state:failed": true, "state:running": false, "state:running,failed": true, "-state:failed": false, "-state:running,queued": true,
		"job:billing-a": true, "job:billing": false, "job:billing-*": true, "job:*": true, "-job:billing-*": false, `job:"billing-a"`: true, `job:"x y",billing-a`: true,
		"pool:p handler:h trigger:schedule reason:retries_exhausted": true, "pool:p handler:x": false,
		"duration>30s": true, "duration>1m": false, "duration>=1m": true, "duration:1m": true, "duration<=59s999ms": false, "duration<1m1s": true, "-duration>30s": false,
		"planned>2h": false, "planned>=2h": true, "planned>1h59m": true, "planned<1d": true, "planned<1h": false,
		"planned>2026-11-29T09:59:59Z": true, "planned>2026-11-29T10:00:00Z": false, "planned:2026-11-29T10:00:00Z": true, "ended<2026-11-29T12:00:00+01:00": false,
		"ended>2026-11-29": true, "ended<30m": false, "ended>30m": true, "created>2h started>1h": true,
		"shards>7": true, "shards:8": true, "shards>8": false, "round<2": true, "round:0": false,
		`"state":failed`: false,
	} {
		q, err := filter.Parse(text, now)
		if text == `"state":failed` {
			if err == nil {
				t.Errorf("%q was taken", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := q.Matches(row()); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// One that still runs is measured up to now; one that never began has no duration, and not even not one.
func TestDurationOfWhatRuns(t *testing.T) {
	running, waiting := row(), row()
	running.Ended, waiting.Started, waiting.Ended = 0, 0, 0
	for text, want := range map[string][2]bool{"duration>1h": {true, false}, "-duration>1h": {false, false}, "ended>1h": {false, false}} {
		q, err := filter.Parse(text, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{q.Matches(running), q.Matches(waiting)}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestFaultsHaveAPlace(t *testing.T) {
	for text, want := range map[string]string{
		"failed":                      `1: "failed" is no field`,
		"state:failed nonsense:1":     `14: "nonsense" is no field`,
		"state":                       `6: after state comes`,
		"state>failed":                `6: state can only be compared with :`,
		"state:":                      `7: a value is missing`,
		"state:failed,":               `14: a value is missing`,
		"state:Failed":                `7: "Failed" is no state`,
		"  -trigger:cron":             `12: "cron" is no trigger`,
		`job:"a`:                      `5: the quotes are not closed`,
		`job:"a"b`:                    `8: a blank is missing`,
		"shards>1,2":                  `9: shards is compared with one value`,
		"shards>-1":                   `8: "-1" is no whole number`,
		"shards>99999999999999999999": `8: "99999999999999999999" is no whole number`,
		"duration>30":                 `10: "30" is no length of time`,
		"duration>9999999999w":        `10: "9999999999w" is no length`,
		"duration>2000000000w":        `10: "2000000000w" is no length`,
		"planned>soon":                `9: "soon" is neither an instant nor an age`,
		"planned:2h":                  `9: "2h" is an age`,
		"job:\xff":                    `5: the value is no UTF-8`,
		"job:a\x00":                   `5: the value is no UTF-8`,
		"Ärger:1":                     `1: "Ärger" is no field`,
		strings.Repeat("x", 2049):     `2049: the filter is too long`,
		strings.Repeat("job:a ", 33):  `too many terms`,
	} {
		_, err := filter.Parse(text, now)
		var e *filter.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestOnly(t *testing.T) {
	q, err := filter.Parse("job:a state:failed,queued pool:x* -handler:h", now)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := q.Only("job"); !ok || got != "a" {
		t.Errorf("job: %q %v", got, ok)
	}
	for _, field := range []string{"state", "pool", "handler", "reason"} {
		if got, ok := q.Only(field); ok {
			t.Errorf("%s: %q", field, got)
		}
	}
}

// Whatever the text: no panic, and a fault lies inside the text.
// What matches lies between the bounds that the query says, and the bounds are no wider than its terms.
func TestBetween(t *testing.T) {
	t.Parallel()
	const none, all = math.MinInt64, math.MaxInt64
	for _, c := range []struct {
		text        string
		least, most int64
	}{
		{"", none, all},
		{"round>3 round<9", 4, 8},
		{"round>=3 round<=9 round<=7", 3, 7},
		{"round:5", 5, 5},
		{"-round>3", none, all},
		{"shards>3", none, all},
	} {
		q, err := filter.Parse(c.text, now)
		if err != nil {
			t.Fatal(err)
		}
		if least, most := q.Between("round"); least != c.least || most != c.most {
			t.Errorf("%s: %d to %d, should be %d to %d", c.text, least, most, c.least, c.most)
		}
	}
	for _, text := range []string{"planned>3h", "planned<1h", "planned>3h planned<1h", "planned<3h", "planned>1h"} {
		q, err := filter.Parse(text, now)
		if err != nil {
			t.Fatal(err)
		}
		r := row()
		least, most := q.Between("planned")
		if within := least <= r.Planned && r.Planned <= most; within != q.Matches(r) {
			t.Errorf("%s: matches %v, %d to %d hold %d: %v", text, q.Matches(r), least, most, r.Planned, within)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"state:failed job:x duration>30s planned>2h", `-job:"a\"b",c*`, "planned>=2026-11-01T00:00:00Z", "state:", "job:\xff", "shards>1,2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := filter.Parse(text, now)
		var e *filter.Error
		switch {
		case err == nil:
			q.Matches(row())
			if len(q.Terms) > filter.MaxTerms {
				t.Errorf("%d terms", len(q.Terms))
			}
		case !errors.As(err, &e):
			t.Errorf("%T", err)
		case e.Position < 0 || e.Position > len(text) || !utf8.ValidString(e.Message) || e.Message == "":
			t.Errorf("fault %+v in %q", e, text)
		}
	})
}
