package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
)

func (s *server) live() {
	people, tags := intake{limit: s.limits.Body}, []string{"operation"}
	register(s, huma.Operation{OperationID: "listWorkers", Method: http.MethodGet, Path: pathPeople + "/workers", Tags: tags,
		Summary: "List live workers as their owner sees them"}, people, s.listWorkers)
	register(s, huma.Operation{OperationID: "listPools", Method: http.MethodGet, Path: pathPeople + "/pools", Tags: tags,
		Summary: "List pools that have workers or work"}, people, s.listPools)
	register(s, huma.Operation{OperationID: "getStats", Method: http.MethodGet, Path: "/api/v1/stats", Tags: tags,
		Summary: "What this server counts"}, intake{alone: true}, s.getStats)
}

func (s *server) listWorkers(ctx context.Context, in *struct {
	NamespacePath
	Pool string `query:"pool" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Of this pool only."`
}) (*answer[takt.WorkerList], error) {
	views, err := s.control.Workers(ctx, in.NS, in.Pool)
	if err != nil {
		return nil, err
	}
	list := takt.WorkerList{Items: make([]takt.WorkerStatus, len(views.Items)), Incomplete: incomplete(views.Away, views.Asked)}
	for i := range views.Items {
		list.Items[i] = fromSession(&views.Items[i])
	}
	return &answer[takt.WorkerList]{list}, nil
}

func (s *server) listPools(ctx context.Context, in *NamespacePath) (*answer[takt.PoolList], error) {
	views, err := s.control.Pools(ctx, in.NS)
	if err != nil {
		return nil, err
	}
	list := takt.PoolList{Items: make([]takt.PoolStatus, len(views.Items)), Incomplete: incomplete(views.Away, views.Asked)}
	for i, v := range views.Items {
		list.Items[i] = takt.PoolStatus{Name: v.Pool, Workers: v.Workers, Slots: v.Slots, Busy: v.Busy, Queued: v.Queued}
	}
	return &answer[takt.PoolList]{list}, nil
}

// incomplete says what a list lacks; "" when it lacks nothing.
func incomplete(away, asked int) string {
	if away == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d partitions have no owner that answers now: what their pools have is not shown", away, asked)
}

func (s *server) getStats(ctx context.Context, _ *struct{}) (*answer[takt.Stats], error) {
	st := s.counted()
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if c, err := s.control.Counts(ctx); err == nil { // else the server's own are shown alone
		st.Counts = &takt.Counts{Jobs: c.Jobs, Decisions: c.Decisions, Backfills: c.Backfills, Live: map[string]int{}}
		for state, n := range c.Live {
			st.Counts.Live[string(state)] = n
		}
	}
	return &answer[takt.Stats]{st}, nil
}

func (s *server) counted() takt.Stats {
	rows := s.owners.Stats()
	st := takt.Stats{Version: s.version, UptimeMs: max(s.now().Sub(s.started).Milliseconds(), 0), Partitions: make([]takt.PartitionStats, len(rows))}
	for i := range rows {
		st.Partitions[i] = fromStats(&rows[i])
	}
	st.TimeZones, st.Unexplained = control.Zones(), s.cluster.Totals().Unexplained
	return st
}
