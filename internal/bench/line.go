package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// linePatience bounds a request and its answer.
const linePatience = time.Minute

// line is one client of the load: a connection that carries one request at a time, written and read by the one who waits for it.
// net/http's own client takes three goroutines for that, and more of the processors than the server does for a single request.
type line struct {
	addr string
	head []byte // of each request, up to its length
	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

// newLine gives nil when the server speaks TLS, or is behind a path: that is left to takt.Client.
func newLine(server, namespace, token string) *line {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return nil
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), "80")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST /api/v1/namespaces/%s/executions HTTP/1.1\r\nHost: %s\r\nUser-Agent: takt-bench\r\nContent-Type: application/json\r\n", url.PathEscape(namespace), u.Host)
	if token != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", token)
	}
	b.WriteString("Content-Length: ")
	return &line{addr: addr, head: b.Bytes()}
}

// ask posts a body and gives how many executions the answer names. A request that fails is not made again: it may have been taken.
func (l *line) ask(ctx context.Context, body []byte) (made int, err error) {
	if l.conn == nil {
		if l.conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", l.addr); err != nil {
			return 0, err
		}
		l.in = bufio.NewReader(l.conn)
	}
	conn := l.conn // what ends the context may come when the line has been closed
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if err = conn.SetDeadline(time.Now().Add(linePatience)); err != nil {
		return 0, err
	}
	l.out = append(strconv.AppendInt(append(l.out[:0], l.head...), int64(len(body)), 10), "\r\n\r\n"...)
	l.out = append(l.out, body...)
	if _, err = conn.Write(l.out); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return 0, err
	}
	answer, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the server answered %s: %.300s", resp.Status, answer)
	}
	if resp.Close {
		l.close()
	}
	return bytes.Count(answer, []byte(`"execution":`)), nil
}

func (l *line) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}
