package engine_test

import (
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/job"
)

// What is stored and cannot be used is left out with an alarm, and everything else goes on; a new revision of the job
// is taken up.
func TestUnfitRows(t *testing.T) {
	s := lead(t, "config ready=1\njob files every=10s overlap=allow\njob other handler=other every=10s overlap=allow\nadvance 11s")
	uid := s.jobs["files"].UID
	broken := *s.jobs["files"]
	broken.Unfit, broken.Spec.Schedules = "its stored spec cannot be read", nil
	revisions := s.db.revisions[uid]
	revisions[len(revisions)-1] = &broken
	s.jobs["files"] = &broken
	out := s.do(t, "reload\nadvance 30s")
	if !strings.Contains(out, "set_aside") || !strings.Contains(out, "is left out: its stored spec cannot be read") {
		t.Errorf("no alarm: %s", out)
	}
	made := func(name string) (n int) {
		for _, rows := range []map[job.ExecutionID]*record{s.db.live, s.db.history} {
			for _, r := range rows {
				if r.row.Job == name {
					n++
				}
			}
		}
		return n
	}
	if made("files") != 1 || made("other") != 4 {
		t.Errorf("%d executions of the unfit job, %d of the other; want 1 and 4", made("files"), made("other"))
	}
	if _, there := s.db.cursors[cursorKey{uid, "main"}]; !there {
		t.Error("the cursor of the unfit job is gone")
	}
	s.do(t, "job files every=10s overlap=allow\nadvance 20s")
	if made("files") < 2 {
		t.Error("a new revision is not planned")
	}
}
