package api_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/taktsched/takt"
)

// Whatever a worker sends, the answer is a decision of the owner or a problem with a code; never a fault of the server.
func FuzzWorkerCalls(f *testing.F) {
	calls := []string{"open", "poll", "heartbeat", "report", "log", "close", "parents"}
	for i, body := range []string{opened, `{` + sess + `,"waitMs":1,"free":1,"held":[1]}`, `{` + sess + `,"held":[{"token":1,"progress":{"done":1,"total":2,"note":"x"}}]}`,
		`{` + sess + `,"items":[{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"seq":1,"kind":"done","outcome":"succeeded","result":{"a":1}}]}`,
		`{` + sess + `,"chunks":[{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"offset":0,"lines":[{"text":"x"}]}]}`, `{` + sess + `}`,
		`{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"job":"a","from":1}`} {
		f.Add(uint8(i), body)
	}
	for _, c := range hostile {
		if len(c.q.body) < 1000 {
			f.Add(uint8(len(c.name)), c.q.body)
		}
	}
	var r *rig // one for all: building it takes far longer than a request
	f.Fuzz(func(t *testing.T, call uint8, body string) {
		if r == nil {
			r = newRig(t, nil)
		}
		r.t = t
		r.log.Reset()
		path := work + calls[int(call)%len(calls)]
		w := r.do(post(path, body))
		if w.Code == http.StatusOK {
			return
		}
		var p takt.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code == "" || p.Status != w.Code {
			t.Fatalf("%s: %d %q %v", path, w.Code, w.Body, err)
		}
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%s: %d %s: %s", path, w.Code, p.Code, p.Detail)
		}
		if w.Code < http.StatusInternalServerError && (p.Hint == "" || len(p.Errors) == 0) {
			t.Errorf("%s: %d %s without hint or field", path, w.Code, p.Code)
		}
	})
}
