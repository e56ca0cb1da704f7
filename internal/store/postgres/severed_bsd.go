//go:build linux || darwin || freebsd || netbsd || openbsd

package postgres

import (
	"errors"
	"net"
	"syscall"
)

// severed tells whether the other side has closed a connection that waits for nothing, or has said something unasked: that it ends, as
// a rule. It looks and does not wait. What breaks later, or without a word, is not seen.
func severed(c net.Conn) bool {
	if outer, is := c.(interface{ NetConn() net.Conn }); is {
		c = outer.NetConn()
	}
	s, is := c.(syscall.Conn)
	if !is {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	// Not by Read: behind a write that took long the driver reads in the background, and Read would wait for that to end.
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT) //nolint:gosec // a descriptor
		gone = !errors.Is(err, syscall.EAGAIN)
	})
	return gone || err != nil
}
