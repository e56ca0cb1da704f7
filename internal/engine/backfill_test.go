package engine_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/job"
)

// TestBackfills: whatever dies while a range of the past is run, each of its instants ends with one execution that succeeded,
// and the counts say what became of all of them. The checker sees that no execution is made twice.
func TestBackfills(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScenario()
		run := func(format string, args ...any) {
			line := fmt.Sprintf(format, args...)
			if _, err := s.run(line); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		every := rapid.SampledFrom([]int{3, 7, 10}).Draw(t, "every")
		run("config misfire=1s")
		run("job j every=%ds", every)
		run("worker A slots=%d handlers=index lives work=1s", rapid.IntRange(1, 3).Draw(t, "slots"))
		run("advance %ds quiet", rapid.IntRange(0, 30).Draw(t, "lived"))
		run("pause %ds", rapid.IntRange(1, 60).Draw(t, "away"))
		now := int(s.mono / time.Second)
		from := rapid.IntRange(1, now).Draw(t, "from")
		to := rapid.IntRange(from, now).Draw(t, "to")
		run("advance 200ms quiet") // what is due has been planned
		order := rapid.SampledFrom([]string{"", " reverse"}).Draw(t, "order")
		run("backfill j from=%ds to=%ds parallel=%d%s", from, to, rapid.IntRange(1, 3).Draw(t, "parallel"), order)
		lives := 1
		for range rapid.IntRange(0, 8).Draw(t, "troubles") {
			switch rapid.IntRange(0, 3).Draw(t, "trouble") {
			case 0:
				run("reload")
			case 1:
				run("reload takeover")
			case 2:
				run("kill %c", 'A'+lives-1)
				run("worker %c slots=2 handlers=index lives work=1s", 'A'+lives)
				lives++
			default:
				run("pages off")
				run("advance 300ms quiet")
				run("pages on")
			}
			run("advance %dms quiet", rapid.IntRange(1, 3000).Draw(t, "between"))
		}
		run("advance 400s quiet")
		b := (*s.db.backfills)[0]
		p := &b.Progress
		if p.State != job.BackfillDone || p.Done() != b.Spec.Total || len(p.Open) > 0 || p.Failed > 0 {
			t.Fatalf("%+v of %d", *p, b.Spec.Total)
		}
		for at := every; at <= to; at += every {
			if at < from {
				continue
			}
			if r := s.db.history[job.PlannedID(b.JobUID, wallStart.Add(time.Duration(at)*time.Second))]; r == nil || r.row.State != job.ExecutionSucceeded {
				t.Errorf("the instant at %ds has not succeeded: %+v", at, r)
			}
		}
	})
}
