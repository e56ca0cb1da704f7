//go:build unix && !linux

package demo

import "syscall"

// tiedToParent: out of the terminal's foreground group, so that Ctrl-C reaches the demo alone. The pipe
// on standard input ends the worker when the demo is killed.
func tiedToParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
