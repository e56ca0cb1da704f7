//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package postgres

import "net"

// severed is not looked for on this system.
func severed(net.Conn) bool { return false }
