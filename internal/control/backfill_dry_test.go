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

// putCursor does what an owner does with the place that a schedule has come to.
func putCursor(t *testing.T, st store.Store, x job.Cursor) {
	t.Helper()
	rows, err := st.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := partition.Of("default", "web", 4)
	row, err := st.AcquirePartition(t.Context(), rows[p], "me", wall.UnixMicro(), engine.Level)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Commit(t.Context(), row.Fence, &engine.Batch{Seq: row.Seq + 1, LastToken: row.LastToken, At: job.InstantOf(wall), Cursors: []job.Cursor{x}}); err != nil {
		t.Fatal(err)
	}
}

// A dry run says what would refuse the backfill: what is owed yet, what is to be planned, another backfill of the range.
func TestDryBackfillSaysWhatWouldRefuseIt(t *testing.T) {
	now := wall
	c, st := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	minutely := put("minutely", "web")
	minutely.Spec.Schedules = []job.Schedule{{ID: job.MainSchedule, Spec: schedule.Spec{Cron: "* * * * *"}}}
	uid := mustPut(t, c, minutely).Row.Definition.UID
	now = wall.Add(time.Hour)
	after := func(minutes int) job.Instant { return job.InstantOf(wall.Add(time.Duration(minutes) * time.Minute)) }
	putCursor(t, st, job.Cursor{Job: uid, Schedule: job.MainSchedule, Revision: 1, Next: after(50), Owed: after(20), OwedTo: after(30)})
	ask := func(dry bool, from, to int) (control.Backfilled, error) {
		return c.Backfill(t.Context(), control.BackfillRequest{Namespace: "default", Job: "minutely", DryRun: dry,
			From: after(from).Time().Format(time.RFC3339), To: after(to).Time().Format(time.RFC3339)})
	}
	check := func(from, to int, want string) {
		t.Helper()
		b, err := ask(true, from, to)
		if err != nil || b.Spec.Total != int64(to-from+1) || (want == "") != (b.Note == "") || !strings.Contains(b.Note, want) {
			t.Errorf("dry from %d to %d: %d, %q, %v; want %q", from, to, b.Spec.Total, b.Note, err, want)
		}
		if _, err := ask(false, from, to); (want == "") != (err == nil) {
			t.Errorf("from %d to %d: %v; a dry run says %q", from, to, err, b.Note)
		}
	}
	check(25, 40, `it would be refused now: the schedule "main" is catching up from `)
	check(40, 55, `it would be refused now: the schedule "main" has yet to plan `)
	check(31, 40, "")
	check(35, 45, "has a part of the range and has not ended (wait for it or cancel it: takt get backfills)")
	check(1, 19, "")
}
