package engine_test

import "testing"

// say runs commands of a scenario, none of which may fail.
func (s *scenario) say(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if _, err := s.run(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

// While a commit takes long, pages are read before it lands, also such as were asked for after it. What it makes must not be
// forgotten for that: it would wait until another owner loads.

func TestBacklogPageBeforeTheCommit(t *testing.T) {
	s := newScenario()
	s.say(t, "config ready=4", "job files", "worker A slots=3 idle", "trigger files times=4")
	before := s.db.copy()
	s.say(t, "trigger files", "pages off", "poll A")
	if s.want.Backlog == nil {
		t.Fatal("no page is asked for, although the line is short and one was left")
	}
	page := before.backlogPage(*s.want.Backlog)
	s.want.Backlog = nil
	if err := s.take(page); err != nil {
		t.Fatal(err)
	}
	s.say(t, "pages on", "report A e1/0 done success", "report A e2/0 done success", "report A e3/0 done success", "poll A", "expect e5/0 leased A")
}

func TestUpstreamPageBeforeTheCommit(t *testing.T) {
	s := newScenario()
	s.say(t, "config rate=100", "job a every=15s overlap=allow", "job l every=20s after=a::latest:30s overlap=allow", "worker A slots=3 lives work=1s", "advance 18s quiet", "expect e1 succeeded", "pages off")
	before := s.db.copy()
	s.say(t, "advance 2s quiet")
	if len(s.want.Upstream) == 0 {
		t.Fatal("nothing is asked about what waits")
	}
	page := before.upstreamPage(s.want.Upstream)
	s.want.Upstream = nil
	if err := s.take(page); err != nil {
		t.Fatal(err)
	}
	s.say(t, "pages on", "advance 3s quiet", "expect e2 succeeded")
}
