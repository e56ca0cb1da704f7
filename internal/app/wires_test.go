package app_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
)

// wires is a worker's network: calls can be refused, their answers lost, and what was sent is kept.
type wires struct {
	mu     sync.Mutex
	cut    bool // nothing gets through
	answer bool // answers are lost
	sent   map[string][]sentCall
}

type sentCall struct {
	url  string
	head http.Header
	body []byte
}

var errCut = errors.New("the network is cut")

func (w *wires) set(cut, answer bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut, w.answer = cut, answer
}

func (w *wires) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	name := path.Base(r.URL.Path)
	w.mu.Lock()
	if w.sent == nil {
		w.sent = map[string][]sentCall{}
	}
	w.sent[name] = append(w.sent[name], sentCall{r.URL.String(), r.Header.Clone(), body})
	cut := w.cut
	w.mu.Unlock()
	if cut {
		return nil, errCut
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	w.mu.Lock()
	lost := w.cut || w.answer
	w.mu.Unlock()
	if err == nil && lost {
		_ = resp.Body.Close()
		return nil, errCut
	}
	return resp, err
}

// again sends the newest call of a name again.
func (w *wires) again(t *testing.T, name string, with string) (int, string) {
	t.Helper()
	w.mu.Lock()
	var call *sentCall
	for i := len(w.sent[name]) - 1; i >= 0 && call == nil; i-- {
		if strings.Contains(string(w.sent[name][i].body), with) {
			call = &w.sent[name][i]
		}
	}
	w.mu.Unlock()
	if call == nil {
		t.Fatalf("no %s with %q was sent", name, with)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, call.url, bytes.NewReader(call.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = call.head
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
