package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var codeBlock = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// TestQuickstart runs every block of docs/QUICKSTART.md in its order: yaml is written to the file that its first
// line names, sh is run and must succeed; takt dev goes on running, on a free port.
func TestQuickstart(t *testing.T) {
	if !canSignal {
		t.Skip("the page is for unix shells")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "QUICKSTART.md"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir, ran := t.TempDir(), 0
	t.Setenv("TAKT_LISTEN", "127.0.0.1:0")
	var dev *program
	var output bytes.Buffer
	for _, m := range codeBlock.FindAllStringSubmatch(string(page), -1) {
		kind, text := m[1], m[2]
		switch {
		case kind == "yaml":
			name := strings.TrimPrefix(strings.SplitN(text, "\n", 2)[0], "# ")
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(text, "takt dev"):
			dev = startIn(t, dir, strings.Fields(text)[1:]...)
			t.Setenv("TAKT_SERVER", dev.await(`(http://127\.0\.0\.1:\d+)/api`)[1])
		case kind == "sh":
			cmd := exec.Command("sh", "-eu", "-c", text)
			if cmd.Dir = dir; strings.HasPrefix(text, "go build") {
				cmd.Dir = root
			}
			out, err := cmd.CombinedOutput()
			if output.Write(out); err != nil {
				t.Fatalf("%v:\n%s\n%s", err, text, out)
			}
		default:
			t.Fatalf("a block of kind %s is not run by this test", kind)
		}
		ran++
	}
	if strings.Count(string(page), "\n```\n") != ran || dev == nil {
		t.Errorf("%d blocks ran", ran)
	}
	for _, want := range []string{"succeeded", "shard 2 of 3, attempt 1", "exit code 1", "the disk is full", "it differs", "month-end"} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("nothing printed %q:\n%s", want, output.String())
		}
	}
	dev.interrupt()
	if code := dev.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
