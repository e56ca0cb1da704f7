package control_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/schedule"
)

// A whole second means the planned instant in it, judged by what was in force at that instant and not at the second's begin.
func TestExplainOfASecondInWhichTheJobWasEdited(t *testing.T) {
	now := wall
	c, _ := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	rate := func(name string, phase time.Duration) {
		t.Helper()
		p := phase
		mustPut(t, c, control.PutRequest{Namespace: "default", Name: name, Spec: job.Spec{Pool: "web", Handler: "index",
			Schedules: []job.Schedule{{ID: job.MainSchedule, Spec: schedule.Spec{Every: 10 * time.Second, Phase: p}}}}})
	}
	rate("before", 870*time.Millisecond)
	rate("behind", 870*time.Millisecond)
	second := wall.Add(time.Hour)
	now = second.Add(400 * time.Millisecond)
	rate("before", 200*time.Millisecond) // the new one's instant of the second lies before the edit
	rate("behind", 950*time.Millisecond)
	now = second.Add(2 * time.Hour)
	wantVerdict(t, c, "before", second, control.VerdictNotPlanned, "of the second that was asked for, this is the planned instant")
	x, err := c.Explain(t.Context(), "default", "behind", second.Format(time.RFC3339))
	if err != nil || x.At != job.InstantOf(second.Add(950*time.Millisecond)) || x.Revision != 2 {
		t.Errorf("%s under revision %d: %s, %v; meant is %s of revision 2", x.At, x.Revision, x.Text, err, second.Add(950*time.Millisecond))
	}
}

// What the ends of the newest executions of its parents have led to is an execution of their instant.
func TestExplainFindsWhatLatestParentsLedTo(t *testing.T) {
	now := wall
	c, st := open(t, asked(), func(c *control.Config) { c.Now = func() time.Time { return now } })
	mustPut(t, c, put("load", "web"))
	child := put("report", "web")
	child.Spec.After = []job.After{{Job: "load", Match: job.MatchLatest}}
	uid := mustPut(t, c, child).Row.Definition.UID
	at := job.InstantOf(wall.Add(time.Minute))
	p := partition.Of("default", "web", 4)
	rows, err := st.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := st.AcquirePartition(t.Context(), rows[p], "me", wall.UnixMicro(), engine.Level)
	if err != nil {
		t.Fatal(err)
	}
	x := job.Execution{ID: job.SetID(uid, at, []job.ExecutionID{{1}}), Partition: p, Namespace: "default", Job: "report", JobUID: uid, Revision: 1, Pool: "web", Handler: "index",
		Trigger: job.TriggerAfter, PlannedAt: at, ShardTotal: 1, State: job.ExecutionQueued, CreatedAt: at}
	if err := st.Commit(t.Context(), row.Fence, &engine.Batch{Seq: row.Seq + 1, LastToken: row.LastToken, At: at, Executions: []engine.ExecutionWrite{{Row: x}},
		Shards: []engine.ShardWrite{{Row: job.Shard{Execution: x.ID, State: job.ShardQueued}}}}); err != nil {
		t.Fatal(err)
	}
	now = wall.Add(time.Hour)
	wantVerdict(t, c, "report", at.Time(), control.VerdictWaits, x.ID.String())
	wantVerdict(t, c, "report", wall.Add(2*time.Minute), control.VerdictAfterOthers, "runs after other jobs")
}
