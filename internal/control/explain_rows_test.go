package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
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
	row, err := st.AcquirePartition(t.Context(), rows[p], "me", wall.UnixMicro())
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Commit(t.Context(), row.Fence, &engine.Batch{Seq: row.Seq + 1, LastToken: row.LastToken, At: job.InstantOf(wall), Decisions: all}); err != nil {
		t.Fatal(err)
	}
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
	c, st := open(t, &owner{}, func(c *control.Config) {
		c.Now, c.EffectWait = func() time.Time { return now }, time.Millisecond
	})
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
