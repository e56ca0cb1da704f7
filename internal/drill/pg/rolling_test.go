//go:build linux

package pg_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

const (
	stopLimit = 5 * time.Second // of a graceful stop
	lateLimit = time.Second     // of a planned instant during one, and of a hand-over
)

// TestRollingRestart stops three servers under load, one after the other, each gracefully, and starts it again. Each ends
// in time with code 0, partitions change hands at once, no shard is restarted, and people see no error.
func TestRollingRestart(t *testing.T) {
	drilled(t)
	pg := pgtest.Start(t)
	f := newFleet(t, pg.Empty(t), 3, drillLease())
	planned := f.underLoad()
	rows := watch(t, f.dsn)
	var stops []upheaval
	var ends []span
	for end := time.Now().Add(length(t, time.Millisecond)); len(stops) == 0 || time.Now().Before(end); {
		for _, s := range f.servers {
			u := f.upheaval(s)
			s.signal(t, syscall.SIGTERM)
			u.at = time.Now()
			<-s.done
			ends = append(ends, span{u.at, time.Now(), s.name})
			stops = append(stops, u)
			if s.err != nil {
				t.Errorf("%s ended with %v", s.name, s.err)
			}
			f.start(s)
			f.ready(s)
			time.Sleep(2 * time.Second) // as an operator would; what it lost at its stop comes back within a minute
		}
	}
	f.calm(planned)
	v := f.collect(f.dsn)
	v.sound(f.leases())
	rows.rise(t)
	v.judge(f, planned)
	v.within("from SIGTERM to the end", ends, stopLimit, 1)
	v.within("from SIGTERM to the next owner's row", spansOf(rows.taken(t, stops)), lateLimit, 1)
	v.within("from SIGTERM to the next owner's first decision", spansOf(v.decided(rows, stops)), 0, 1) // waits for the next instant, or call
	late, began := v.lateness()
	v.within("planned instant to its decision, from the first stop on", since(late, stops[0].at), lateLimit, 1)
	v.within("planned instant to its handler, from the first stop on", since(began, stops[0].at), lateLimit, 1)
	for _, e := range v.again() {
		t.Errorf("shard %d of %s was given out again as attempt %d, although its worker lived", e.Shard, e.Execution, e.Attempt)
	}
	t.Logf("%d stops", len(stops))
}
