//go:build linux || darwin || freebsd || netbsd || openbsd

package postgres

import (
	"net"
	"syscall"
	"testing"
)

// Behind a write that took long the driver goes on reading in the background. A look at such a connection does not wait for what
// the database may never say.
func TestSeveredWhileSomebodyReads(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	other, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	under, is := c.(syscall.Conn)
	if !is {
		t.Fatalf("%T has no descriptor", c)
	}
	raw, err := under.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	reads, looked, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- raw.Read(func(uintptr) bool {
			close(reads)
			<-looked
			return true
		})
	}()
	<-reads
	if severed(c) {
		t.Error("a connection that somebody reads is taken for one that has ended")
	}
	close(looked)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if n, err := c.Read(b[:]); err == nil { // its end has come
		t.Fatalf("read %d", n)
	}
	if !severed(c) {
		t.Error("a connection that has ended is taken for one that lives")
	}
}
