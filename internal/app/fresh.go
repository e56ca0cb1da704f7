package app

import (
	"net"
	"net/http"
	"sync"
)

// fresh are the connections on which nothing was asked yet, such as clients open ahead of need. A graceful stop of
// net/http waits for them as for calls, up to five seconds; a server that stops ends them.
type fresh struct {
	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	closing bool
}

// note is a http.Server's ConnState.
func (f *fresh) note(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(f.conns, c)
	case f.closing:
		_ = c.Close() // nobody asked anything on it
	default:
		if f.conns == nil {
			f.conns = map[net.Conn]struct{}{}
		}
		f.conns[c] = struct{}{}
	}
}

// end closes them, and those that still come.
func (f *fresh) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closing = true
	for c := range f.conns {
		_ = c.Close() // as above
	}
	clear(f.conns)
}
