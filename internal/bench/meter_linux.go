package bench

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

func ofSelf() map[string]float64 {
	counts := map[string]float64{}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		counts[ProcessCPU] = float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	if n, ok := residentOf("self"); ok {
		counts[Resident] = n
	}
	if n, ok := writtenBy("self"); ok {
		counts[WrittenBytes] = n
	}
	return counts
}

// residentOf is the memory that a process has; false when the system does not say.
func residentOf(pid string) (float64, bool) {
	text, err := os.ReadFile("/proc/" + pid + "/statm")
	fields := bytes.Fields(text)
	if err != nil || len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseFloat(string(fields[1]), 64)
	return pages * float64(os.Getpagesize()), err == nil
}

// writtenBy is what a process has caused to be written to the disk; false when the system does not say.
func writtenBy(pid string) (float64, bool) {
	text, err := os.ReadFile("/proc/" + pid + "/io")
	if err != nil {
		return 0, false
	}
	_, rest, ok := bytes.Cut(text, []byte("\nwrite_bytes: "))
	if !ok {
		return 0, false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseFloat(string(line), 64)
	return n, err == nil
}

// status is the part of /proc/<pid>/stat behind the name: the state, the parent, and so on. nil: there is no such process.
func status(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	at := bytes.LastIndexByte(text, ')')
	if err != nil || at < 0 {
		return nil
	}
	return strings.Fields(string(text[at+1:]))
}

// parentOf is 0 when it is not known.
func parentOf(pid int) int {
	fields := status(pid)
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil || parent == 1 {
		return 0
	}
	return parent
}

const ticks = 100 // of /proc, in a second: the same on every Linux

// cpuOfFamily is what a process, its living children and those that it has waited for have taken, in seconds.
func cpuOfFamily(pid int) (float64, bool) {
	fields := status(pid)
	if len(fields) < 16 {
		return 0, false
	}
	sum := 0.0
	add := func(fields []string) {
		for _, f := range fields {
			n, _ := strconv.ParseFloat(f, 64)
			sum += n
		}
	}
	add(fields[11:15]) // its own, and of the children it has waited for
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return 0, false
	}
	for _, d := range dirs {
		if child, err := strconv.Atoi(d.Name()); err == nil {
			if f := status(child); len(f) > 15 && f[1] == strconv.Itoa(pid) {
				add(f[11:13])
			}
		}
	}
	return sum / ticks, true
}
