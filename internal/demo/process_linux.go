package demo

import "syscall"

// tiedToParent: out of the terminal's foreground group, so that Ctrl-C reaches the demo alone, and killed
// by the kernel when the demo is, frozen or not.
func tiedToParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
