package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
)

type (
	// RequestPath names what a trigger with an idempotency key made.
	RequestPath struct {
		JobPath
		Key string `path:"key" pattern:"^[!-~]{1,128}$" doc:"Idempotency key of the trigger."`
	}
	rescheduleInput struct {
		ExecutionPath
		Body takt.RescheduleRequest
	}
	rescheduleRequestInput struct {
		RequestPath
		Body takt.RescheduleRequest
	}
	cancelRequestInput struct {
		RequestPath
		Body *takt.AskRequest
	}
)

// scheduled are the operations on what waits for its instant, by execution and by the key of its request.
func (s *server) scheduled() {
	const one = pathPeople + "/jobs/{name}/requests/{key}"
	people, tags := intake{limit: s.limits.Body}, []string{"executions"}
	register(s, huma.Operation{OperationID: "rescheduleExecution", Method: http.MethodPost, Path: pathPeople + "/executions/{id}/reschedule", Tags: tags,
		Summary:     "Move an execution that waits for its instant to another one",
		Description: "It keeps its id and its key. 409 when it waits no more."}, people, s.rescheduleExecution)
	register(s, huma.Operation{OperationID: "rescheduleRequest", Method: http.MethodPost, Path: one + "/reschedule", Tags: tags,
		Summary: "Move what a trigger with this key made to another instant"}, people, s.rescheduleRequest)
	register(s, huma.Operation{OperationID: "cancelRequest", Method: http.MethodPost, Path: one + "/cancel", Tags: tags,
		Summary: "Ask that what a trigger with this key made stops"}, people, s.cancelRequest)
}

func when(at *time.Time, in takt.Duration) control.When {
	w := control.When{In: in.Std()}
	if at != nil {
		w.At = *at
	}
	return w
}

func (s *server) rescheduleExecution(ctx context.Context, in *rescheduleInput) (*answer[takt.Rescheduled], error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	return s.reschedule(ctx, in.NS, id, &in.Body)
}

func (s *server) rescheduleRequest(ctx context.Context, in *rescheduleRequestInput) (*answer[takt.Rescheduled], error) {
	id, err := s.control.Requested(ctx, in.NS, in.Name, in.Key)
	if err != nil {
		return nil, err
	}
	return s.reschedule(ctx, in.NS, id, &in.Body)
}

func (s *server) reschedule(ctx context.Context, namespace string, id job.ExecutionID, in *takt.RescheduleRequest) (*answer[takt.Rescheduled], error) {
	r := control.RescheduleRequest{AskRequest: control.AskRequest{Namespace: namespace, Execution: id, Note: in.Note}, When: when(in.At, in.In)}
	done, err := s.control.Reschedule(ctx, r)
	if err != nil {
		return nil, err
	}
	return &answer[takt.Rescheduled]{takt.Rescheduled{Execution: id.String(), PlannedAt: done.PlannedAt.Time(), Past: done.Past, Effect: string(done.Effect)}}, nil
}

func (s *server) cancelRequest(ctx context.Context, in *cancelRequestInput) (*answer[takt.Asked], error) {
	id, err := s.control.Requested(ctx, in.NS, in.Name, in.Key)
	if err != nil {
		return nil, err
	}
	asked := askInput{Body: in.Body}
	asked.NS, asked.ID = in.NS, id.String()
	return s.asking(s.control.Cancel)(ctx, &asked)
}
