//go:build linux || darwin || freebsd || netbsd || openbsd

package postgres_test

import (
	"net"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/store/postgres"
)

// TestSeveredWaitsForNoReader: pgx may leave a reader on an idle connection, which holds it for reading until something comes. Who
// looked whether the connection lives waited for that, and a request with it, for ever.
func TestSeveredWaitsForNoReader(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ours, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := ours.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	reads, release, over := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() { over <- raw.Read(func(uintptr) bool { close(reads); <-release; return true }) }()
	<-reads
	looked := make(chan bool, 1)
	go func() { looked <- postgres.Severed(ours) }()
	select {
	case gone := <-looked:
		if gone {
			t.Error("a connection that lives counts as severed")
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for the reader")
	}
	close(release)
	if err := <-over; err != nil {
		t.Error(err)
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Read(make([]byte, 1)); err == nil { // waits for the end
		t.Error("the end was not read")
	}
	if !postgres.Severed(ours) {
		t.Error("one that the other side has closed does not")
	}
	_ = ours.Close() // nothing was sent
}
