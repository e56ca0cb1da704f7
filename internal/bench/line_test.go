package bench

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
)

// The load's own client says what takt.Client says, many times over one connection, and tells of refusals.
func TestLine(t *testing.T) {
	var got []takt.TriggerManyRequest
	conns := map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conns[r.RemoteAddr] = true
		var in takt.TriggerManyRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/api/v1/namespaces/bench/executions" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v: %v", r.URL.Path, r.Header, err)
		}
		got = append(got, in)
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"code":"no_token"}`))
			return
		}
		_ = json.NewEncoder(w).Encode(takt.TriggeredMany{Items: make([]takt.TriggeredItem, len(in.Items))})
	}))
	defer srv.Close()
	cfg := &Config{Server: srv.URL, Namespace: "bench", Token: "secret", Keys: true, Payload: 50}
	l := newLoad(cfg, nil, newTally(1), []string{"noop"})
	ask, end := l.asker()
	for n := range int64(3) {
		if err := ask(t.Context(), []int64{2 * n, 2*n + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask(t.Context(), nil); err != nil || len(conns) != 1 {
		t.Errorf("%v, %d connections", err, len(conns))
	}
	end()
	want := takt.TriggerItem{Job: "noop", Key: l.prefix + "-5", Params: l.appendParams(nil, 5)}
	if len(got) != 3 || len(got[2].Items) != 2 || !reflect.DeepEqual(got[2].Items[1], want) {
		t.Errorf("asked %+v", got)
	}
	if n, ok := numberIn(want.Params); !ok || n != 5 || len(want.Params) < 40 {
		t.Errorf("params %s", want.Params)
	}

	cfg.Token = "other"
	ask, end = l.asker()
	defer end()
	if err := ask(t.Context(), []int64{7}); err == nil || !strings.Contains(err.Error(), "401") || !strings.Contains(err.Error(), "no_token") {
		t.Errorf("refused: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ask(gone, []int64{8}); err == nil {
		t.Error("a request of a caller that has gone was made")
	}
}

// The end of a run may come while a line is being closed: one of them once took the whole process with it.
func TestLineClosedAtTheEnd(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only behind it the server notes that the caller goes
		<-r.Context().Done()
	}))
	defer srv.Close()
	l := newLoad(&Config{Server: srv.URL, Namespace: "bench", Payload: 50}, nil, newTally(1), []string{"noop"})
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		ask, end := l.asker()
		time.AfterFunc(time.Millisecond, cancel)
		if err := ask(ctx, []int64{1}); err == nil {
			t.Error("a request that nobody answered was made")
		}
		end()
	}
}

func TestLineOnlyForPlainHTTP(t *testing.T) {
	for server, want := range map[string]bool{"http://127.0.0.1:7070": true, "http://localhost/": true, "https://takt.example": false,
		"http://proxy/takt": false, "a,b": false, "http://[::1]:7070": true} {
		if got := newLine(server, "bench", "") != nil; got != want {
			t.Errorf("%s: %v", server, got)
		}
	}
}
