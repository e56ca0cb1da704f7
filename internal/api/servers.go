package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/partition"
)

// Cluster is what a server knows of all servers. *partition.Node is one.
type Cluster interface {
	// Members lists the servers that have a row; none where there is one server alone.
	Members() []partition.Member
	// Owner is who answers for a partition; false when none is known.
	Owner(partition int) (partition.Holder, bool)
	// Totals are the counters of this server since it started.
	Totals() partition.Stats
	// Clock is how this server's clock stands to the database's.
	Clock() partition.Clock
}

// alone is the Cluster of a server that knows of no other.
type alone struct{ owners partition.Owners }

func (alone) Members() []partition.Member { return nil }
func (alone) Clock() partition.Clock      { return partition.Clock{} }

// Totals implements Cluster.
func (a alone) Totals() (sum partition.Stats) {
	rows := a.owners.Stats()
	for i := range rows {
		sum.Add(&rows[i])
	}
	return sum
}

// Owner implements Cluster.
func (a alone) Owner(p int) (partition.Holder, bool) {
	for _, st := range a.owners.Stats() {
		if st.Partition == p && st.Owned {
			return partition.Holder{Epoch: st.Epoch, Local: true}, true
		}
	}
	return partition.Holder{}, false
}

func (s *server) servers() {
	register(s, huma.Operation{OperationID: "listServers", Method: http.MethodGet, Path: "/api/v1/servers", Tags: []string{"server"},
		Summary: "List the servers on the database", Description: "As the server that answers sees them. A server on a data directory is the only one.",
	}, intake{alone: true}, s.listServers)
}

func (s *server) listServers(ctx context.Context, _ *struct{}) (*answer[takt.ServerList], error) {
	out := takt.ServerList{Items: []takt.ServerStatus{}, Partitions: s.owners.Count(), Unowned: []int{}}
	owned := map[string][]int{}
	for p := range out.Partitions {
		if h, ok := s.cluster.Owner(p); ok {
			owned[h.Server.Incarnation] = append(owned[h.Server.Incarnation], p)
		} else {
			out.Unowned = append(out.Unowned, p)
		}
	}
	members := s.cluster.Members()
	if len(members) == 0 {
		alone := partition.Member{Lives: true}
		alone.Name, alone.Incarnation, alone.Build = s.name, s.incarnation, s.version
		members = append(members, alone)
	}
	names := map[string]string{}
	for i := range members {
		names[members[i].Incarnation] = members[i].Name
	}
	out.Items = make([]takt.ServerStatus, len(members))
	var wg sync.WaitGroup
	for i := range members {
		wg.Go(func() { out.Items[i] = s.fromMember(ctx, &members[i], owned, names) })
	}
	wg.Wait()
	slices.SortFunc(out.Items, func(a, b takt.ServerStatus) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	return &answer[takt.ServerList]{out}, nil
}

// fromMember is a server as it was seen, with what it says of itself if it lives.
func (s *server) fromMember(ctx context.Context, m *partition.Member, owned map[string][]int, names map[string]string) takt.ServerStatus {
	out := takt.ServerStatus{Name: m.Name, Incarnation: m.Incarnation, Address: m.Address, Build: m.Build, Self: m.Incarnation == s.incarnation,
		Live: m.Lives, LastBeatMs: m.Still.Milliseconds(), SitsOut: m.SitsOut, Partitions: owned[m.Incarnation]}
	if out.Partitions == nil {
		out.Partitions = []int{}
	}
	for _, incarnation := range m.Unreachable {
		out.Unreachable = append(out.Unreachable, cmp.Or(names[incarnation], incarnation))
	}
	var st ofItself
	switch {
	case out.Self:
		out.Live, st = true, s.ofItself()
	case !m.Lives || s.peers == nil:
		return out
	default:
		if err := s.peers.Stats(ctx, m.Server, &st); err != nil {
			return out // what the rows say is shown without what it says itself
		}
	}
	out.UptimeMs, out.ClockAheadMs = &st.UptimeMs, st.ClockAheadMs
	return out
}

// ofItself is what a server tells others about itself. Servers of two builds understand each other: what is missing
// is not shown.
type ofItself struct {
	takt.Stats
	ClockAheadMs *int64 `json:"clockAheadMs,omitempty"`
}

func (s *server) ofItself() ofItself {
	out := ofItself{Stats: s.counted()}
	if c := s.cluster.Clock(); c.Measured {
		ms := c.Ahead.Milliseconds()
		out.ClockAheadMs = &ms
	}
	return out
}
