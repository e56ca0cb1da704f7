package drill_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/drill"
)

// counting is a base transport that counts what reaches the server and when.
type counting struct {
	began time.Time
	at    []time.Duration
	body  string
}

func (c *counting) RoundTrip(req *http.Request) (*http.Response, error) {
	c.at = append(c.at, time.Since(c.began))
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(c.body + string(b)))}, nil
}

func TestLinkFaults(t *testing.T) {
	const small = time.Millisecond
	cases := []struct {
		verdict drill.Verdict
		cut     bool
		served  []time.Duration // when the server sees it
		ok      bool
	}{
		{verdict: drill.Verdict{}, served: []time.Duration{0}, ok: true},
		{verdict: drill.Verdict{Fault: drill.RequestLost}},
		{verdict: drill.Verdict{Fault: drill.AnswerLost}, served: []time.Duration{0}},
		{verdict: drill.Verdict{Fault: drill.Doubled, Delay: time.Second}, served: []time.Duration{0, time.Second}, ok: true},
		{verdict: drill.Verdict{Fault: drill.Late, Delay: 9 * time.Second}, served: []time.Duration{9 * time.Second}},
		{verdict: drill.Verdict{Fault: drill.Slow, Delay: time.Second}, served: []time.Duration{time.Second}, ok: true},
		{cut: true},
	}
	for _, c := range cases {
		name := string(c.verdict.Fault)
		if c.cut {
			name = "cut"
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := &counting{began: time.Now(), body: "ok "}
				tape := &drill.Tape{}
				link := drill.NewLink("a", 1, base, tape)
				link.Rule(func(drill.Call) drill.Verdict { return c.verdict })
				if c.cut {
					link.Cut()
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://s/api/v1/worker/poll", strings.NewReader(`{"session":"s","call":7}`))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := link.RoundTrip(req)
				if got := err == nil; got != c.ok {
					t.Errorf("answered: %v (%v), want %v", got, err, c.ok)
				}
				if err == nil {
					_ = resp.Body.Close()
				}
				time.Sleep(10 * time.Second)
				link.Close()
				if len(base.at) != len(c.served) {
					t.Fatalf("the server saw it at %v, want %v", base.at, c.served)
				}
				for i, want := range c.served {
					if d := base.at[i] - want; d < 0 || d > small {
						t.Errorf("the server saw it at %v, want %v", base.at, c.served)
					}
				}
				if w := tape.Wire(); len(w) != 1 || w[0].Call != 7 || w[0].Kind != drill.WireSent {
					t.Errorf("wire notes %+v, want the sending of call 7", w)
				}
			})
		})
	}
}

func TestDrawDependsOnEveryWord(t *testing.T) {
	seen := map[uint64]string{}
	for _, seed := range []uint64{1, 2} {
		for _, w := range []string{"a", "b", "ab"} {
			for _, n := range []string{"1", "2", ""} {
				d := drill.Draw(seed, w, n)
				if other, twice := seen[d]; twice {
					t.Errorf("%d %q %q draws the same as %s", seed, w, n, other)
				}
				seen[d] = w + n
				if d != drill.Draw(seed, w, n) {
					t.Error("a draw is not repeated")
				}
			}
		}
	}
}
