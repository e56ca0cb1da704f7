package engine_test

import (
	"fmt"
	"testing"
)

// TestEarlyCancels: cancels are asked while the triggers of their executions still wait in the inbox, more
// than its page holds. They must neither be lost nor keep the triggers out of the pages.
func TestEarlyCancels(t *testing.T) {
	const n = inboxLimit + 20
	s := newScenario()
	run := func(line string) {
		if _, err := s.run(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	run("job files")
	run(fmt.Sprintf("trigger files times=%d unread", n))
	for i := range n {
		run(fmt.Sprintf("cancel e%d unread", i+1))
	}
	for range 10 {
		run("inbox")
	}
	if len(s.db.inbox) > 0 {
		t.Fatalf("%d entries stay in the inbox", len(s.db.inbox))
	}
	for i := range n {
		run(fmt.Sprintf("expect e%d cancelled", i+1))
	}
}
