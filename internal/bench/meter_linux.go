package bench

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

func ofSelf() map[string]float64 {
	counts := map[string]float64{}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		counts[ProcessCPU] = float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	if n, ok := writtenBy("self"); ok {
		counts[WrittenBytes] = n
	}
	return counts
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
