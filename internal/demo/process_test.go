//go:build unix

package demo

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// The test binary plays the processes of these tests, by the variable DEMO_ROLE.
func TestMain(m *testing.M) {
	switch os.Getenv("DEMO_ROLE") {
	case "child":
		child()
	case "demo":
		parent()
	default:
		goleak.VerifyTestMain(m)
	}
}

// child is a worker process: it tells that it is up, holds the FIFO open, and ends with its parent.
func child() {
	fifo, err := os.OpenFile(os.Getenv("DEMO_FIFO"), os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	if _, err := fmt.Fprintln(fifo, "up"); err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// parent is the demo: it starts two children and freezes one when it is told to, then hangs.
func parent() {
	ps := startChildren(os.Getenv("DEMO_DIR"))
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		panic(err)
	}
	if err := ps.find("B").freeze(); err != nil {
		panic(err)
	}
	fmt.Println("frozen")
	_, _ = io.Copy(io.Discard, in)
}

func startChildren(dir string) *processes {
	if err := os.Setenv("DEMO_ROLE", "child"); err != nil {
		panic(err)
	}
	ps := newProcesses([]string{os.Args[0]}, dir)
	for _, name := range []string{"A", "B"} {
		if err := ps.start(name); err != nil {
			panic(err)
		}
	}
	return ps
}

// fifo makes a FIFO that every child holds open: its end is the end of them all.
func fifo(t *testing.T, dir string) (open func() *bufio.Reader) {
	t.Helper()
	name := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DEMO_FIFO", name)
	return func() *bufio.Reader {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		r := bufio.NewReader(f)
		for range 2 {
			if line, err := r.ReadString('\n'); err != nil || line != "up\n" {
				t.Fatalf("got %q, %v from a child", line, err)
			}
		}
		return r
	}
}

func TestStopEndsEveryProcess(t *testing.T) {
	dir := t.TempDir()
	open := fifo(t, dir)
	t.Setenv("DEMO_ROLE", "")
	ps := startChildren(dir)
	r := open()
	if err := ps.find("B").freeze(); err != nil {
		t.Fatal(err)
	}
	if ps.died() != nil {
		t.Error("a process has died before anything happened")
	}
	if err := ps.find("A").kill(); err != nil {
		t.Fatal(err)
	}
	if p := ps.died(); p != nil {
		t.Errorf("worker %s is taken for dead by itself", p.name)
	}
	if err := ps.stop(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("read %q, %v; want the end", rest, err)
	}
}

func TestNothingOutlivesAKilledDemo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a frozen child with its parent")
	}
	dir := t.TempDir()
	open := fifo(t, dir)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DEMO_ROLE=demo", "DEMO_DIR="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := open()
	if _, err := io.WriteString(in, "freeze\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "frozen\n" {
		t.Fatalf("got %q, %v from the demo", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err != nil { // hangs while a child lives
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the demo ended well although it was killed")
	}
}

func TestADeadWorkerIsNoticed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DEMO_FIFO", filepath.Join(dir, "none"))
	t.Setenv("DEMO_ROLE", "")
	ps := startChildren(dir)
	p := ps.find("A")
	<-p.ended // it found no FIFO
	if ps.died() == nil {
		t.Error("a worker that ended by itself is not noticed")
	}
	if err := ps.stop(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "worker-A.log"))
	if err != nil || !strings.Contains(string(text), "no such file") {
		t.Errorf("its log says %q, %v", text, err)
	}
}

func TestWorkerProcessesSeeNoTaktVariables(t *testing.T) {
	got := withoutTakt([]string{"PATH=x", "TAKT_TOKEN=secret", "HOME=TAKT_"})
	if strings.Join(got, " ") != "PATH=x HOME=TAKT_" {
		t.Errorf("got %q", got)
	}
}
