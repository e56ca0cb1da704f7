package drill

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// Network joins in-memory listeners and dialers by name. A connection is a pair of buffered pipes with
// deadlines, so http.Server and http.Transport run on it, also inside a testing/synctest bubble: a
// reader that waits there is durably blocked. Latency and faults are the business of Faults, which
// works on whole calls.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*Listener
	deaf      map[string]chan struct{} // closed when the name is heard again
	mute      map[way]chan struct{}    // see Mute
	waits     map[way]int              // how often a connection had to wait
	open      map[way][]*half          // what the second name says to the first, on connections that the first opened
}

// NewNetwork makes an empty network.
func NewNetwork() *Network {
	return &Network{listeners: map[string]*Listener{}, deaf: map[string]chan struct{}{},
		mute: map[way]chan struct{}{}, waits: map[way]int{}, open: map[way][]*half{}}
}

// Deafen lets nothing through to a name from now on, without a word to who calls, or ends that. Connections that are
// open break.
func (n *Network) Deafen(name string, deaf bool) {
	n.mu.Lock()
	l := n.listeners[name]
	was := n.deaf[name]
	switch {
	case deaf && was == nil:
		n.deaf[name] = make(chan struct{})
	case !deaf && was != nil:
		close(was)
		delete(n.deaf, name)
	}
	n.mu.Unlock()
	if deaf && l != nil {
		l.Drop()
	}
}

// Listen opens the address name; an earlier listener of that name must have been closed.
func (n *Network) Listen(name string) (*Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[name] != nil {
		return nil, &net.OpError{Op: "listen", Net: "memory", Addr: addr(name), Err: errors.New("address in use")}
	}
	l := &Listener{net: n, name: addr(name), queue: make(chan net.Conn), done: make(chan struct{})}
	n.listeners[name] = l
	return l, nil
}

// Dial connects to the listener called name ("name:80" names it too); refused when there is none.
func (n *Network) Dial(ctx context.Context, name string) (net.Conn, error) {
	return n.DialFrom(ctx, "", name)
}

// DialFrom is Dial by somebody who has a name, too.
func (n *Network) DialFrom(ctx context.Context, from, name string) (net.Conn, error) {
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	n.mu.Lock()
	deaf, mute := n.deaf[name], n.mute[way{from, name}]
	n.mu.Unlock()
	for _, closed := range []chan struct{}{deaf, mute} {
		if err := n.hears(ctx, closed, way{from, name}); err != nil {
			return nil, &net.OpError{Op: "dial", Net: "memory", Addr: addr(name), Err: err}
		}
	}
	n.mu.Lock()
	l := n.listeners[name]
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "memory", Addr: addr(name), Err: errors.New("connection refused")}
	if l == nil {
		return nil, refused
	}
	client, server := Pipe(addr("client"), l.name)
	l.keep(server)
	if from != "" {
		n.note(way{from, name}, client)
	}
	select {
	case l.queue <- server:
		return client, nil
	case <-l.done:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hears waits until a deaf name hears again, as the repeated first packet of a connection does; at most goneAfter. Who
// waited then is heard in an order that depends on names and numbers only.
func (n *Network) hears(ctx context.Context, again <-chan struct{}, w way) error {
	if again == nil {
		return nil
	}
	n.mu.Lock()
	n.waits[w]++
	number := n.waits[w]
	n.mu.Unlock()
	timer := time.NewTimer(goneAfter)
	defer timer.Stop()
	select {
	case <-again:
		time.Sleep(time.Duration(Draw(0, "heard", w.from, w.to, strconv.Itoa(number)) % uint64(heardWithin)))
		return nil
	case <-timer.C:
		return errGone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// heardWithin bounds for how long those who waited for a name are apart when it hears again.
const heardWithin = 100 * time.Microsecond

// Listener accepts connections of a Network.
type Listener struct {
	net   *Network
	name  addr
	queue chan net.Conn
	done  chan struct{}
	once  sync.Once

	mu    sync.Mutex
	conns []net.Conn // server ends, for Drop
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close refuses further connections and frees the name.
func (l *Listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.net.mu.Lock()
		delete(l.net.listeners, string(l.name))
		l.net.mu.Unlock()
	})
	return nil
}

// Drop breaks every connection that was accepted, as the death of the process does.
func (l *Listener) Drop() {
	l.mu.Lock()
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // a pipe's Close has no error to tell
	}
}

// Addr is the name.
func (l *Listener) Addr() net.Addr { return l.name }

func (l *Listener) keep(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
}

type addr string

func (addr) Network() string  { return "memory" }
func (a addr) String() string { return string(a) }

// Pipe is a connected pair of buffered in-memory connections. A write never blocks.
func Pipe(a, b net.Addr) (net.Conn, net.Conn) {
	x, y := newHalf(), newHalf()
	return &conn{in: x, out: y, local: a, remote: b}, &conn{in: y, out: x, local: b, remote: a}
}

// half is one direction of a pipe.
type half struct {
	mu       sync.Mutex
	cond     *sync.Cond
	buf      []byte
	closed   bool // by the writer: the reader drains, then meets EOF
	broken   bool // by the reader: writes fail
	lossy    bool // what is written is lost on the way
	deadline time.Time
	timer    *time.Timer
}

func newHalf() *half {
	h := &half{}
	h.cond = sync.NewCond(&h.mu)
	return h
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.broken:
			return 0, net.ErrClosed
		case !h.deadline.IsZero() && !time.Now().Before(h.deadline):
			return 0, os.ErrDeadlineExceeded
		case len(h.buf) > 0:
			n := copy(p, h.buf)
			h.buf = h.buf[n:]
			return n, nil
		case h.closed:
			return 0, io.EOF
		}
		h.cond.Wait()
	}
}

func (h *half) write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.broken {
		return 0, io.ErrClosedPipe
	}
	if h.lossy {
		return len(p), nil
	}
	h.buf = append(h.buf, p...)
	h.cond.Broadcast()
	return len(p), nil
}

func (h *half) setDeadline(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = t
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	if d := time.Until(t); !t.IsZero() && d > 0 {
		h.timer = time.AfterFunc(d, h.wake)
	}
	h.cond.Broadcast()
}

func (h *half) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cond.Broadcast()
}

func (h *half) end(set *bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*set = true
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	h.cond.Broadcast()
}

type conn struct {
	in, out       *half
	local, remote net.Addr
}

func (c *conn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *conn) Write(p []byte) (int, error) { return c.out.write(p) }
func (c *conn) Close() error {
	c.in.end(&c.in.broken)
	c.out.end(&c.out.closed)
	return nil
}
func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }
func (c *conn) SetDeadline(t time.Time) error {
	return c.SetReadDeadline(t)
}
func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(t)
	return nil
}

// SetWriteDeadline does nothing: writes never block.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }
