// Package boottime is no leaf any more.
package boottime

import _ "golang.org/x/sys/unix" // want
