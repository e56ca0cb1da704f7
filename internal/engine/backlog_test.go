package engine_test

import "testing"

// TestBacklogPageBeforeTheCommit: while a commit takes long, a page that is asked for after it is read before it lands, and
// does not show what it leaves in the database: the next one has to follow, or that would wait until another owner loads.
func TestBacklogPageBeforeTheCommit(t *testing.T) {
	s := newScenario()
	run := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			if _, err := s.run(line); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
	run("config ready=4", "job files", "worker A slots=3 idle", "trigger files times=4")
	before := s.db.copy()
	run("trigger files", "pages off", "poll A")
	if s.want.Backlog == nil {
		t.Fatal("no page is asked for, although the line is short and one was left")
	}
	page := before.backlogPage(*s.want.Backlog)
	s.want.Backlog = nil
	if err := s.take(page); err != nil {
		t.Fatal(err)
	}
	run("pages on", "report A e1/0 done success", "report A e2/0 done success", "report A e3/0 done success", "poll A", "expect e5/0 leased A")
}
