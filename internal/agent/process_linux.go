package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bootNow is the time since the machine's start, suspensions included: the same in every process of it.
func bootNow() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Duration(time.Now().UnixNano()) // not reached: the clock exists since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}

// adopt makes the kernel give the orphans of our tree to this process.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of orphans: %w", err)
	}
	return nil
}

// seal keeps processes of the same user, the commands, from reading this one's environment and memory, where the token
// is. (Root can.) The kernel writes no core of it any more.
func seal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep commands from reading the agent: %w", err)
	}
	return nil
}

// bootID names this life of the machine.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// list reads the processes of the system. One that ends meanwhile is left out.
func list() processes {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // only read
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	ps := processes{}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := inspect(pid); ok {
				ps[pid] = p
			}
		}
	}
	return ps
}

// inspect reads one process; false when there is none.
func inspect(pid int) (process, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	// pid (name) state ppid … with the start as field 22. The name may hold anything.
	after := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[after+1:]))
	if after < 0 || len(fields) < 20 {
		return process{}, false
	}
	parent, err1 := strconv.Atoi(fields[1])
	start, err2 := strconv.ParseUint(fields[19], 10, 64)
	if err1 != nil || err2 != nil {
		return process{}, false
	}
	return process{processID{pid, start}, parent, fields[0] == "Z" || fields[0] == "X"}, true
}

// hasMark tells whether the process was started with the mark in its environment.
func hasMark(pid int, mark string) bool {
	if mark == "" {
		return false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	want := []byte(markVariable + "=" + mark)
	return err == nil && (bytes.HasPrefix(text, append(want[:len(want):len(want)], 0)) ||
		bytes.Contains(text, append(append([]byte{0}, want...), 0)))
}

// spare takes this process out: it never kills itself.
func spare(found map[int]processID) { delete(found, os.Getpid()) }

// kill sends SIGKILL to the process if it is still the one that was found. The kernel's handle for it
// keeps the pid from being given to another one between the look and the signal.
func kill(id processID) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil && !errors.Is(err, unix.ENOSYS) {
		return // it has ended
	}
	if err == nil {
		defer func() { _ = unix.Close(fd) }() // a handle; closing it cannot fail
	}
	if p, ok := inspect(id.PID); !ok || p.processID != id {
		return
	}
	if err == nil {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // the next look tells whether it is gone
	} else {
		_ = unix.Kill(id.PID, unix.SIGKILL) // a kernel older than 5.3
	}
}

// collect waits for the process if it has ended as our child, so that no zombie stays.
func collect(id processID) {
	if p, ok := inspect(id.PID); ok && p.processID == id && p.dead && p.parent == os.Getpid() {
		var status unix.WaitStatus
		_, _ = unix.Wait4(id.PID, &status, unix.WNOHANG, nil) // how it ended is known
	}
}
