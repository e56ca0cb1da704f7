package api_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/taktsched/takt"
)

var drawn = regexp.MustCompile(`"(execution|instance|plannedAt)":"[^"]*"`)

// A call that is answered past huma is answered as huma would: here asked in words that it leaves to huma.
func TestDirectAnswers(t *testing.T) {
	const many = "/api/v1/namespaces/default/executions"
	item := func(rest string) string { return `{"items":[{"job":"nightly"` + rest + `}]}` }
	long := strings.Repeat("k", 129)
	bodies := []string{
		item(``), item(`,"params":{"a":1}`), item(`,"params":null`), item(`,"key":"k"`), item(`,"key":""`), item(`,"key":null`), item(`,"key":"a b"`),
		item(`,"key":"` + long + `"`), item(`,"in":"1h"`), item(`,"in":""`), item(`,"in":"x"`), item(`,"at":null`), item(`,"at":"2026-03-01T12:00:00Z"`),
		item(`,"at":"never"`), item(`,"more":1`), item(`,"Key":"k"`), item(`,"\u006bey":""`), item(`,"params":[1]`), item(`},{"job":"nightly"`), item(`},{"job":"none"`),
		`{"items":[]}`, `{"items":null}`, `{}`, `{"items":[null]}`, `{"items":[{}]}`, `{"items":[{"job":null}]}`, `{"items":[{"job":""}]}`, `{"items":[{"job":"A"}]}`,
		`{"items":[{"job":"-a"}]}`, `{"items":[{"job":"a."}]}`, `{"items":[{"job":"` + strings.Repeat("j", 64) + `"}]}`, `{"items":[{"job":7}]}`,
		`{"items":[` + strings.Repeat(`{"job":"nightly"},`, 1000) + `{"job":"nightly"}]}`, `[]`, `null`, `{"items":`,
	}
	rigs := [2]*rig{newRig(t, nil), newRig(t, nil)}
	for _, r := range rigs {
		ok[takt.Job](r, request{method: "PUT", path: one, body: doc(documents[0])})
	}
	for _, path := range []string{many, "/api/v1/namespaces/Default/executions", many + "?x=1"} {
		for _, body := range bodies {
			both := [2]string{}
			codes := [2]int{}
			for i, accept := range []string{"application/json", "application/json;q=0.9"} {
				w := rigs[i].do(with(post(path, body), "Accept", accept))
				var v any
				if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
					t.Fatalf("%.80s: %v in %s", body, err, w.Body)
				}
				again, _ := json.Marshal(v)
				codes[i], both[i] = w.Code, w.Header().Get("Content-Type")+" "+drawn.ReplaceAllString(string(again), `"$1":"…"`)
			}
			if codes[0] != codes[1] || both[0] != both[1] {
				t.Errorf("%s %.80s:\n%d %s\nhuma: %d %s", path, body, codes[0], both[0], codes[1], both[1])
			}
		}
	}
}

// The same of workers' calls.
func TestDirectWorkerCalls(t *testing.T) {
	rigs := [2]*rig{newRig(t, nil), newRig(t, nil)}
	for _, path := range []string{"poll", "heartbeat", "report"} {
		for _, body := range []string{`{}`, `{"session":"x"}`, `{"session":"0-aaaa","call":1,"free":-1}`, `{"more":1}`, `{"call":"x"}`, `{"items":[{"kind":"none"}]}`, `null`, `[`} {
			both := [2]string{}
			for i, accept := range []string{"", "text/plain"} {
				w := rigs[i].do(with(request{method: http.MethodPost, path: "/api/v1/worker/" + path, body: body}, "Accept", accept))
				both[i] = http.StatusText(w.Code) + w.Header().Get("Content-Type") + w.Header().Get(takt.EpochHeader) + " " + drawn.ReplaceAllString(w.Body.String(), `"$1":"…"`)
			}
			if both[0] != both[1] {
				t.Errorf("%s %s:\n%s\nhuma: %s", path, body, both[0], both[1])
			}
		}
	}
}
