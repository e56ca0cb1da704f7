package agent_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/agent"
)

// family makes a parent of so many shards with the handler "give", and a child after it for each of the handlers, and runs the
// parent. It gives the parent's execution and waits for the children to end.
func (r *rig) family(shards int, children ...string) (parent takt.Execution) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	put := func(name string, spec takt.JobSpec) {
		spec.Pool = r.pool
		j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: name}, Spec: spec}
		if _, err := client.PutJob(ctx, j, takt.PutOptions{}); err != nil {
			r.t.Fatal(err)
		}
	}
	name := strings.ToLower(rand.Text())
	put(name, takt.JobSpec{Handler: "give", Shards: &takt.ShardsSpec{Count: shards}})
	for _, handler := range children {
		put(name+"-"+handler, takt.JobSpec{Handler: handler, After: []takt.AfterSpec{{Job: name}}})
	}
	made, err := client.Trigger(ctx, name, takt.TriggerOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	if parent, err = client.Wait(ctx, made.Execution); err != nil {
		r.t.Fatal(err)
	}
	for _, handler := range children {
		until(r.t, "the end of "+handler, func() bool {
			list, err := client.Executions(ctx, takt.ExecutionQuery{Job: name + "-" + handler})
			if err != nil {
				r.t.Fatal(err)
			}
			return len(list.Items) == 1 && list.Items[0].State == "succeeded"
		})
	}
	return parent
}

func TestParentsOfCommandsAndCalls(t *testing.T) {
	t.Parallel()
	calls := make(chan agent.HTTPAssignment, 1)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b agent.HTTPAssignment
		must(json.NewDecoder(r.Body).Decode(&b))
		calls <- b
	}))
	defer service.Close()
	r := start(t, fmt.Sprintf(`
  give: {command: {shell: 'echo "{\"result\":{\"rows\":$TAKT_SHARD_INDEX}}" >&3'}}
  file: {command: {shell: 'cat "$TAKT_PARENTS_FILE"; [ "$(cat $TAKT_PARENTS_FILE)" = "$TAKT_PARENTS" ]'}}
  hook: {http: {url: %s, allowPrivate: true}}
`, service.URL))
	parent := r.family(2, "file", "hook")
	want := []takt.ParentResult{{Shard: 0, Result: json.RawMessage(`{"rows":0}`)}, {Shard: 1, Result: json.RawMessage(`{"rows":1}`)}}
	var file []agent.Parent
	if err := json.Unmarshal([]byte(r.out.of("stdout")), &file); err != nil {
		t.Fatalf("%v: %s", err, r.out.of("stdout"))
	}
	for how, got := range map[string][]agent.Parent{"file": file, "call": (<-calls).Parents} {
		if len(got) != 1 || got[0].Job != parent.Job || got[0].Execution != parent.ID || got[0].State != "succeeded" || !got[0].Complete ||
			fmt.Sprint(got[0].Results) != fmt.Sprint(want) || !got[0].PlannedAt.Equal(parent.PlannedAt) {
			t.Errorf("%s: %+v", how, got)
		}
	}
}

// A file holds more than a call carries; what is missing is said.
func TestLargeResultsOfParents(t *testing.T) {
	t.Parallel()
	calls := make(chan agent.HTTPAssignment, 1)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b agent.HTTPAssignment
		must(json.NewDecoder(r.Body).Decode(&b))
		calls <- b
	}))
	defer service.Close()
	r := start(t, fmt.Sprintf(`
  give: {command: {shell: 'printf "{\"result\":\"%%0250000d\"}\n" "$TAKT_SHARD_INDEX" >&3'}}
  file: {command: {shell: 'wc -c < "$TAKT_PARENTS_FILE"; grep -o "complete.:[a-z]*" "$TAKT_PARENTS_FILE"; echo "${TAKT_PARENTS-none}"'}}
  hook: {http: {url: %s, allowPrivate: true}}
`, service.URL))
	r.family(5, "file", "hook")
	var size int
	var complete, inline string
	if _, err := fmt.Sscan(r.out.of("stdout"), &size, &complete, &inline); err != nil || size < 5*250_000 || complete != `complete":true` || inline != "none" {
		t.Errorf("%v: the command saw %d bytes, %s, %s", err, size, complete, inline)
	}
	if got := (<-calls).Parents; len(got) != 1 || len(got[0].Results) != 4 || got[0].Complete {
		t.Errorf("the call has %d results, complete %v", len(got[0].Results), got[0].Complete)
	}
}
