package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/openapi.json anew")

const golden = "testdata/openapi.json"

// want lists every operation of the server.
var want = map[string][]string{
	"/healthz": {"get"}, "/readyz": {"get"}, "/api/v1/stats": {"get"}, "/api/v1/openapi.json": {"get"},
	"/api/v1/namespaces/{ns}/jobs": {"get"}, "/api/v1/namespaces/{ns}/jobs/{name}": {"get", "put", "delete"},
	"/api/v1/namespaces/{ns}/jobs/{name}/revisions": {"get"},
	"/api/v1/namespaces/{ns}/jobs/{name}/pause":     {"post"},
	"/api/v1/namespaces/{ns}/jobs/{name}/resume":    {"post"},
	"/api/v1/namespaces/{ns}/jobs/{name}/rollback":  {"post"},
	"/api/v1/namespaces/{ns}/jobs/{name}/explain":   {"get"},
	"/api/v1/namespaces/{ns}/jobs/{name}/backfills": {"post"}, "/api/v1/namespaces/{ns}/backfills": {"get"},
	"/api/v1/namespaces/{ns}/backfills/{id}": {"get"}, "/api/v1/namespaces/{ns}/backfills/{id}/cancel": {"post"},
	"/api/v1/namespaces/{ns}/upcoming":  {"get"},
	"/api/v1/namespaces/{ns}/calendars": {"get"}, "/api/v1/namespaces/{ns}/calendars/{name}": {"get", "put", "delete"},
	"/api/v1/namespaces/{ns}/calendars/{name}/revisions": {"get"}, "/api/v1/namespaces/{ns}/calendars/{name}/rollback": {"post"},
	"/api/v1/namespaces/{ns}/jobs/{name}/requests/{key}/reschedule": {"post"}, "/api/v1/namespaces/{ns}/jobs/{name}/requests/{key}/cancel": {"post"},
	"/api/v1/namespaces/{ns}/executions/{id}/reschedule": {"post"},
	"/api/v1/apply": {"post"},
	"/api/v1/namespaces/{ns}/jobs/{name}/trigger": {"post"}, "/api/v1/namespaces/{ns}/decisions": {"get"},
	"/api/v1/namespaces/{ns}/executions": {"get", "post"}, "/api/v1/namespaces/{ns}/executions/{id}": {"get"},
	"/api/v1/namespaces/{ns}/executions/{id}/shards": {"get"}, "/api/v1/namespaces/{ns}/executions/{id}/cancel": {"post"},
	"/api/v1/namespaces/{ns}/executions/{id}/rerun": {"post"}, "/api/v1/namespaces/{ns}/workers": {"get"}, "/api/v1/namespaces/{ns}/pools": {"get"},
	"/api/v1/namespaces/{ns}/retention": {"get", "put"}, "/api/v1/backup": {"get"}, "/api/v1/servers": {"get"},
	"/api/v1/worker/open": {"post"}, "/api/v1/worker/poll": {"post"}, "/api/v1/worker/heartbeat": {"post"},
	"/api/v1/worker/report": {"post"}, "/api/v1/worker/close": {"post"},
	"/api/v1/worker/log": {"post"}, "/api/v1/worker/parents": {"post"}, "/api/v1/namespaces/{ns}/executions/{id}/logs": {"get"},
}

type response struct {
	Description string
	Content     map[string]struct {
		Schema struct {
			Ref string `json:"$ref"`
		}
	}
}

type openAPI struct {
	OpenAPI string
	Info    struct{ Title, Version string }
	Paths   map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Summary     string
		Responses   map[string]response
	}
	Components struct {
		Schemas map[string]struct {
			Type                 string
			AdditionalProperties any
			Properties           map[string]any
		}
	}
}

func TestDocument(t *testing.T) {
	r := newRig(t, nil)
	w := r.do(get("/api/v1/openapi.json"))
	raw := w.Body.Bytes()
	var d openAPI
	if err := json.Unmarshal(raw, &d); err != nil || w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s: %v", w.Code, w.Header().Get("Content-Type"), err)
	}
	if !strings.HasPrefix(d.OpenAPI, "3.1") || d.Info.Version != "v0-test" {
		t.Errorf("openapi %s, version %s", d.OpenAPI, d.Info.Version)
	}
	ids := map[string]bool{}
	for path, methods := range want {
		for _, m := range methods {
			op, there := d.Paths[path][m]
			if !there || op.OperationID == "" || op.Summary == "" || ids[op.OperationID] {
				t.Errorf("%s %s: id %q is missing or not single, summary %q", m, path, op.OperationID, op.Summary)
			}
			ids[op.OperationID] = true
			problems(t, m+" "+path, op.Responses)
		}
	}
	for path, item := range d.Paths {
		for m := range item {
			if !slices.Contains(want[path], m) {
				t.Errorf("the document has %s %s, the list has not", m, path)
			}
		}
	}
	references(t, raw, d)
	for name, open := range map[string]bool{"Job": false, "JobSpec": false, "TriggerRequest": false, "PollRequest": true, "ReportItem": true, "Execution": true} {
		if s := d.Components.Schemas[name]; s.Type != "object" || (s.AdditionalProperties == nil) != open {
			t.Errorf("schema %s: type %q, additionalProperties %v", name, s.Type, s.AdditionalProperties)
		}
	}
	compare(t, raw)
}

// problems checks that every answer but success is a Problem, and that there is one.
func problems(t *testing.T, op string, answers map[string]response) {
	t.Helper()
	n := 0
	for status, a := range answers {
		if strings.HasPrefix(status, "2") {
			continue
		}
		n++
		if a.Content["application/problem+json"].Schema.Ref != "#/components/schemas/Problem" {
			t.Errorf("%s %s is no Problem: %+v", op, status, a)
		}
	}
	if n == 0 {
		t.Errorf("%s: no error answer", op)
	}
}

// references checks that every $ref leads somewhere.
func references(t *testing.T, raw []byte, d openAPI) {
	t.Helper()
	rest := string(raw)
	for {
		_, tail, found := strings.Cut(rest, `"$ref": "#/components/schemas/`)
		if !found {
			return
		}
		name, _, _ := strings.Cut(tail, `"`)
		if _, there := d.Components.Schemas[name]; !there {
			t.Errorf("schema %q is referred to and not there", name)
		}
		rest = tail
	}
}

// compare holds the document against the file, so that a change of the API is seen as a diff.
func compare(t *testing.T, raw []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(golden, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (go test ./internal/api -run Document -rewrite writes it)", err)
	}
	if !bytes.Equal(bytes.ReplaceAll(file, []byte("\r\n"), []byte("\n")), raw) {
		t.Errorf("the document differs from %s: see the change with go test ./internal/api -run Document -rewrite and git diff", golden)
	}
}
