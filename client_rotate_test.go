package takt

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A server that can not answer now is left, too: one that was cut off from the others would say so for long.
func TestNextServerWhenUnavailable(t *testing.T) {
	for _, kind := range []string{"no_owner", "unavailable"} {
		hosts := map[string]int{}
		_, c := newDesk(t, ClientConfig{Server: "http://a, b:1,", Jitter: func(time.Duration) time.Duration { return 0 }}, func(w http.ResponseWriter, r *http.Request) {
			hosts[r.URL.Host]++
			if r.URL.Host == "a" {
				problem(503, kind, kind)(w, r)
				return
			}
			say(200, "{}")(w, r)
		})
		for range 3 {
			if _, err := c.Stats(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(hosts) != 2 || hosts["a"] != 1 || hosts["b:1"] != 3 {
			t.Errorf("%s: asked %v", kind, hosts)
		}
	}
}

// hanging is a client of three servers, of which some (paused machines) take every call and never answer.
func hanging(t *testing.T, patience time.Duration, hung string) (c *Client, hosts map[string]int) {
	hosts = map[string]int{}
	c, err := NewClient(ClientConfig{Server: "http://a,http://b,http://c", RetryFor: patience, HTTPClient: &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
		hosts[r.URL.Host]++
		if strings.Contains(hung, r.URL.Host) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	return c, hosts
}

// A call that no server serves ends with what each of them said last, whichever was asked last.
func TestEveryServerIsNamedThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := NewClient(ClientConfig{Server: "http://me:hidden@a:1,http://b:2,http://c:3", RetryFor: 3 * time.Second, HTTPClient: &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
			switch r.URL.Host {
			case "a:1":
				return nil, errors.New("connection refused by a")
			case "b:2":
				return nil, errors.New("no route to b")
			}
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"kind":"no_owner","code":"no_owner","detail":"nobody owns it"}`))}, nil
		})}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Stats(t.Context())
		if !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		for _, want := range []string{"connection refused by a", "no route to b", "nobody owns it", "the others that were asked: "} {
			if n := strings.Count(err.Error(), want); n != 1 {
				t.Errorf("%q is said %d times: %v", want, n, err)
			}
		}
		if strings.Contains(err.Error(), "hidden") {
			t.Errorf("a password is shown: %v", err)
		}
	})
}

// A server that hangs is left for the next one, however short the patience is: that of the CLI is shorter than one try.
func TestNextServerWhenOneHangs(t *testing.T) {
	for _, patience := range []time.Duration{0, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c, hosts := hanging(t, patience, "a")
			began := time.Now()
			if _, err := c.Stats(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < leastTry || took > leastTry+time.Second || hosts["a"] != 1 {
				t.Errorf("it took %v, asked %v", took, hosts)
			}
		})
	}
}

// When all of them hang the call ends: each was asked once.
func TestAllServersHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, hosts := hanging(t, 3*time.Second, "abc")
		if _, err := c.Stats(t.Context()); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		if len(hosts) != 3 || hosts["a"] != 1 || hosts["b"] != 1 || hosts["c"] != 1 {
			t.Errorf("asked %v", hosts)
		}
	})
}
