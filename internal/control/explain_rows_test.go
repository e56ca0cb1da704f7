package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// decide does what an owner does with instants that become no execution.
func decide(t *testing.T, st store.Store, all ...job.Decision) {
	t.Helper()
	p := partition.Of("default", "web", 4)
	rows, err := st.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := st.AcquirePartition(t.Context(), rows[p], "me", wall.UnixMicro(), engine.Level)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Commit(t.Context(), row.Fence, &engine.Batch{Seq: row.Seq + 1, LastToken: row.LastToken, At: job.InstantOf(wall), Decisions: all}); err != nil {
		t.Fatal(err)
	}
}

// asked is an owner that answers, and has nothing to tell.
func asked() *owner {
	return &owner{look: func(engine.InspectQuery) (any, error) { return &engine.Inspected{}, nil }}
}

// wantVerdict explains an instant and looks at the answer.
func wantVerdict(t *testing.T, c *control.Control, name string, at time.Time, want control.Verdict, says string) {
	t.Helper()
	x, err := c.Explain(t.Context(), "default", name, at.Format(time.RFC3339))
	if err != nil || x.Verdict != want || !strings.Contains(x.Text, says) {
		t.Errorf("%s at %v: %s: %s, %v\nwant %s: …%s…", name, at, x.Verdict, x.Text, err, want, says)
	}
}

// Decisions about a job that only runs after others name no schedule, and instants that may have a fraction of a second.
func TestExplainTellsDecisionsOfAJobThatFollowsOthers(t *testing.T) {
	now := wall
	c, st := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	mustPut(t, c, put("load", "web"))
	child := put("report", "web")
	child.Spec.After = []job.After{{Job: "load"}}
	uid := mustPut(t, c, child).Row.Definition.UID
	decision := func(kind job.DecisionKind, why job.Reason, after time.Duration) job.Decision {
		at := job.InstantOf(wall.Add(after))
		return job.Decision{Job: uid, Namespace: "default", Name: "report", Kind: kind, Reason: why, From: at, To: at, Count: 1, At: at.Add(time.Second)}
	}
	decide(t, st, decision(job.DecisionBlocked, job.ReasonOverlapFull, time.Minute), decision(job.DecisionSkipped, job.ReasonPaused, 2*time.Minute+250*time.Millisecond))
	now = wall.Add(time.Hour)
	wantVerdict(t, c, "report", wall.Add(time.Minute), control.VerdictBlocked, "overlap.maxQueued")
	wantVerdict(t, c, "report", wall.Add(2*time.Minute), control.VerdictSkipped, "of the second that was asked for, this is the planned instant")
	wantVerdict(t, c, "report", wall.Add(3*time.Minute), control.VerdictAfterOthers, "runs after other jobs")
}

// What closed an instant is the revision of the calendar that was in force then, whatever was written since.
func TestExplainKeepsToTheCalendarOfThen(t *testing.T) {
	now := wall
	c, _ := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	put := func(r control.CalendarRequest) {
		t.Helper()
		if _, err := c.PutCalendar(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	put(calendarOf("shared"))
	now = wall.Add(10*time.Second + 120*time.Millisecond)
	for name, spec := range map[string]schedule.Spec{"cron": {Cron: "0 * * * *"}, "rate": {Every: 10 * time.Second}, "spread": {Cron: "0 * * * *", Jitter: 10 * time.Minute}} {
		spec.Calendars = []string{"shared"}
		r := control.PutRequest{Namespace: "default", Name: name, Spec: job.Spec{Pool: "web", Handler: "index", Schedules: []job.Schedule{{ID: job.MainSchedule, Spec: spec}}}}
		mustPut(t, c, r)
	}
	at := wall.Add(time.Hour)
	seconds := at.Add(10 * time.Second) // of the rate, with its fraction
	now = wall.Add(30 * time.Minute)
	put(calendarOf("shared", schedule.Dates{From: "2026-03-01", Name: "fair"}))
	closed := func(when string, names ...string) {
		t.Helper()
		t.Log(when)
		for _, name := range names {
			wantVerdict(t, c, name, at, control.VerdictClosed, "closed by calendar shared, revision 2 (fair); schedule main would have this instant")
		}
		wantVerdict(t, c, "rate", seconds, control.VerdictClosed, "closed by calendar shared, revision 2 (fair); schedule main would have this instant")
	}
	closed("ahead", "cron", "spread")
	now = at.Add(30 * time.Second)
	closed("before the change back", "cron")
	now = at.Add(15 * time.Minute)
	closed("before the change back", "cron", "spread")
	put(calendarOf("shared"))
	closed("after the change back", "cron", "spread")
	now = at.Add(24 * time.Hour)
	closed("a day later", "cron", "spread")
	wantVerdict(t, c, "cron", at.Add(48*time.Hour), control.VerdictWillRun, "will run in")
	wantVerdict(t, c, "cron", at.Add(time.Minute), control.VerdictNotPlanned, "has this instant")

	now = at.Add(25*time.Hour + time.Second) // behind the instant, before what the spread made of it
	put(calendarOf("shared", schedule.Dates{From: "2026-03-02", Name: "storm"}))
	now = at.Add(26 * time.Hour)
	wantVerdict(t, c, "spread", at.Add(25*time.Hour), control.VerdictClosed, "closed by calendar shared, revision 4 (storm)")
	wantVerdict(t, c, "cron", at.Add(25*time.Hour), control.VerdictClosed, "closed by a calendar that was changed after this instant; revision 1 with calendar shared, revision 3, which was in force, has it")

	for _, name := range []string{"cron", "rate", "spread"} {
		if _, err := c.Delete(t.Context(), control.DeleteRequest{Namespace: "default", Name: name, Cancel: true}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.DeleteCalendar(t.Context(), calendarOf("shared")); err != nil {
		t.Fatal(err)
	}
	closed("when all is deleted", "cron", "spread")
}
