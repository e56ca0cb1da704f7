package postgres_test

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// proxy stands between a store and the database.
type proxy struct {
	net.Listener
	to   string
	mu   sync.Mutex
	deaf bool   // what the database answers is kept back
	mark string // from the question on that has it in its text, it is deaf; "": none
	lost int    // connections that carry nothing any more: the first ones that are open
	left int    // bytes that pass yet before all is cut; < 0: any number
	back bool   // bytes of answers are counted, not of questions
	open []net.Conn
	wg   sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: to, left: -1}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d, err := net.Dial("tcp", p.to)
			if err != nil {
				_ = c.Close()
				continue
			}
			p.mu.Lock()
			n := len(p.open)
			p.open = append(p.open, c, d)
			p.mu.Unlock()
			p.wg.Go(func() { p.pass(d, c, n, false) })
			p.wg.Go(func() { p.pass(c, d, n, true) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) pass(to, from net.Conn, place int, answers bool) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		p.deaf = p.deaf || !answers && p.mark != "" && bytes.Contains(buffer[:n], []byte(p.mark))
		silent := answers && p.deaf || place < p.lost
		over := false
		if p.left >= 0 && p.back == answers {
			over = n >= p.left
			n = min(n, p.left)
			p.left -= n
		}
		p.mu.Unlock()
		if err == nil && !silent {
			_, err = to.Write(buffer[:n])
		}
		if over {
			p.cut()
		}
		if err != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}

// hold keeps back what the database answers from now on.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = true
}

// holdAt is hold, from the question on that has this in its text.
func (p *proxy) holdAt(mark string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mark = mark
}

// lose lets the connections of now carry nothing any more, as behind a firewall that has forgotten them; new ones work.
func (p *proxy) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = len(p.open)
}

// cut breaks all connections; new ones work.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open, p.deaf, p.lost, p.mark, p.left = nil, false, 0, "", -1
}

// cutAfter is cut, once so many bytes have passed: of answers, or of questions.
func (p *proxy) cutAfter(n int, answers bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.back = n, answers
}

// cutAlready tells whether that has happened.
func (p *proxy) cutAlready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left < 0
}

func through(p *proxy, dsn string, c *pgtest.Cluster) string {
	return strings.Replace(dsn, c.HostPort(), p.Addr().String(), 1)
}
