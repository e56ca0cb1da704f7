package control_test

import (
	"errors"
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

func clockJob(name, cron string, dst schedule.DST) control.PutRequest {
	r := put(name, "web")
	r.Spec.Schedules = []job.Schedule{{ID: job.MainSchedule, Spec: schedule.Spec{Cron: cron, TimeZone: "America/New_York", DST: dst}}}
	return r
}

// A reading that a step forward skipped is said not to exist, with what the schedule makes of it; one that comes twice is answered
// for the instant that the schedule has.
func TestExplainReadsTheClocks(t *testing.T) {
	c, _ := open(t, asked(), nil)
	mustPut(t, c, clockJob("next", "30 2 * * *", schedule.DST{}))
	mustPut(t, c, clockJob("shift", "30 2 * * *", schedule.DST{Gap: schedule.GapShift}))
	mustPut(t, c, clockJob("skip", "30 2 * * *", schedule.DST{Gap: schedule.GapSkip}))
	mustPut(t, c, clockJob("three", "0 3 * * *", schedule.DST{}))
	mustPut(t, c, clockJob("first", "30 1 * * *", schedule.DST{}))
	mustPut(t, c, clockJob("last", "30 1 * * *", schedule.DST{Overlap: schedule.OverlapLast}))
	mustPut(t, c, clockJob("both", "30 1 * * *", schedule.DST{Overlap: schedule.OverlapBoth}))
	const gone = "02:30 does not exist on 2026-03-08 in America/New_York, the clock goes from 02:00 to 03:00"
	for _, x := range []struct {
		job, at string
		want    control.Verdict
		is      string // UTC
		says    []string
	}{
		{"next", "2026-03-08T02:30", control.VerdictWillRun, "2026-03-08T07:00:00Z", []string{gone, "schedule main has 2026-03-08T03:00:00-04:00 in its place"}},
		{"shift", "2026-03-08T02:30", control.VerdictWillRun, "2026-03-08T07:30:00Z", []string{gone, "schedule main has 2026-03-08T03:30:00-04:00 in its place"}},
		{"skip", "2026-03-08T02:30", control.VerdictNotPlanned, "2026-03-08T07:00:00Z", []string{gone, "; schedule main drops it", "the one after is 2026-03-09T02:30:00-04:00"}},
		{"skip", "2026-03-08T03:00", control.VerdictNotPlanned, "2026-03-08T07:00:00Z", []string{"of schedule main dropped: 02:30 does not exist, the clock goes from 02:00 to 03:00"}},
		{"three", "2026-03-08T02:30", control.VerdictNotPlanned, "2026-03-08T07:00:00Z", []string{gone, "the one after is 2026-03-08T03:00:00-04:00"}},
		{"three", "2026-03-08T03:00", control.VerdictWillRun, "2026-03-08T07:00:00Z", nil},
		{"first", "2026-11-01T01:30", control.VerdictWillRun, "2026-11-01T05:30:00Z", []string{"twice: this is 2026-11-01T01:30:00-04:00, the other is 2026-11-01T01:30:00-05:00, which no schedule has"}},
		{"last", "2026-11-01T01:30", control.VerdictWillRun, "2026-11-01T06:30:00Z", []string{"twice: this is 2026-11-01T01:30:00-05:00, the other is 2026-11-01T01:30:00-04:00, which no schedule has"}},
		{"both", "2026-11-01T01:30", control.VerdictWillRun, "2026-11-01T05:30:00Z", []string{"the other is 2026-11-01T01:30:00-05:00, which schedule main has, too"}},
		{"three", "2026-11-01T01:30", control.VerdictNotPlanned, "2026-11-01T05:30:00Z", []string{"the other is 2026-11-01T01:30:00-05:00, which no schedule has"}},
		{"first", "2026-11-01T01:30:00-05:00", control.VerdictNotPlanned, "2026-11-01T06:30:00Z", nil},
	} {
		got, err := c.Explain(t.Context(), "default", x.job, x.at)
		if err != nil || got.Verdict != x.want || got.At != moment(t, x.is) {
			t.Errorf("%s at %s: %s at %v: %s, %v", x.job, x.at, got.Verdict, got.At.Time(), got.Text, err)
		}
		for _, says := range x.says {
			if !strings.Contains(got.Text, says) {
				t.Errorf("%s at %s: %s\nlacks %s", x.job, x.at, got.Text, says)
			}
		}
		if x.says == nil && strings.Contains(got.Text, "clocks") {
			t.Errorf("%s at %s: %s", x.job, x.at, got.Text)
		}
	}
}

// The ends of a backfill that no clock showed are the first instant behind them.
func TestBackfillFromASkippedReading(t *testing.T) {
	now := wall
	c, _ := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	mustPut(t, c, clockJob("quarters", "*/15 * * * *", schedule.DST{}))
	now = wall.AddDate(0, 0, 14)
	b, err := c.Backfill(t.Context(), control.BackfillRequest{Namespace: "default", Job: "quarters", From: "2026-03-08T02:30", To: "2026-03-08T03:15", DryRun: true})
	if err != nil || b.From != moment(t, "2026-03-08T07:00:00Z") || b.Spec.Total != 2 {
		t.Errorf("%v, %d, %v", b.From.Time(), b.Spec.Total, err)
	}
}

// An instant before the job may be one of an earlier job of its name.
func TestExplainNamesTheEarlierJob(t *testing.T) {
	now := wall
	c, st := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	old := mustPut(t, c, clockJob("again", "0 * * * *", schedule.DST{})).Row.Definition
	at := job.InstantOf(wall.Add(time.Hour))
	x := job.Execution{ID: job.PlannedID(old.UID, at), Partition: partition.Of("default", "web", 4), Namespace: "default", Job: "again", JobUID: old.UID, Revision: 1, Pool: "web",
		Handler: "index", Trigger: job.TriggerSchedule, PlannedAt: at, ShardTotal: 1, State: job.ExecutionSucceeded, CreatedAt: at, StartedAt: at, EndedAt: at.Add(time.Second)}
	rows, err := st.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := st.AcquirePartition(t.Context(), rows[x.Partition], "me", wall.UnixMicro(), engine.Level)
	if err == nil {
		err = st.Commit(t.Context(), row.Fence, &engine.Batch{Seq: row.Seq + 1, LastToken: row.LastToken, At: at, Executions: []engine.ExecutionWrite{{Row: x}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	now = wall.Add(2 * time.Hour)
	if _, err := c.Delete(t.Context(), control.DeleteRequest{Namespace: "default", Name: "again"}); err != nil {
		t.Fatal(err)
	}
	now = wall.Add(3 * time.Hour)
	mustPut(t, c, clockJob("again", "0 * * * *", schedule.DST{}))
	wantVerdict(t, c, "again", at.Time(), control.VerdictRan, "ran as execution "+x.ID.String()+": succeeded; it began 0s after its instant and took 1s; that was an earlier job of this name: this one was created at 2026-03-01T15:00:00Z")
	other, err := c.Explain(t.Context(), "default", "again", at.Time().Add(time.Hour).Format(time.RFC3339))
	if err != nil || other.Verdict != control.VerdictNotThere || strings.Contains(other.Text, "earlier") {
		t.Errorf("%s, %v", other.Text, err)
	}
}

// A backfill that is behind an instant, or runs it now, has come to it.
func TestExplainKnowsHowFarABackfillIs(t *testing.T) {
	now := wall
	c, st := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	uid := mustPut(t, c, clockJob("b", "0 * * * *", schedule.DST{})).Row.Definition.UID
	now = wall.Add(12 * time.Hour)
	hour := func(n int) time.Time { return wall.Add(time.Duration(n) * time.Hour) }
	p := partition.Of("default", "web", 4)
	rows, err := st.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := st.AcquirePartition(t.Context(), rows[p], "me", wall.UnixMicro(), engine.Level)
	if err != nil {
		t.Fatal(err)
	}
	seq := row.Seq
	commit := func(b engine.Batch) {
		t.Helper()
		seq++
		b.Seq, b.LastToken, b.At = seq, row.LastToken, job.InstantOf(now)
		if err := st.Commit(t.Context(), row.Fence, &b); err != nil {
			t.Fatal(err)
		}
	}
	progress := func(x job.BackfillProgress) engine.Batch {
		x.Started = job.InstantOf(now)
		return engine.Batch{Backfills: []job.BackfillProgress{x}}
	}
	commit(engine.Batch{Cursors: []job.Cursor{{Job: uid, Schedule: job.MainSchedule, Revision: 1, Last: job.InstantOf(hour(12)), Next: job.InstantOf(hour(13))}}})
	comes := func(b control.Backfilled, n int, want bool) {
		t.Helper()
		x, err := c.Explain(t.Context(), "default", "b", hour(n).Format(time.RFC3339))
		if err != nil || x.Evidence.Backfill != b.ID || strings.Contains(x.Text, "has not come to it yet") != want {
			t.Errorf("hour %d: %s, %v; comes: want %v", n, x.Text, err, want)
		}
	}
	for _, reverse := range []bool{false, true} {
		b, err := c.Backfill(t.Context(), control.BackfillRequest{Namespace: "default", Job: "b", From: hour(1).Format(time.RFC3339), To: hour(9).Format(time.RFC3339), Reverse: reverse})
		if err != nil {
			t.Fatal(err)
		}
		comes(b, 5, true)
		commit(progress(job.BackfillProgress{ID: b.ID, State: job.BackfillRunning, Cursor: job.InstantOf(hour(5)), Open: []job.Instant{job.InstantOf(hour(5))}}))
		comes(b, 5, false)
		comes(b, 3, reverse)
		comes(b, 7, !reverse)
		commit(progress(job.BackfillProgress{ID: b.ID, State: job.BackfillDone, Cursor: job.InstantOf(hour(9)), Ended: job.InstantOf(now)}))
	}
}

// A dry run of a backfill tells what each schedule has in the range.
func TestDryBackfillTellsSchedules(t *testing.T) {
	now := wall
	c, _ := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	r := clockJob("two", "0 * * * *", schedule.DST{})
	r.Spec.Schedules = append(r.Spec.Schedules, job.Schedule{ID: "rate", Spec: schedule.Spec{Every: 30 * time.Minute}},
		job.Schedule{ID: "never", Spec: schedule.Spec{Cron: "0 0 1 1 *"}}, job.Schedule{ID: "gap", Spec: schedule.Spec{Delay: time.Minute}})
	mustPut(t, c, r)
	now = wall.Add(5 * time.Hour)
	at := func(d time.Duration) string { return wall.Add(d).Format(time.RFC3339) }
	b, err := c.Backfill(t.Context(), control.BackfillRequest{Namespace: "default", Job: "two", From: at(time.Hour), To: at(150 * time.Minute), DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	day := job.InstantOf(wall)
	want := []control.LineCount{{Schedule: job.MainSchedule, Count: 2, First: day.Add(time.Hour), Last: day.Add(2 * time.Hour)},
		{Schedule: "rate", Count: 4, First: day.Add(time.Hour), Last: day.Add(150 * time.Minute)}}
	if b.Spec.Total != 4 || len(b.Lines) != 2 || b.Lines[0] != want[0] || b.Lines[1] != want[1] {
		t.Errorf("%d: %+v, want %+v", b.Spec.Total, b.Lines, want)
	}
}

// A range without planned instants is not started: it names the ones around it. A dry run tells that there are none. The first instant
// of all is one that a range may begin with.
func TestBackfillOfNothing(t *testing.T) {
	now := wall
	c, _ := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	mustPut(t, c, clockJob("daily", "30 2 * * *", schedule.DST{}))
	r := control.BackfillRequest{Namespace: "default", Job: "daily", From: "2026-01-05T03:00", To: "2026-01-06T02:00"}
	now = wall.Add(time.Hour)
	_, err := c.Backfill(t.Context(), r)
	wantCode(t, err, job.KindInvalid, "no_instants")
	const around = "the one before it is 2026-01-05T02:30:00-05:00, the one after it is 2026-01-06T02:30:00-05:00"
	if e, ok := errors.AsType[*job.Error](err); !ok || e.Hint != around {
		t.Errorf("%v", err)
	}
	if all, _, err := c.Backfills(t.Context(), "default", "daily", store.Page{}); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
	r.DryRun = true
	if b, err := c.Backfill(t.Context(), r); err != nil || b.Spec.Total != 0 || !strings.HasSuffix(b.Note, around) {
		t.Errorf("%+v, %v", b, err)
	}
	r.From, r.To = "1970-01-01T00:00:00Z", "1970-01-02T02:30"
	if b, err := c.Backfill(t.Context(), r); err != nil || b.Spec.Total != 2 || b.From != 1000 {
		t.Errorf("%+v, %v", b, err)
	}
}
