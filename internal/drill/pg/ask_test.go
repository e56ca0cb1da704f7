//go:build linux

package pg_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// askClient keeps no connections: servers die.
var askClient = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// get asks one server; 0: no answer.
func get(addr, path string) (status int, body string) { return call(addr, http.MethodGet, path, "") }

func call(addr, method, path, body string) (int, string) {
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := askClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// ready waits until a server says so.
func (f *fleet) ready(s *server) time.Duration {
	f.t.Helper()
	return until(f.t, s.name+" is ready", func() error {
		select {
		case <-s.done:
			f.t.Fatalf("%s ended: %v", s.name, s.err)
		default:
		}
		if code, body := get(s.addr, "/readyz"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
}
