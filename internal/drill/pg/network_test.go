//go:build linux

package pg_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// TestNetworkTrouble spoils the network between one of two servers and the database, in several ways, one after the other:
// the owner is alive and of no use. The other one takes over where that lasts, no commit counts that came too late or
// whose answer was lost and that was made again, and the server comes back by itself.
func TestNetworkTrouble(t *testing.T) {
	drilled(t)
	waits(t)
	pg := pgtest.Start(t)
	f := newFleet(t, pg.Empty(t), 2, drillLease())
	p := newProxy(t, pg.HostPort())
	s := f.servers[0]
	s.dsn = strings.Replace(f.dsn, pg.HostPort(), p.Addr().String(), 1)
	planned := f.underLoad()
	rows := watch(t, f.dsn)
	for _, x := range []struct {
		name  string
		state network
		lasts time.Duration
		away  bool // the server can do nothing at all
	}{
		{"the answers of commits are lost", answerless, 4 * time.Second, false},
		{"commits come after the take-over", late, 4 * time.Second, false},
		{"half-open connections", silent, 0, true},
		{"connections are reset", broken, 0, true},
	} {
		if !t.Run(x.name, func(t *testing.T) {
			until(t, s.name+" owns partitions", func() error { return yes(len(owned(t, f.dsn, s.incarnation)) > 0) })
			u := f.upheaval(s)
			p.spoiled.Store(0)
			p.become(x.state)
			began := time.Now()
			if x.away {
				f.useless(t, s, rows, u)
			} else {
				until(t, "commits were spoiled", func() error { return yes(p.spoiled.Load() >= 3) })
				time.Sleep(x.lasts)
			}
			p.become(flows)
			back := time.Now()
			f.ready(s)
			v := &evidence{t: t, stalls: f.stalls()}
			v.within("from the network's return to a server that is ready", []span{{back, time.Now(), s.name}}, recoveryLimit, 1)
			took := f.again(time.Now())
			t.Logf("from %s to %s: %d commits spoiled; all pools work %v later", began.Format(clockForm), back.Format(clockForm), p.spoiled.Load(), took.Round(10*time.Millisecond))
		}) {
			break
		}
	}
	f.calm(planned)
	v := f.collect(f.dsn)
	v.sound(f.leases())
	rows.rise(t)
	v.judge(f, planned)
	t.Logf("%d leases again", len(v.again()))
}

// useless looks at a server that the database cannot be reached from, while another can: what it had is taken, it says so,
// and refuses people's calls.
func (f *fleet) useless(t *testing.T, s *server, rows *owners, u upheaval) {
	t.Helper()
	until(t, "another server has taken what it had", func() error {
		for p, epoch := range u.epochs {
			if _, ok := rows.after(p, epoch); !ok {
				return fmt.Errorf("partition %d", p)
			}
		}
		return nil
	})
	v := &evidence{t: t, stalls: f.stalls()}
	v.within("from the fault to the next owner's row", spansOf(rows.taken(t, []upheaval{u})), takeoverLimit(f), 1)
	until(t, s.name+" is not ready", func() error {
		code, body := get(s.addr, "/readyz")
		return yes(code == http.StatusServiceUnavailable && strings.Contains(body, "store_unavailable"))
	})
	f.refused(t, s, false, false)
}
