package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
)

// atClock is a server whose clock shows the given instant when it starts, and goes on from there.
func atClock(t *testing.T, at string) *node {
	t.Helper()
	n, _ := withClock(t, at)
	return n
}

// withClock is atClock whose clock can be set.
func withClock(t *testing.T, at string) (n *node, set func(at string)) {
	t.Helper()
	var ahead atomic.Int64 // of the real time
	set = func(at string) {
		t.Helper()
		to, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		ahead.Store(int64(time.Until(to)))
	}
	set(at)
	return startNode(t, func(c *app.Config) { c.Wall = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) } }), set
}

// fires previews a schedule: what a job with it would do next, in its zone, with what a step of the clock does to it.
func (n *node) fires(schedule string) (at []string) {
	n.t.Helper()
	body := fmt.Sprintf(`{"dryRun":true,"documents":[{"job":{"apiVersion":"takt/v1","kind":"Job","metadata":{"name":"j"},"spec":{"pool":"p","handler":"h","schedule":%s}}}]}`, schedule)
	got := asked[takt.ApplyResult](n, "POST", "/api/v1/apply", body)
	for _, f := range got.Items[0].Fires {
		at = append(at, f.At.Format(time.RFC3339))
	}
	return at
}

func (n *node) wantFires(schedule string, want ...string) {
	n.t.Helper()
	if got := n.fires(schedule); len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		n.t.Errorf("%s: %v, want %v", schedule, got, want)
	}
}

// named is a document of a job with a name of its own.
func named(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"takt/v1","kind":"Job","metadata":{"name":%q},"spec":%s}`, name, spec)
}

const jobsPath = "/api/v1/namespaces/default/jobs/"

// hours counts the instants of an hourly job in a stretch that begins now.
func (n *node) hours(zone, within string) int {
	n.t.Helper()
	const name = "hourly"
	asked[takt.Job](n, "PUT", jobsPath+name, named(name, fmt.Sprintf(`{"pool":"p","handler":"h","schedule":{"cron":"0 * * * *","timeZone":%q}}`, zone)))
	list := asked[takt.UpcomingList](n, "GET", "/api/v1/namespaces/default/upcoming?limit=100&for="+within+"&job="+name, "")
	for i := 1; i < len(list.Items); i++ {
		if d := list.Items[i].At.Sub(list.Items[i-1].At); d != time.Hour {
			n.t.Errorf("%v after %v", list.Items[i].At, list.Items[i-1].At)
		}
	}
	return len(list.Items)
}

// TestC01GapPreviewAndRun: a time of day that the clock leaves out comes once, at the first instant behind the gap.
func TestC01GapPreviewAndRun(t *testing.T) {
	n := atClock(t, "2025-03-08T12:00:00-05:00")
	for cron, next := range map[string]string{"30 2 * * *": "2025-03-10T02:30:00-04:00", "0 2,3 * * *": "2025-03-10T02:00:00-04:00", "15,45 2 * * *": "2025-03-10T02:15:00-04:00"} {
		n.wantFires(fmt.Sprintf(`{"cron":%q,"timeZone":"America/New_York"}`, cron), "2025-03-09T03:00:00-04:00", next)
	}
	n.stop()
	n, set := withClock(t, "2025-03-09T01:00:00-05:00")
	asked[takt.Job](n, "PUT", one, doc(`{"pool":"web","handler":"index","schedule":{"cron":"0 2,3 * * *","timeZone":"America/New_York"}}`))
	set("2025-03-09T01:59:57-05:00") // however long it took to get here
	var list takt.ExecutionList
	for end := time.Now().Add(30 * time.Second); len(list.Items) == 0 && time.Now().Before(end); {
		list = asked[takt.ExecutionList](n, "GET", execs, "") // each try is a round trip
	}
	if len(list.Items) != 1 || !list.Items[0].PlannedAt.Equal(time.Date(2025, 3, 9, 7, 0, 0, 0, time.UTC)) {
		t.Errorf("made %+v", list.Items)
	}
}

// TestC03IntervalsThroughTheOverlap: an interval goes on through an hour that comes twice.
func TestC03IntervalsThroughTheOverlap(t *testing.T) {
	n := atClock(t, "2024-04-07T01:00:00+11:00")
	n.wantFires(`{"cron":"*/30 * * * *","timeZone":"Australia/Melbourne"}`, "2024-04-07T01:30:00+11:00", "2024-04-07T02:00:00+11:00",
		"2024-04-07T02:30:00+11:00", "2024-04-07T02:00:00+10:00", "2024-04-07T02:30:00+10:00")
	n.stop()
	n = atClock(t, "2025-11-01T23:59:30-04:00")
	n.wantFires(`{"cron":"*/20 1 * * *","timeZone":"America/New_York"}`, "2025-11-02T01:00:00-04:00", "2025-11-02T01:20:00-04:00", "2025-11-02T01:40:00-04:00",
		"2025-11-02T01:00:00-05:00", "2025-11-02T01:20:00-05:00")
	if got := n.hours("America/New_York", "25h"); got != 25 {
		t.Errorf("%d instants on the day of 25 hours", got)
	}
	n.stop()
	n = atClock(t, "2025-03-08T23:59:30-05:00")
	if got := n.hours("America/New_York", "23h"); got != 23 {
		t.Errorf("%d instants on the day of 23 hours", got)
	}
}

// TestC05MidnightThatDoesNotExist: the day is not lost.
func TestC05MidnightThatDoesNotExist(t *testing.T) {
	for _, c := range []struct{ now, cron, zone, first, second string }{
		{"2018-11-03T12:00:00-03:00", "0 0 * * *", "America/Sao_Paulo", "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"},
		{"2018-11-03T12:00:00-03:00", "0 1 4 11 *", "America/Sao_Paulo", "2018-11-04T01:00:00-02:00", "2019-11-04T01:00:00-03:00"},
		{"2025-04-24T21:00:00+02:00", "0 */2 * * *", "Africa/Cairo", "2025-04-24T22:00:00+02:00", "2025-04-25T02:00:00+03:00"},
		{"2025-09-06T12:00:00-04:00", "0 0 * * *", "America/Santiago", "2025-09-07T01:00:00-03:00", "2025-09-08T00:00:00-03:00"},
	} {
		n := atClock(t, c.now)
		n.wantFires(fmt.Sprintf(`{"cron":%q,"timeZone":%q}`, c.cron, c.zone), c.first, c.second)
		n.stop()
	}
}

// TestC07TheDayAfterTheGap: the day after is as always, and instants strictly rise.
func TestC07TheDayAfterTheGap(t *testing.T) {
	n := atClock(t, "2024-03-03T12:00:00-06:00")
	n.wantFires(`{"cron":"1 2 * * 0","timeZone":"America/Chicago"}`, "2024-03-10T03:00:00-05:00", "2024-03-17T02:01:00-05:00", "2024-03-24T02:01:00-05:00")
	n.stop()
	n = atClock(t, "2025-03-28T12:00:00Z")
	n.wantFires(`{"cron":"30 1 * * *","timeZone":"Europe/London"}`, "2025-03-29T01:30:00Z", "2025-03-30T02:00:00+01:00", "2025-03-31T01:30:00+01:00", "2025-04-01T01:30:00+01:00")
	fires := n.fires(`{"cron":"30 1 * * *","timeZone":"Europe/London"}`)
	for i := 1; i < len(fires); i++ {
		a, _ := time.Parse(time.RFC3339, fires[i-1])
		if b, _ := time.Parse(time.RFC3339, fires[i]); !b.After(a) {
			t.Errorf("%v after %v", b, a)
		}
	}
}

// TestC09ExpressionsThatNeverFire: they are refused at once wherever they come from, or, when their time is only over,
// taken with a warning; the server goes on.
func TestC09ExpressionsThatNeverFire(t *testing.T) {
	n := startNode(t)
	asked[takt.Job](n, "PUT", one, doc(`{"pool":"web","handler":"index"}`))
	spec := func(cron, dialect string) string {
		if dialect != "" {
			dialect = fmt.Sprintf(`,"dialect":%q`, dialect)
		}
		return fmt.Sprintf(`{"pool":"web","handler":"index","schedule":{"cron":%q%s}}`, cron, dialect)
	}
	for cron, dialect := range map[string]string{"0 0 30 2 *": "", "0 0 31 4 *": "", "0 0 31 2,4,6,9,11 *": "", "0 0 0 30 2 ?": "quartz"} {
		for _, name := range []string{"nightly", "other"} {
			began := time.Now()
			status, raw := n.ask("PUT", jobsPath+name, named(name, spec(cron, dialect)))
			if took := time.Since(began); status != http.StatusUnprocessableEntity || !strings.Contains(string(raw), "spec.schedule.cron") || took > 5*time.Second {
				t.Errorf("%s of %s: %d %s in %v", cron, name, status, raw, took)
			}
		}
		set := `{"documents":[{"job":{"apiVersion":"takt/v1","kind":"Job","metadata":{"name":"j"},"spec":` + spec(cron, dialect) + `}}]}`
		if status, raw := n.ask("POST", "/api/v1/apply", set); status/100 != 4 {
			t.Errorf("%s in a set: %d %s", cron, status, raw)
		}
	}
	over := asked[takt.Job](n, "PUT", jobsPath+"over", named("over", spec("0 0 0 1 1 ? 2020", "quartz")))
	if over.Status == nil || len(over.Status.Warnings) == 0 || over.Status.NextPlannedAt != nil {
		t.Errorf("an expression whose years are over: %+v", over.Status)
	}
	asked[takt.Job](n, "PUT", jobsPath+"healthy", named("healthy", `{"pool":"web","handler":"index","schedule":{"every":"1s"}}`))
	for end := time.Now().Add(30 * time.Second); ; {
		if list := asked[takt.ExecutionList](n, "GET", execs+"?job=healthy", ""); len(list.Items) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a healthy job does not fire")
		}
	}
}

// TestC11RangesWrapAsTheirDialectSays: Sunday as 0 and 7, ranges that are reversed.
func TestC11RangesWrapAsTheirDialectSays(t *testing.T) {
	n := atClock(t, "2026-01-01T12:00:00Z") // a Thursday
	n.wantFires(`{"cron":"0 0 * * 5-7"}`, "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z", "2026-01-09T00:00:00Z")
	n.wantFires(`{"cron":"0 0 22-2/2 * * ?","dialect":"quartz"}`, "2026-01-01T22:00:00Z", "2026-01-02T00:00:00Z", "2026-01-02T02:00:00Z", "2026-01-02T22:00:00Z")
	n.wantFires(`{"cron":"0 0 0 ? * FRI-MON","dialect":"quartz"}`, "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z", "2026-01-05T00:00:00Z", "2026-01-09T00:00:00Z")
	n.wantFires(`{"cron":"0 0 0 28-3 * ?","dialect":"quartz"}`, "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-28T00:00:00Z", "2026-01-29T00:00:00Z", "2026-01-30T00:00:00Z")
	n.refused("PUT", one, doc(`{"pool":"web","handler":"index","schedule":{"cron":"0 22-2 * * *"}}`), 422, "bad_schedule")
}

// TestC13FieldsAndDialects: the number of fields is judged by the dialect, which is stored and shown.
func TestC13FieldsAndDialects(t *testing.T) {
	n := atClock(t, "2026-06-01T12:00:00Z")
	n.wantFires(`{"cron":"30 6 * * *","timeZone":"Europe/Helsinki"}`, "2026-06-02T06:30:00+03:00", "2026-06-03T06:30:00+03:00")
	n.wantFires(`{"cron":"* * * * * *","dialect":"seconds6"}`, n.fires(`{"cron":"* * * * * *"}`)[0])
	n.wantFires(`{"cron":"0 0 12 * * ? 2027","dialect":"quartz"}`, "2027-01-01T12:00:00Z")
	n.wantFires(`{"cron":"0 0 12 * * ?","dialect":"quartz"}`, "2026-06-02T12:00:00Z")
	for _, wrong := range []struct{ cron, dialect string }{{"30 6 * * *", "seconds6"}, {"30 6 * * *", "quartz"}, {"0 30 6 * * *", "unix5"}, {"0 0 12 * * ? 2027", "unix5"}} {
		status, raw := n.ask("PUT", one, doc(fmt.Sprintf(`{"pool":"web","handler":"index","schedule":{"cron":%q,"dialect":%q}}`, wrong.cron, wrong.dialect)))
		var p takt.Problem
		if err := json.Unmarshal(raw, &p); err != nil || status != 422 || !strings.Contains(string(raw), "fields") {
			t.Errorf("%v: %d %s", wrong, status, raw)
		}
	}
	made := asked[takt.Job](n, "PUT", one, doc(`{"pool":"web","handler":"index","schedule":{"cron":"0 0 12 * * ?","dialect":"quartz"}}`))
	if made.Spec.Schedule.Dialect != "quartz" {
		t.Errorf("shown as %+v", made.Spec.Schedule)
	}
}
