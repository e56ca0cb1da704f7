package control_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

// scattered is a set of owners of which some do not answer; each of the others has one worker and one pool.
type scattered struct {
	owner
	away map[int]bool
}

func (s *scattered) Call(_ context.Context, p int, _ job.Epoch, _ engine.Event) (partition.Reply, error) {
	if s.away[p] {
		return partition.Reply{}, job.Errorf(job.KindNoOwner, "no_owner", "nobody")
	}
	pool := fmt.Sprintf("pool-%d", 9-p)
	return partition.Reply{Value: &engine.Inspected{
		Sessions: []engine.SessionView{{Session: job.Session{Namespace: "default", Pool: pool}}, {Session: job.Session{Namespace: "other", Pool: pool}}},
		Pools:    []engine.PoolView{{Namespace: "default", Pool: pool}, {Namespace: "other", Pool: pool}},
	}}, nil
}

// A partition without an owner takes only its own part out of a list, and the list says so.
func TestListsOfManyOwners(t *testing.T) {
	for _, test := range []struct {
		away []int
		want int // items; -1: no_owner
	}{{nil, 4}, {[]int{2}, 3}, {[]int{0, 1, 3}, 1}, {[]int{0, 1, 2, 3}, -1}} {
		o := &scattered{away: map[int]bool{}}
		for _, p := range test.away {
			o.away[p] = true
		}
		c, _ := open(t, &o.owner, func(c *control.Config) { c.Owners = o })
		workers, err := c.Workers(t.Context(), "default", "")
		pools, err2 := c.Pools(t.Context(), "default")
		if test.want < 0 {
			wantCode(t, err, job.KindNoOwner, "no_owner")
			wantCode(t, err2, job.KindNoOwner, "no_owner")
			continue
		}
		if err != nil || err2 != nil || len(workers.Items) != test.want || len(pools.Items) != test.want || workers.Away != len(test.away) || pools.Away != len(test.away) ||
			workers.Asked != 4 || pools.Asked != 4 {
			t.Errorf("away %v: %+v, %v; %+v, %v", test.away, workers, err, pools, err2)
		}
		for i := 1; i < len(pools.Items); i++ {
			if pools.Items[i-1].Pool >= pools.Items[i].Pool || workers.Items[i-1].Session.Pool >= workers.Items[i].Session.Pool {
				t.Errorf("away %v: not in order: %+v", test.away, pools.Items)
			}
		}
	}
}

// What runs of a job is known, or it is said how many owners did not answer; one that knows is enough.
func TestTurnSaysWhatIsNotKnown(t *testing.T) {
	home := partition.Of("default", "p", 4)
	else1 := (home + 1) % 4
	everyone := map[int]bool{0: true, 1: true, 2: true, 3: true}
	for _, test := range []struct {
		name               string
		away               map[int]bool
		at                 int // where it runs; -1: nowhere
		behind             bool
		found, asked, gone int
	}{
		{"nothing runs", nil, -1, false, 0, 1, 0},
		{"it runs", nil, home, false, 1, 1, 0},
		{"others are away", map[int]bool{else1: true}, home, false, 1, 1, 0},
		{"its owner is away", map[int]bool{home: true}, home, false, 0, 1, 1},
		{"it moves", map[int]bool{home: true}, else1, true, 1, 4, 0},
		{"it may move, and one is away", map[int]bool{else1: true}, else1, true, 0, 4, 1},
		{"it may move, and nobody is there", everyone, else1, true, 0, 4, 4},
	} {
		o := &turner{away: test.away, at: test.at}
		c, _ := open(t, &o.owner, func(c *control.Config) { c.Owners = o })
		row := store.JobRow{Definition: job.Definition{Namespace: "default", Revision: 2, Spec: job.Spec{Pool: "p"}}, Cursors: []job.Cursor{{Revision: 2}}}
		if test.behind {
			row.Cursors[0].Revision = 1
		}
		seen, err := c.Turn(t.Context(), &row)
		if err != nil || len(seen.Items) != test.found || seen.Asked != test.asked || seen.Away != test.gone {
			t.Errorf("%s: %+v, %v", test.name, seen, err)
		}
	}
}

// turner is a set of owners of which some do not answer, and one knows what runs of a job.
type turner struct {
	owner
	away map[int]bool
	at   int
}

func (o *turner) Call(_ context.Context, p int, _ job.Epoch, _ engine.Event) (partition.Reply, error) {
	if o.away[p] {
		return partition.Reply{}, job.Errorf(job.KindNoOwner, "no_owner", "nobody")
	}
	seen := &engine.Inspected{}
	if p == o.at {
		seen.Turn = &engine.TurnView{Waiting: 1}
	}
	return partition.Reply{Value: seen}, nil
}
