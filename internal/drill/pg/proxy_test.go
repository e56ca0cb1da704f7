//go:build linux

package pg_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// network is what happens between a server and the database.
type network int32

const (
	flows      network = iota
	silent             // half-open: connections stay, nothing passes
	broken             // connections are reset, new ones, too
	answerless         // the connection of a commit is reset between the commit and its answer
	late               // commits reach the database only when lag has passed, and nobody waits any more
)

// lag is longer than a commit is waited for and its partition is taken again.
const lag = 6 * time.Second

// proxy is the network before a database.
type proxy struct {
	net.Listener
	to      string
	state   atomic.Int32
	spoiled atomic.Int64 // commits that were cut or came late
	mu      sync.Mutex
	open    map[net.Conn]bool
	wg      sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: to, open: map[net.Conn]bool{}}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.become(broken)
		p.wg.Wait()
	})
	return p
}

// become changes the network; broken resets what is open.
func (p *proxy) become(n network) {
	p.state.Store(int32(n))
	if n != broken {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		reset(c)
	}
}

func (p *proxy) is(n network) bool { return network(p.state.Load()) == n }

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // closing says RST then
	}
	_ = c.Close()
}

func (p *proxy) keep(c net.Conn, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.open[c] = true
	} else {
		delete(p.open, c)
		_ = c.Close()
	}
}

// pair is one connection through the proxy.
type pair struct {
	client, database net.Conn
	commits          atomic.Bool // the fence of commits was prepared on it
	mute             atomic.Bool // no answer passes any more
}

func (p *proxy) serve(client net.Conn) {
	if p.is(broken) {
		reset(client)
		return
	}
	database, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.to)
	if err != nil {
		reset(client)
		return
	}
	x := &pair{client: client, database: database}
	p.keep(client, true)
	p.keep(database, true)
	var both sync.WaitGroup
	both.Go(func() { p.asks(x); p.keep(database, false) })
	both.Go(func() { p.answers(x); p.keep(client, false) })
	both.Wait()
}

// asks passes on what a server says.
func (p *proxy) asks(x *pair) {
	buffer := make([]byte, 1<<20)
	for {
		n, err := x.client.Read(buffer)
		if err != nil {
			return
		}
		said := buffer[:n]
		if bytes.Contains(said, []byte("UPDATE partitions SET seq")) {
			x.commits.Store(true)
		}
		commit := x.commits.Load() && said[0] == 'B' // Bind: no question about a statement, no ping
		switch {
		case commit && p.is(answerless):
			x.mute.Store(true)
			p.spoiled.Add(1)
		case commit && p.is(late):
			p.spoiled.Add(1)
			time.Sleep(lag)
		}
		for p.is(silent) {
			time.Sleep(50 * time.Millisecond)
		}
		if _, err := x.database.Write(said); err != nil {
			return
		}
	}
}

// answers passes on what the database says.
func (p *proxy) answers(x *pair) {
	buffer := make([]byte, 1<<20)
	for {
		n, err := x.database.Read(buffer)
		if err != nil {
			return
		}
		if x.mute.Load() {
			reset(x.client)
			return
		}
		for p.is(silent) {
			time.Sleep(50 * time.Millisecond)
		}
		if _, err := x.client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
