package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// The parameters that operations share. They are exported because huma looks into exported embedded
// structs only.
type (
	// NamespacePath names a namespace.
	NamespacePath struct {
		NS string `path:"ns" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Namespace."`
	}
	// JobPath names a job.
	JobPath struct {
		NamespacePath
		Name string `path:"name" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Name of the job."`
	}
	// ExecutionPath names an execution.
	ExecutionPath struct {
		NamespacePath
		ID string `path:"id" maxLength:"36" doc:"Id of the execution: 26 characters, or a UUID."`
	}
	// Page asks for a page of a list.
	Page struct {
		After string `query:"after" maxLength:"512" doc:"The next of the page before."`
		Limit int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"At most so many items. A page may hold fewer, even none, and still have a next."`
	}
)

func (p Page) of() store.Page { return store.Page{After: p.After, Limit: p.Limit} }

func (p ExecutionPath) id() (job.ExecutionID, error) {
	id, err := job.ParseExecutionID(p.ID)
	if err != nil {
		return id, job.Errorf(job.KindInvalid, "bad_execution_id", "this is no execution id").WithField("path.id").
			WithHint("an id is 26 characters such as 06cw1bq0fr8j1x4cw6h3ybkq2c, or a UUID; `takt get executions` lists them")
	}
	return id, nil
}

// Secrets asks for jobs with the values that are masked otherwise, to write them elsewhere.
type Secrets struct {
	Secrets string `query:"secrets" enum:"mask,show" default:"mask" doc:"Params with names such as password, secret, token or apiKey, and passwords inside addresses, read (masked); show: as they are. A masked value is refused when it is written back."`
}

// shown is a job with its secret values when they were asked for.
func (s Secrets) shown(j takt.Job, d *job.Definition) takt.Job {
	if s.Secrets == "show" {
		j.Spec.Params = d.Spec.Params
	}
	return j
}

// answer is a body alone.
type answer[T any] struct{ Body T }

type (
	putJobInput struct {
		JobPath
		Author
		IfMatch     string `header:"If-Match" maxLength:"64" doc:"ETag of the revision that the change rests on, such as \"3\"."`
		IfNoneMatch string `header:"If-None-Match" enum:"*" doc:"Only if there is no such job."`
		Body        takt.Job
	}
	jobOutput struct {
		Status int
		ETag   string `header:"ETag" doc:"The revision, for If-Match."`
		Body   takt.Job
	}
	triggerInput struct {
		JobPath
		Key  string `header:"Idempotency-Key" pattern:"^[!-~]{1,128}$" doc:"The same key leads to the same execution until 24 hours behind the instant asked for. With another request (params, in, at) it is refused: 409 idempotency_key_reused."`
		Body *takt.TriggerRequest
	}
)

func (s *server) people() {
	people := intake{limit: s.limits.Body}
	register(s, huma.Operation{OperationID: "listJobs", Method: http.MethodGet, Path: pathPeople + "/jobs", Tags: []string{"jobs"},
		Summary: "List jobs by name"}, people, s.listJobs)
	register(s, huma.Operation{OperationID: "getJob", Method: http.MethodGet, Path: pathPeople + "/jobs/{name}", Tags: []string{"jobs"},
		Summary: "Read a job"}, people, s.getJob)
	register(s, huma.Operation{OperationID: "putJob", Method: http.MethodPut, Path: pathPeople + "/jobs/{name}", Tags: []string{"jobs"},
		Summary:     "Create or change a job",
		Description: "The document replaces the newest revision; an equal document makes no new one. 201 when the job is new."}, people, s.putJob)
	register(s, huma.Operation{OperationID: "triggerJob", Method: http.MethodPost, Path: pathPeople + "/jobs/{name}/trigger", Tags: []string{"jobs"},
		Summary: "Ask for an execution, now or at a later instant"}, people, s.triggerJob)
	register(s, huma.Operation{OperationID: "listDecisions", Method: http.MethodGet, Path: pathPeople + "/decisions", Tags: []string{"jobs"},
		Summary: "List planned instants that became no execution, newest first"}, people, s.listDecisions)
}

func (s *server) listJobs(ctx context.Context, in *struct {
	NamespacePath
	Page
	Secrets
}) (*answer[takt.JobList], error) {
	rows, next, err := s.control.Jobs(ctx, in.NS, in.of())
	if err != nil {
		return nil, err
	}
	list := takt.JobList{Items: make([]takt.Job, len(rows)), Next: next}
	for i := range rows {
		list.Items[i] = in.shown(s.fromJob(&rows[i]), &rows[i].Definition)
	}
	return &answer[takt.JobList]{list}, nil
}

func (s *server) getJob(ctx context.Context, in *struct {
	JobPath
	Secrets
}) (*jobOutput, error) {
	row, err := s.control.Job(ctx, in.NS, in.Name)
	if err != nil {
		return nil, err
	}
	body := in.shown(s.fromJob(&row), &row.Definition)
	turn, err := s.control.Turn(ctx, &row)
	if err != nil {
		return nil, err
	}
	body.Status.Live, body.Status.Incomplete = fromTurn(turn)
	if body.Status.Children, err = s.control.Children(ctx, &row.Definition); err != nil {
		return nil, err
	}
	return &jobOutput{Status: http.StatusOK, ETag: etag(row.Definition.Revision), Body: body}, nil
}

func (s *server) putJob(ctx context.Context, in *putJobInput) (*jobOutput, error) {
	revision, err := ifRevision(in.IfMatch, in.IfNoneMatch)
	if err != nil {
		return nil, err
	}
	request, err := toPut(in.NS, in.Name, &in.Body)
	if err != nil {
		return nil, err
	}
	request.IfRevision, request.Change = revision, in.change()
	put, err := s.control.PutJob(ctx, request)
	if err != nil {
		return nil, err
	}
	out := &jobOutput{Status: http.StatusOK, ETag: etag(put.Row.Definition.Revision), Body: s.fromJob(&put.Row)}
	out.Body.Status.Effect = string(put.Effect)
	out.Body.Status.Warnings = warnings(&put.Row.Definition, s.now())
	if put.Created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func etag(revision int64) string { return strconv.Quote(strconv.FormatInt(revision, 10)) }

// ifRevision reads the two conditions of an edit as store.PutJob.IfRevision.
func ifRevision(match, noneMatch string) (int64, error) {
	switch {
	case match == "" && noneMatch == "":
		return 0, nil
	case match == "":
		return -1, nil
	case noneMatch != "":
		return 0, job.Errorf(job.KindInvalid, "bad_if_match", "If-Match and If-None-Match exclude each other").WithField("header.If-Match").
			WithHint("If-Match changes a revision, If-None-Match: * creates")
	}
	bare, err := strconv.Unquote(match)
	if err == nil {
		if n, e := strconv.ParseInt(bare, 10, 64); e == nil && n > 0 && match == etag(n) {
			return n, nil
		}
	}
	return 0, job.Errorf(job.KindInvalid, "bad_if_match", "this is no ETag of a job").WithField("header.If-Match").
		WithHint("pass the ETag of the last read, with its quotes: If-Match: \"3\"")
}

func (s *server) triggerJob(ctx context.Context, in *triggerInput) (*answer[takt.Triggered], error) {
	request := control.TriggerRequest{Namespace: in.NS, Job: in.Name, Key: in.Key}
	if in.Body != nil {
		request.Params, request.When = in.Body.Params, when(in.Body.At, in.Body.In)
	}
	t, err := s.control.Trigger(ctx, request)
	if err != nil {
		return nil, err
	}
	return &answer[takt.Triggered]{takt.Triggered{Execution: t.Execution.String(), Repeated: t.Repeated, Effect: string(t.Effect),
		PlannedAt: instant(t.PlannedAt), Past: t.Past}}, nil
}

func (s *server) listDecisions(ctx context.Context, in *struct {
	NamespacePath
	Page
	Job string `query:"job" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Of this job only."`
}) (*answer[takt.DecisionList], error) {
	rows, next, err := s.control.Decisions(ctx, in.NS, in.Job, in.of())
	if err != nil {
		return nil, err
	}
	list := takt.DecisionList{Items: make([]takt.Decision, len(rows)), Next: next}
	for i := range rows {
		list.Items[i] = fromDecision(&rows[i])
	}
	return &answer[takt.DecisionList]{list}, nil
}
