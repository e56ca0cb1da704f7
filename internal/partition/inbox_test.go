package partition_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
)

// Entries that wait for something, more than a page holds, keep nobody else waiting.
func TestWaitingEntriesLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{}
		for id := int64(1); id <= 600; id++ { // of a kind that the core leaves there
			st.put(id, engine.EntryBackfill)
		}
		r := newRig(t, st, nil)
		time.Sleep(time.Second)
		st.put(601, engine.EntryTrigger)
		begun := time.Now()
		for !r.node.AwaitEntry(t.Context(), 0, 601) {
			if time.Since(begun) > 10*time.Second {
				t.Fatal("an entry behind 600 that wait was not consumed")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if left, _ := st.InboxPage(t.Context(), 0, 1000); len(left.Entries) != 600 || left.Entries[599].ID != 600 {
			t.Errorf("%d entries are left, of 600 that wait", len(left.Entries))
		}
		r.end()
	})
}
