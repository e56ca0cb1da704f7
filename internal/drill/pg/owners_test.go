//go:build linux

package pg_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// change is a partition row that was seen to have another owner or epoch than before; the owner is "" while it is free.
type change struct {
	at        time.Time
	partition int
	owner     string
	epoch     int64
}

// owners watches the rows of partitions and servers of a database, each twentieth of a second.
type owners struct {
	mu    sync.Mutex
	all   []change
	began map[string]time.Time // when a server's row was first seen, by incarnation
	looks int
	lots  int // looks that found executions in lots
}

// watch looks until the test ends. While the database does not answer nothing is seen.
func watch(t *testing.T, dsn string) *owners {
	t.Helper()
	o := &owners{began: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		now := map[int]change{}
		var conn *pgx.Conn
		for ctx.Err() == nil {
			if conn == nil || o.look(ctx, conn, now) != nil {
				if conn != nil {
					_ = conn.Close(ctx) // it has failed
				}
				conn, _ = pgx.Connect(ctx, dsn) // again at the next look
			}
			time.Sleep(50 * time.Millisecond)
		}
		if conn != nil {
			_ = conn.Close(context.Background()) // only read
		}
	}()
	return o
}

func (o *owners) look(ctx context.Context, conn *pgx.Conn, now map[int]change) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	rows, err := conn.Query(ctx, `SELECT id, owner, epoch FROM partitions`)
	if err != nil {
		return err
	}
	var c change
	if _, err = pgx.ForEachRow(rows, []any{&c.partition, &c.owner, &c.epoch}, func() error {
		if was := now[c.partition]; was.owner != c.owner || was.epoch != c.epoch {
			c.at = time.Now()
			now[c.partition] = c
			o.mu.Lock()
			o.all = append(o.all, c)
			o.mu.Unlock()
		}
		return nil
	}); err != nil {
		return err
	}
	if err := o.lookAtLots(ctx, conn); err != nil {
		return err
	}
	if rows, err = conn.Query(ctx, `SELECT incarnation FROM servers`); err != nil {
		return err
	}
	var incarnation string
	_, err = pgx.ForEachRow(rows, []any{&incarnation}, func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.began[incarnation].IsZero() {
			o.began[incarnation] = time.Now()
		}
		return nil
	})
	return err
}

func (o *owners) lookAtLots(ctx context.Context, conn *pgx.Conn) error {
	var are bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM lots)`).Scan(&are); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.looks++; are {
		o.lots++
	}
	return nil
}

// sawLots checks that executions lay in lots while the drill went on.
func (o *owners) sawLots(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if t.Logf("executions lay in lots at %d of %d looks", o.lots, o.looks); o.lots == 0 {
		t.Error("none lay in lots: that they outlive their owners was not tried")
	}
}

// after is when a partition was first seen under a higher epoch.
func (o *owners) after(partition int, epoch int64) (change, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.all {
		if c.partition == partition && c.epoch > epoch && c.owner != "" {
			return c, true
		}
	}
	return change{}, false
}

// rise checks that no epoch of a partition was ever seen to fall, or to be held by two owners.
func (o *owners) rise(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	newest := map[int]change{}
	for _, c := range o.all {
		n := newest[c.partition]
		if c.epoch < n.epoch || c.epoch == n.epoch && c.owner != "" && n.owner != "" && c.owner != n.owner {
			t.Errorf("partition %d: epoch %d of %q after epoch %d of %q", c.partition, c.epoch, c.owner, n.epoch, n.owner)
		}
		newest[c.partition] = c
	}
}

// takeover is a span from an owner's end on.
type takeover struct {
	span
	of    upheaval
	taken time.Time // when the row had its next owner
}

func spansOf(all []takeover) (spans []span) {
	for _, x := range all {
		spans = append(spans, x.span)
	}
	return spans
}

// taken tells how long it took until partitions had another owner, by their rows. It waits for who has none yet: a drill may be over
// sooner than a lease.
func (o *owners) taken(t *testing.T, all []upheaval) (spans []takeover) {
	t.Helper()
	for _, u := range all {
		for p, epoch := range u.epochs {
			var next change
			until(t, fmt.Sprintf("partition %d has an owner after %s ended at %s", p, u.server, u.at.Format(clockForm)), func() error {
				var ok bool
				next, ok = o.after(p, epoch)
				return yes(ok)
			})
			spans = append(spans, takeover{span{u.at, next.at, u.server}, u, next.at})
		}
	}
	return spans
}

// watched moves the begin of spans of take-overs to when a server that could bring them about had begun to watch. A judge calls a
// lease expired only when it has watched the owner's row stand still for a whole lease itself (R8): after a death, one that died, too,
// before it had to take over did not keep anybody waiting, and one that was started meanwhile counts from its start. Whoever
// lived on from the death of the owner counts from that death.
func (o *owners) watched(all []takeover, deaths []upheaval, limit time.Duration) (spans []span, later int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	died := map[string]time.Time{}
	for _, u := range deaths {
		died[u.incarnation] = u.at
	}
	for _, x := range all {
		from := x.taken
		for incarnation, began := range o.began {
			if incarnation == x.of.incarnation {
				continue
			}
			if began.Before(x.from) {
				began = x.from
			}
			by := began.Add(limit)
			if x.taken.Before(by) {
				by = x.taken
			}
			if end, dead := died[incarnation]; began.Before(from) && !(dead && end.Before(by)) {
				from = began
			}
		}
		if from.After(x.from) {
			later++
		}
		x.from = from
		spans = append(spans, x.span)
	}
	return spans, later
}
