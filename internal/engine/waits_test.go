package engine_test

import (
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// TestLargeRequestsLeaveTheInbox: a request for a job that is on its way here waits as an entry. One with large parameters
// would take the room of newer entries of other jobs in each page: it waits as an execution, and gets its turn likewise.
func TestLargeRequestsLeaveTheInbox(t *testing.T) {
	for size, leaves := range map[int]bool{10: false, 1 << 10: false, 1<<10 + 1: true, 200 << 10: true} {
		s := newScenario()
		do := func(line string) {
			t.Helper()
			if _, err := s.run(line); err != nil {
				t.Fatalf("%d bytes: %.60s: %v", size, line, err)
			}
		}
		for _, line := range []string{"job files overlap=queue", "worker A lives work=25s", "trigger files", "advance 1s", "job files overlap=queue pool=far@1", "advance 1s", "partition 1"} {
			do(line)
		}
		do("trigger files params=\"" + strings.Repeat("x", size-2) + "\"")
		waits, moving := 0, 0
		for _, e := range s.db.inbox {
			if e.Kind == engine.EntryTrigger {
				waits++
			}
		}
		for _, x := range s.db.live {
			if x.row.Reason == job.WaitMove {
				moving++
			}
		}
		if (waits == 0) != leaves || (moving == 1) != leaves {
			t.Errorf("%d bytes: %d wait as entries, %d as executions", size, waits, moving)
		}
		for _, line := range []string{"partition 0", "advance 26s", "partition 1", "inbox", "inbox", "advance 1s", "expect e2 queued"} {
			do(line)
		}
	}
}
