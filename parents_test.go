package takt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// offerAfter gives an assignment of a job that ran after others.
func (s *stage) offerAfter(parents ...AssignedParent) {
	s.mu.Lock()
	s.work = append(s.work, Assignment{Namespace: "default", Job: "j", Execution: "e", Handler: "h", PlannedAt: s.began, Shard: 3, ShardTotal: 8,
		Attempt: 1, Token: 9, Key: "k", Parents: parents})
	s.mu.Unlock()
	s.kicked()
}

// gives answers the call parents with pages of two shards of which each gave its number.
func (s *stage) gives(shards int) {
	s.on("parents", func(body []byte) (any, *Problem) {
		req := parse[ParentsRequest](s.t, body)
		out := ParentsResponse{Shards: shards, Read: min(req.From+2, shards)}
		for i := req.From; i < out.Read; i++ {
			out.Results = append(out.Results, ParentResult{Shard: i, Result: json.RawMessage(fmt.Sprint(i))})
		}
		return out, nil
	})
}

// results is what a task says of a parent, in one line.
func results(ctx context.Context, t *Task, job string) string {
	var b strings.Builder
	for r, err := range t.ParentResults(ctx, job) {
		if err != nil {
			fmt.Fprintf(&b, "error %v", err)
			break
		}
		fmt.Fprintf(&b, "%d=%s ", r.Shard, r.Result)
	}
	return strings.TrimSpace(b.String())
}

func TestParentsAndTheirResults(t *testing.T) {
	planned := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	parents := []AssignedParent{
		{ParentExecution: ParentExecution{Job: "small", Execution: "e1", State: "succeeded", PlannedAt: &planned}, Shards: 1, Read: 1,
			Results: []ParentResult{{Shard: 0, Result: json.RawMessage(`{"rows":7}`)}}},
		{ParentExecution: ParentExecution{Job: "wide", Execution: "e2", State: "partially_succeeded"}, Shards: 5, Read: 1,
			Results: []ParentResult{{Shard: 0, Result: json.RawMessage(`0`)}}},
		{ParentExecution: ParentExecution{Job: "gone", Execution: "e3", State: "failed"}},
		{ParentExecution: ParentExecution{Job: "none"}},
	}
	got := map[string]string{}
	var bound, unbound struct{ Rows int }
	var found, missing bool
	var errs [3]error
	h := func(ctx context.Context, t *Task) error {
		for _, p := range t.Parents() {
			got[p.Job] = strings.TrimSpace(fmt.Sprintf("%s %s: %s", p.Execution, p.State, results(ctx, t, p.Job)))
		}
		got["order"] = fmt.Sprint(t.Parents()[0].Job, t.Parents()[3].Job, t.Parents()[0].PlannedAt.Equal(planned))
		found, errs[0] = t.BindParentResult(ctx, "small", &bound)
		missing, errs[1] = t.BindParentResult(ctx, "gone", &unbound)
		_, errs[2] = t.BindParentResult(ctx, "wide", &unbound)
		got["stranger"] = results(ctx, t, "stranger")
		for range t.ParentResults(ctx, "wide") {
			break // nothing more is asked for
		}
		return nil
	}
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.gives(5)
		s.offerAfter(parents...)
		s.until(time.Second)
	})
	for name, want := range map[string]string{"small": `e1 succeeded: 0={"rows":7}`, "wide": "e2 partially_succeeded: 0=0 1=1 2=2 3=3 4=4", "gone": "e3 failed:",
		"none": ":", "order": "smallnonetrue", "stranger": `error takt: this execution of j was not decided by one of "stranger": Parents lists those that decided it`} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
	if !found || bound.Rows != 7 || errs[0] != nil || missing || errs[1] != nil || errs[2] == nil {
		t.Errorf("bound %v %+v, missing %v, errors %v", found, bound, missing, errs)
	}
	calls := s.spoken("parents")
	if len(calls) != 2 || calls[0].body != `{"execution":"e","shard":3,"token":9,"job":"wide","from":1}` || !strings.Contains(calls[1].body, `"from":3`) {
		t.Errorf("asked %v", calls)
	}
}

func TestParentsOfNone(t *testing.T) {
	var some []ParentExecution
	var text string
	h := func(ctx context.Context, t *Task) error {
		some, text = t.Parents(), results(ctx, t, "a")
		return nil
	}
	s := play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) { s.offer(1) })
	if some != nil || !strings.HasPrefix(text, "error") || len(s.spoken("parents")) != 0 {
		t.Errorf("parents %v, results %q", some, text)
	}
}

func TestParentResultsAreAskedForAgain(t *testing.T) {
	wide := AssignedParent{ParentExecution: ParentExecution{Job: "wide", Execution: "e2", State: "succeeded"}, Shards: 2}
	old := fault{problem: &Problem{Status: 404, Kind: "not_found", Code: "unknown_path"}}
	for _, c := range []struct {
		name   string
		faults []fault
		want   string
	}{
		{"no fault", nil, "0=0 1=1"},
		{"the request is lost", []fault{{deaf: true}}, "0=0 1=1"},
		{"the answer is lost", []fault{{mute: true}, {mute: true}}, "0=0 1=1"},
		{"it is late", []fault{{lag: 5 * time.Second}}, "0=0 1=1"},
		{"the database is away", []fault{{problem: &Problem{Status: 503, Kind: "unavailable", Code: "store_unavailable"}}}, "0=0 1=1"},
		{"an older server", []fault{old, old}, "0=0 1=1"},
		{"older servers only", repeated(old, 30), "error takt: worker call parents: unknown_path"},
		{"another holder", []fault{{problem: &Problem{Status: 409, Kind: "conflict", Code: "token_stale"}}}, "error " + ErrLeaseLost.Error()},
		{"refused", []fault{{problem: &Problem{Status: 401, Kind: "unauthorized", Code: "bad_token"}}}, "error takt: worker call parents: bad_token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got string
			h := func(ctx context.Context, t *Task) error {
				got = results(ctx, t, "wide")
				return nil
			}
			play(t, WorkerConfig{}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
				s.gives(2)
				s.spoil("parents", c.faults...)
				s.offerAfter(wide)
				s.until(50 * time.Second)
			})
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func repeated(f fault, n int) (all []fault) {
	for range n {
		all = append(all, f)
	}
	return all
}

func TestParentResultsEndWithTheAttempt(t *testing.T) {
	var got error
	h := func(ctx context.Context, t *Task) error {
		for _, err := range t.ParentResults(context.WithoutCancel(ctx), "wide") {
			got = err
		}
		return nil
	}
	play(t, WorkerConfig{Grace: -1}, map[string]Handler{"h": h}, func(s *stage, _ *Worker) {
		s.spoil("parents", repeated(fault{deaf: true}, 60)...)
		s.spoil("heartbeat", repeated(fault{deaf: true}, 20)...)
		s.offerAfter(AssignedParent{ParentExecution: ParentExecution{Job: "wide"}, Shards: 1})
		s.until(60 * time.Second)
	})
	if !errors.Is(got, ErrLeaseLost) {
		t.Errorf("got %v, want %v", got, ErrLeaseLost)
	}
}
