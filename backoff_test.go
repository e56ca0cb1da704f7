package takt

import (
	"testing"
	"time"
)

// The first tries for a partition that is handed over come soon; all others wait as the server asks.
func TestBackoffOfAHandOver(t *testing.T) {
	t.Parallel()
	refused := func(code string) error {
		return &Error{Problem: Problem{Status: 503, Kind: "unavailable", Code: code}, RetryAfter: time.Second}
	}
	for code, want := range map[string][]int64{
		"no_owner":          {5, 50, 100, 200, 1400, 1800},
		"store_unavailable": {1050, 1100, 1200, 1400, 1800},
	} {
		b := backoff{max: 2 * time.Second, jitter: func(time.Duration) time.Duration { return 0 }}
		for i, ms := range want {
			if got := b.after(refused(code)); got.Milliseconds() != ms {
				t.Errorf("%s, try %d: a pause of %v, want %dms", code, i+1, got, ms)
			}
		}
	}
}
