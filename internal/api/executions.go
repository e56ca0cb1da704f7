package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/filter"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

type (
	listExecutionsInput struct {
		NamespacePath
		Page
		Job    string `query:"job" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Of this job only."`
		Pool   string `query:"pool" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Of this pool only."`
		State  string `query:"state" enum:"scheduled,queued,running,cancelling,succeeded,partially_succeeded,failed,timed_out,cancelled" doc:"In this state only."`
		Q      string `query:"q" maxLength:"2048" doc:"Terms that must all hold, such as state:failed,timed_out job:billing-* -pool:slow duration>30s planned<2h. A page may be short and still lead on. planned is the instant shown; the list is in the order of the first one, and an execution that was moved is found by planned with state:scheduled, else when both instants are in the range."`
		Labels string `query:"labels" maxLength:"1024" doc:"Of jobs with these labels only, such as app=billing,tier!=test."`
	}
	listShardsInput struct {
		ExecutionPath
		Page
	}
	triggerManyInput struct {
		NamespacePath
		Body takt.TriggerManyRequest
	}
	askInput struct {
		ExecutionPath
		Body *takt.AskRequest
	}
)

func (s *server) executions() {
	const one = pathPeople + "/executions/{id}"
	people, tags := intake{limit: s.limits.Body}, []string{"executions"}
	register(s, huma.Operation{OperationID: "listExecutions", Method: http.MethodGet, Path: pathPeople + "/executions", Tags: tags,
		Summary: "List executions, newest planned first"}, people, s.listExecutions)
	registerDirect(s, huma.Operation{OperationID: "triggerJobs", Method: http.MethodPost, Path: pathPeople + "/executions", Tags: tags,
		Summary: "Ask for many executions, all of them or none",
		Description: "In the order of the items. Items with a key may be sent again: those that were taken lead to the same executions. " +
			"When one is refused, none is made and the problem names its field."}, intake{limit: setBodies * s.limits.Body, patience: setTimeout}, s.triggerJobs, fillTriggers)
	register(s, huma.Operation{OperationID: "getExecution", Method: http.MethodGet, Path: one, Tags: tags,
		Summary: "Read an execution, and why it waits"}, people, s.getExecution)
	register(s, huma.Operation{OperationID: "listShards", Method: http.MethodGet, Path: one + "/shards", Tags: tags,
		Summary: "List the shards of an execution by index"}, people, s.listShards)
	register(s, huma.Operation{OperationID: "cancelExecution", Method: http.MethodPost, Path: one + "/cancel", Tags: tags,
		Summary: "Ask that an execution stops"}, people, s.asking(s.control.Cancel))
	register(s, huma.Operation{OperationID: "rerunExecution", Method: http.MethodPost, Path: one + "/rerun", Tags: tags,
		Summary: "Ask that the shards that did not succeed run again"}, people, s.asking(s.control.Rerun))
}

func (s *server) listExecutions(ctx context.Context, in *listExecutionsInput) (*answer[takt.ExecutionList], error) {
	query, err := s.query(in.Q)
	if err != nil {
		return nil, err
	}
	want, err := job.ParseSelector(in.Labels)
	if err != nil {
		return nil, underField(err, "query.labels")
	}
	ask := store.ExecutionFilter{Namespace: in.NS, Query: query, Job: in.Job, Pool: in.Pool, State: job.ExecutionState(in.State), Page: in.of()}
	list := s.control.Executions
	if !want.Empty() {
		list = func(ctx context.Context, f store.ExecutionFilter) ([]job.Execution, string, error) {
			return s.control.ExecutionsOf(ctx, want, f)
		}
	}
	rows, next, err := list(ctx, ask)
	if err != nil {
		return nil, err
	}
	out := takt.ExecutionList{Items: make([]takt.Execution, len(rows)), Next: next}
	for i := range rows {
		out.Items[i] = fromExecution(&rows[i])
	}
	return &answer[takt.ExecutionList]{out}, nil
}

func (s *server) triggerJobs(ctx context.Context, in *triggerManyInput) (*answer[takt.TriggeredMany], error) {
	all := make([]control.TriggerRequest, len(in.Body.Items))
	for i, it := range in.Body.Items {
		all[i] = control.TriggerRequest{Namespace: in.NS, Job: it.Job, Key: it.Key, Params: it.Params, When: when(it.At, it.In)}
	}
	made, effect, err := s.control.TriggerMany(ctx, all)
	if err != nil {
		return nil, err
	}
	out := takt.TriggeredMany{Items: make([]takt.TriggeredItem, len(made)), Effect: string(effect)}
	for i, t := range made {
		out.Items[i] = takt.TriggeredItem{Execution: t.Execution.String(), Repeated: t.Repeated, PlannedAt: instant(t.PlannedAt), Past: t.Past}
	}
	return &answer[takt.TriggeredMany]{out}, nil
}

// query reads the parameter q.
func (s *server) query(text string) (filter.Query, error) {
	query, err := filter.Parse(text, s.now())
	if e, ok := errors.AsType[*filter.Error](err); ok {
		return query, job.Errorf(job.KindInvalid, "bad_filter", "%s", e.Error()).WithField("query.q").WithHint("%s", e.Hint)
	}
	return query, err
}

func (s *server) getExecution(ctx context.Context, in *ExecutionPath) (*answer[takt.Execution], error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	v, err := s.control.Execution(ctx, in.NS, id)
	if err != nil {
		return nil, err
	}
	e := fromExecution(&v.Execution)
	e.Waits, e.WaitsText = string(v.Waits), v.Waits.Text()
	if !v.WaitsFor.IsZero() {
		e.WaitsFor = v.WaitsFor.String()
	}
	parents, err := s.control.Parents(ctx, &v.Execution)
	if err != nil {
		return nil, err
	}
	e.Parents = fromParents(parents)
	return &answer[takt.Execution]{e}, nil
}

func (s *server) listShards(ctx context.Context, in *listShardsInput) (*answer[takt.ShardList], error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	rows, next, err := s.control.Shards(ctx, in.NS, id, in.of())
	if err != nil {
		return nil, err
	}
	list := takt.ShardList{Items: make([]takt.ShardStatus, len(rows)), Next: next}
	for i := range rows {
		list.Items[i] = fromShard(&rows[i])
	}
	return &answer[takt.ShardList]{list}, nil
}

// asking makes a handler of a cancel or a rerun.
func (s *server) asking(use func(context.Context, control.AskRequest) (control.Effect, error)) func(context.Context, *askInput) (*answer[takt.Asked], error) {
	return func(ctx context.Context, in *askInput) (*answer[takt.Asked], error) {
		id, err := in.id()
		if err != nil {
			return nil, err
		}
		request := control.AskRequest{Namespace: in.NS, Execution: id}
		if in.Body != nil {
			request.Note = in.Body.Note
		}
		effect, err := use(ctx, request)
		if err != nil {
			return nil, err
		}
		return &answer[takt.Asked]{takt.Asked{Execution: id.String(), Effect: string(effect)}}, nil
	}
}
