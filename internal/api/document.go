package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// strictSchemas are the request schemas of people's calls, which refuse unknown fields. All others are
// open: workers and clients ignore what they do not know.
var strictSchemas = map[string]bool{"Job": true, "JobMetadata": true, "JobSpec": true, "JobStatus": true, "ScheduleSpec": true,
	"ShardsSpec": true, "RetrySpec": true, "BackoffSpec": true, "TimeoutSpec": true, "OverlapSpec": true, "MisfireSpec": true, "AutoPauseSpec": true, "TriggerRequest": true, "AskRequest": true}

// describe finishes the OpenAPI document and serves it.
func (s *server) describe() {
	doc := s.api.OpenAPI()
	doc.Info.Description = "Job scheduling. Errors are RFC 9457 problems: 400 for what can not be read, 422 for what was read and judged wrong. People's calls refuse unknown fields, workers' calls ignore them; " +
		"readers should ignore what they do not know. Instants are RFC 3339, durations of documents such as 90s or 1h30m, of the worker protocol milliseconds."
	doc.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	doc.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer",
		Description: "The token of --token-file; a server without one answers to loopback names only."}}
	doc.Security = []map[string][]string{{"token": {}}, {}}
	for name, schema := range doc.Components.Schemas.Map() {
		if !strictSchemas[name] && schema.AdditionalProperties == false {
			schema.AdditionalProperties = nil
		}
	}
	for path, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post} {
			if op != nil {
				s.describeOperation(path, op)
			}
		}
	}
	register(s, huma.Operation{OperationID: "getOpenAPI", Method: http.MethodGet, Path: pathOpenAPI, Tags: []string{"operation"},
		Summary: "This document", Responses: map[string]*huma.Response{"200": {Description: "The document.",
			Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject}}}},
			"default": problemResponse()}}, intake{alone: true}, s.getDocument)
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic("api: the OpenAPI document can not be written: " + err.Error())
	}
	b = append(b, '\n')
	s.document = b
}

// describeOperation adds what huma does not derive.
func (s *server) describeOperation(path string, op *huma.Operation) {
	op.Responses["default"] = problemResponse()
	if op.OperationID == "putJob" {
		op.Responses["201"] = &huma.Response{Description: http.StatusText(http.StatusCreated),
			Headers: op.Responses["200"].Headers, Content: op.Responses["200"].Content}
	}
	if path == pathHealth || path == pathReady {
		op.Security = []map[string][]string{}
	}
	if strings.HasPrefix(path, pathWorker) {
		op.Description = "All durations are milliseconds. Unknown fields are ignored. 503 no_owner: ask again after Retry-After; 404 session_unknown: open a new session."
	}
}

func problemResponse() *huma.Response {
	return &huma.Response{Description: "A problem (RFC 9457): code is stable, kind says what to do, errors name the wrong fields.",
		Content: map[string]*huma.MediaType{"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}}}}
}

func (s *server) getDocument(_ context.Context, _ *struct{}) (*text, error) {
	return &text{ContentType: "application/json", Body: s.document}, nil
}
