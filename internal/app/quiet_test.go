package app_test

import (
	"net"
	"sync"
)

// quiet is a listener that nobody calls.
type quiet struct{ closed chan struct{} }

var quietOnce sync.Map // of listeners closed already

// Accept waits for Close.
func (q quiet) Accept() (net.Conn, error) {
	<-q.closed
	return nil, net.ErrClosed
}

// Close may be called again.
func (q quiet) Close() error {
	if _, again := quietOnce.LoadOrStore(q, true); !again {
		close(q.closed)
	}
	return nil
}

// Addr names a loopback address.
func (q quiet) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
