package app

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	maxConnections = 10_000
	crowdLogEach   = time.Minute
)

// crowd is a listener that keeps at most a number of connections open; one more is closed at once, so that
// its caller knows and asks again, and the ones that are there are served on.
type crowd struct {
	net.Listener
	most   int
	logger *slog.Logger
	now    func() time.Time

	mu     sync.Mutex
	open   int
	turned int       // away since the last log line
	said   time.Time // when that was
}

// Accept waits for a connection that there is room for.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c.enter() {
			return &guest{Conn: conn, leave: sync.OnceFunc(c.leave)}, nil
		}
		_ = conn.Close() // nothing was said on it
	}
}

func (c *crowd) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open < c.most {
		c.open++
		return true
	}
	c.turned++
	if now := c.now(); now.Sub(c.said) >= crowdLogEach {
		c.logger.Warn("too many connections; new ones are closed until others end", "open", c.open, "closed", c.turned)
		c.said, c.turned = now, 0
	}
	return false
}

func (c *crowd) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
}

// guest is a connection that makes room when it is closed.
type guest struct {
	net.Conn
	leave func()
}

// Close makes room once.
func (g *guest) Close() error {
	defer g.leave()
	return g.Conn.Close()
}
