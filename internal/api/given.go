package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

func (s *server) given() {
	register(s, huma.Operation{OperationID: "workerParents", Method: http.MethodPost, Path: pathWorker + "parents", Tags: []string{"worker"},
		Summary: "Read on in what a parent of a held execution gave", Description: "When an assignment's parent has read below shards. " +
			"A token that is not the newest one of the shard is refused: token_stale."},
		intake{lenient: true, limit: s.limits.Body}, s.readParent)
}

// tellParents adds to the assignments of executions that ran after others what those gave. What cannot be read now is left
// out: the next poll is offered it again, under the same token. It reads nothing for executions without parents.
func (s *server) tellParents(ctx context.Context, in []engine.Assignment, out *takt.PollResponse) error {
	var ids []job.ExecutionID
	asked, of := map[job.ExecutionID]bool{}, 0
	for i := range in {
		if !in[i].RunsAfter {
			continue
		}
		if id := in[i].Execution.ID; !asked[id] {
			asked[id], ids = true, append(ids, id)
		}
		of++
	}
	if of == 0 {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, s.limits.CallTimeout/2)
	defer cancel()
	found, err := s.control.Given(bounded, ids, min(control.GivenBytes, control.GivenPollBytes/of))
	kept := out.Assignments[:0]
	for i := range in {
		given, known := found[in[i].Execution.ID]
		if in[i].RunsAfter && !known {
			continue
		}
		a := out.Assignments[i]
		a.Parents = fromGiven(given)
		kept = append(kept, a)
	}
	left := len(in) - len(kept)
	if out.Assignments = kept; left == 0 {
		return nil
	}
	if len(kept) == 0 && len(out.Cancels) == 0 {
		return err
	}
	s.logger.LogAttrs(ctx, slog.LevelWarn, "what parents gave could not be read; the assignments are offered again with the next poll",
		slog.Int("assignments", left), slog.Any("cause", err))
	return nil
}

// readParent goes past the owner: it changes no state, and the token says who may read.
func (s *server) readParent(ctx context.Context, in *body[takt.ParentsRequest]) (*answer[takt.ParentsResponse], error) {
	r := &in.Body
	var c checks
	id, err := job.ParseExecutionID(r.Execution)
	c.that(err == nil, "execution", "expected an execution id")
	c.that(r.Shard >= 0 && r.Shard < maxShards, "shard", "expected a shard's index")
	c.that(r.From >= 0 && r.From <= maxShards, "from", "expected a shard's index")
	c.that(r.Job != "", "job", "expected the name of a parent")
	c.token(r.Token, "token")
	if err := c.done(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	g, err := s.control.GivenBy(ctx, id, store.Holder{Shard: r.Shard, Token: job.Token(r.Token)}, r.Job, r.From)
	if err != nil {
		return nil, err
	}
	return &answer[takt.ParentsResponse]{takt.ParentsResponse{Shards: g.Shards, Read: g.Read, Results: fromShardResults(g.Results)}}, nil
}

func fromGiven(all []store.Given) (out []takt.AssignedParent) {
	for i := range all {
		g := &all[i]
		out = append(out, takt.AssignedParent{ParentExecution: fromParent(&g.Parent), Shards: g.Shards, Read: g.Read, Results: fromShardResults(g.Results)})
	}
	return out
}

// fromShardResults shows them as they are, for handlers: people see them masked.
func fromShardResults(all []store.ShardResult) (out []takt.ParentResult) {
	for _, r := range all {
		out = append(out, takt.ParentResult{Shard: r.Shard, Result: r.Result})
	}
	return out
}
