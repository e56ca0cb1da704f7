package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// A job of which nothing runs and one whose owner does not answer are told apart.
func TestJobSaysThatWhatRunsIsNotKnown(t *testing.T) {
	r := newRig(t, nil)
	if w := r.do(request{method: "PUT", path: one, body: doc(`{"pool":"web","handler":"index"}`)}); w.Code != http.StatusCreated {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var away error
	seen := &engine.Inspected{}
	r.owners.answer = func(context.Context, engine.Event) (any, error) { return seen, away }
	status := func() takt.JobStatus {
		t.Helper()
		var j takt.Job
		if w := r.do(get(one)); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		} else if err := json.Unmarshal(w.Body.Bytes(), &j); err != nil {
			t.Fatal(err)
		}
		return *j.Status
	}
	if s := status(); s.Live != nil || s.Incomplete != "" {
		t.Errorf("nothing runs: %+v", s)
	}
	away = job.Errorf(job.KindNoOwner, "no_owner", "nobody")
	if s := status(); s.Live != nil || s.Incomplete == "" {
		t.Errorf("its owner is away: %+v", s)
	}
	away, seen = nil, &engine.Inspected{Turn: &engine.TurnView{Waiting: 2}}
	if s := status(); s.Live == nil || s.Live.Waiting != 2 || s.Incomplete != "" {
		t.Errorf("two wait: %+v, %+v", s, s.Live)
	}
}
