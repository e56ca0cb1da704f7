package api_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/taktsched/takt"
)

// A worker's clock is compared at each call that says its time; what it said before stays when it says none.
func TestWorkersSkewIsShown(t *testing.T) {
	n := startNode(t)
	at := func(ahead time.Duration) string {
		return `,"localTime":"` + time.Now().Add(ahead).UTC().Format(time.RFC3339Nano) + `"`
	}
	skew := func() *int64 {
		return asked[takt.WorkerList](n, "GET", "/api/v1/namespaces/default/workers", "").Items[0].SkewMs
	}
	opened := asked[takt.OpenResponse](n, "POST", work+"open", fmt.Sprintf(
		`{"namespace":"default","pool":"p","worker":"w","incarnation":"i1","handlers":["h"],"slots":1,"call":1%s}`, at(time.Hour)))
	near := func(want time.Duration) {
		t.Helper()
		got := skew()
		if got == nil { // the way of the call counts against the worker: only less than was said
			t.Fatal("no skew")
		}
		if d := time.Duration(*got) * time.Millisecond; d > want || d < want-time.Minute {
			t.Errorf("skew %v, want at most and nearly %v", d, want)
		}
	}
	near(time.Hour)
	beat := func(call int, local string) {
		t.Helper()
		asked[takt.HeartbeatResponse](n, "POST", work+"heartbeat",
			fmt.Sprintf(`{"session":%q,"epoch":%d,"call":%d,"held":[]%s}`, opened.Session, opened.Epoch, call, local))
	}
	beat(2, at(-2*time.Hour))
	near(-2 * time.Hour)
	beat(3, "")
	near(-2 * time.Hour)
}
