package api_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/api"
)

// oneConn is a listener of one connection.
type oneConn struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l oneConn) Close() error   { close(l.closed); return nil }
func (l oneConn) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7070} }

// copied is a copy of a database that notes its end.
type copied struct {
	io.Reader
	closed chan struct{}
}

func (c copied) Close() error { close(c.closed); return nil }

// download asks for a backup and calls read with the connection, which has no buffer, when the request is written.
func download(t *testing.T, file []byte, read func(conn net.Conn)) (r *rig, closed chan struct{}) {
	closed = make(chan struct{})
	r = newRig(t, func(c *api.Config) {
		c.Backup = func(context.Context) (io.ReadCloser, int64, error) {
			return copied{bytes.NewReader(file), closed}, int64(len(file)), nil
		}
	})
	l, srv := oneConn{make(chan net.Conn, 1), make(chan struct{})}, &http.Server{Handler: r.handler}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	here, there := net.Pipe()
	l.conn <- there
	if _, err := io.WriteString(here, "GET /api/v1/backup HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	read(here)
	_ = here.Close()
	_ = srv.Close()
	<-served
	synctest.Wait()
	return r, closed
}

// A backup takes as long as its reader takes, if only it goes on reading.
func TestBackupSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, got := bytes.Repeat([]byte("takt"), 100_000), []byte(nil)
		begun := time.Now()
		_, closed := download(t, file, func(conn net.Conn) {
			for buf := make([]byte, 8<<10); ; {
				n, err := io.ReadFull(conn, buf)
				if got = append(got, buf[:n]...); err != nil {
					return
				}
				time.Sleep(5 * time.Second)
			}
		})
		if took := time.Since(begun); took < 2*time.Minute {
			t.Fatalf("the reader was not slow: %v", took)
		}
		if _, body, _ := bytes.Cut(got, []byte("\r\n\r\n")); !bytes.Equal(body, file) {
			t.Errorf("%d bytes of %d came", len(body), len(file))
		}
		<-closed
	})
}

// A reader that takes a few bytes now and then, for ever, does not keep the copy for ever either.
func TestBackupDrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		r, closed := download(t, make([]byte, 16<<20), func(conn net.Conn) {
			for buf := make([]byte, 16<<10); ; time.Sleep(10 * time.Second) { // three hours, were it let
				if _, err := io.ReadFull(conn, buf); err != nil {
					return
				}
			}
		})
		<-closed
		if took := time.Since(begun); took < time.Hour || took > time.Hour+6*time.Minute || !strings.Contains(r.log.String(), "was not read to its end") {
			t.Errorf("after %v: %s", took, r.log)
		}
	})
}

// A reader that stops reading does not keep the copy.
func TestBackupReaderStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		r, closed := download(t, make([]byte, 1<<20), func(net.Conn) { time.Sleep(time.Minute) })
		<-closed
		if took := time.Since(begun); took > time.Minute || !strings.Contains(r.log.String(), "was not read to its end") {
			t.Errorf("after %v: %s", took, r.log)
		}
	})
}
