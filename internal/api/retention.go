package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/store"
)

type putRetentionInput struct {
	NamespacePath
	Body takt.Retention
}

func (s *server) retention() {
	const path = pathPeople + "/retention"
	people, tags := intake{limit: s.limits.Body}, []string{"namespaces"}
	register(s, huma.Operation{OperationID: "getRetention", Method: http.MethodGet, Path: path, Tags: tags,
		Summary: "Read how long a namespace keeps what is over"}, people, s.getRetention)
	register(s, huma.Operation{OperationID: "putRetention", Method: http.MethodPut, Path: path, Tags: tags,
		Summary: "Set how long a namespace keeps what is over"}, people, s.putRetention)
}

func (s *server) getRetention(ctx context.Context, in *NamespacePath) (*answer[takt.RetentionStatus], error) {
	return fromRetention(s.control.Retention(ctx, in.NS))
}

func (s *server) putRetention(ctx context.Context, in *putRetentionInput) (*answer[takt.RetentionStatus], error) {
	return fromRetention(s.control.PutRetention(ctx, store.Retention{
		Namespace: in.NS, Executions: in.Body.Executions.Std(), Logs: in.Body.Logs.Std()}))
}

func fromRetention(v control.RetentionView, err error) (*answer[takt.RetentionStatus], error) {
	if err != nil {
		return nil, err
	}
	return &answer[takt.RetentionStatus]{takt.RetentionStatus{
		Executions: takt.Duration(v.Valid.Executions), Logs: takt.Duration(min(v.Valid.Logs, v.Valid.Executions)),
		Own: takt.Retention{Executions: takt.Duration(v.Own.Executions), Logs: takt.Duration(v.Own.Logs)},
	}}, nil
}
