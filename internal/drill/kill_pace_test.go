package drill_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path"
	"testing"
	"time"
)

// lastingAddress is an address that stays free while nobody listens there: below the ports that a system
// gives to outgoing connections, any of which may take one of those between two binds.
func lastingAddress(t *testing.T) string {
	t.Helper()
	var last error
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			last = err
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return addr
	}
	t.Fatalf("no free port: %v", last)
	return ""
}

// until waits for something that a slow machine only makes come later. ok is asked under the lock.
func (k *killed) until(what string, ok func() bool) {
	k.t.Helper()
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		k.mu.Lock()
		done := ok()
		k.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(end) {
			k.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// heard tells that every worker sent a beat that was answered in the newest third of a lease. Without
// that, kills in a row could keep a live worker silent for a whole lease on a machine that is slow enough.
func (k *killed) heard() bool {
	for _, at := range k.beats {
		if time.Since(at) > k.lease.TTL/3 {
			return false
		}
	}
	return len(k.beats) == len(killWorkers)
}

// listening notes when a worker sent the newest beat that was answered.
type listening struct {
	k      *killed
	worker string
	base   http.RoundTripper
}

func (l *listening) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := time.Now()
	resp, err := l.base.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusOK && path.Base(r.URL.Path) == "heartbeat" {
		l.k.mu.Lock()
		l.k.beats[l.worker] = sent
		l.k.mu.Unlock()
	}
	return resp, err
}
