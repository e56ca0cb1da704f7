package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/taktsched/takt"
)

// The retention of a namespace over HTTP: the server's default until it is set, and after it was set to nothing.
func TestRetention(t *testing.T) {
	n := startNode(t)
	const path, day = "/api/v1/namespaces/billing/retention", takt.Duration(24 * time.Hour)
	want := func(got, want takt.RetentionStatus) {
		t.Helper()
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	usual := takt.RetentionStatus{Executions: 30 * day, Logs: 7 * day}
	want(asked[takt.RetentionStatus](n, "GET", path, ""), usual)
	set := takt.RetentionStatus{Executions: 90 * day, Logs: 14 * day, Own: takt.Retention{Executions: 90 * day, Logs: 14 * day}}
	want(asked[takt.RetentionStatus](n, "PUT", path, `{"executions":"90d","logs":"2w"}`), set)
	want(asked[takt.RetentionStatus](n, "GET", path, ""), set)
	want(asked[takt.RetentionStatus](n, "GET", "/api/v1/namespaces/other/retention", ""), usual)
	// Logs end with their execution.
	want(asked[takt.RetentionStatus](n, "PUT", path, `{"executions":"2h"}`), takt.RetentionStatus{Executions: day / 12, Logs: day / 12, Own: takt.Retention{Executions: day / 12}})
	want(asked[takt.RetentionStatus](n, "PUT", path, `{}`), usual)
	for body, field := range map[string]string{`{"executions":"59m"}`: "executions", `{"logs":"1ms"}`: "logs", `{"logs":"-1h"}`: "logs", `{"executions":30}`: "executions",
		`{"executions":"11w520w"}`: "executions", `{"Logs":"7d"}`: "Logs", `{"logs":"7 d"}`: "logs", `{"own":{}}`: "own"} {
		status, raw := n.ask("PUT", path, body)
		if p := problemOf(t, raw); status != 422 || p.Hint == "" || len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: %d %s", body, status, raw)
		}
	}
	want(asked[takt.RetentionStatus](n, "GET", path, ""), usual)
}

func problemOf(t *testing.T, raw []byte) (p takt.Problem) {
	t.Helper()
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return p
}
