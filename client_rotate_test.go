package takt

import (
	"net/http"
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

// A server that hangs (a paused machine) takes the call and never answers: the next one is asked.
func TestNextServerWhenOneHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := map[string]int{}
		_, c := newDesk(t, ClientConfig{Server: "http://a, b:1,"}, func(w http.ResponseWriter, r *http.Request) {
			hosts[r.URL.Host]++
			if r.URL.Host == "a" {
				<-r.Context().Done()
				return
			}
			say(200, "{}")(w, r)
		})
		began := time.Now()
		if _, err := c.Stats(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < leastTry || took > leastTry+time.Second || hosts["a"] != 1 {
			t.Errorf("it took %v, asked %v", took, hosts)
		}
	})
}
