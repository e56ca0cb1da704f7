package engine_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the engine's answers into testdata/*.txt")

// TestScenarios replays the files of testdata. A file is blocks: command lines, a line of four dashes,
// the engine's full answer, an empty line. The words are told in testdata/README.md.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if line, want, have := firstDifference(string(text), got); line > 0 {
				t.Errorf("%s:%d\nwant %s\nhave %s\n(go test ./internal/engine -run Scenarios -rewrite writes it anew; review the diff)", file, line, want, have)
			}
		})
	}
}

// play runs all blocks of a scenario and gives the text as it should be.
func play(t *testing.T, text string) string {
	s := newScenario()
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		if lines[i] == "" || strings.HasPrefix(lines[i], "#") {
			out.WriteString(lines[i] + "\n")
			i++
			continue
		}
		var answer strings.Builder
		for ; i < len(lines) && lines[i] != "----" && lines[i] != ""; i++ {
			out.WriteString(lines[i] + "\n")
			did, err := s.run(lines[i])
			answer.WriteString(did)
			if err != nil {
				t.Fatalf("line %d: %s: %v\n%s", i+1, lines[i], err, answer.String())
			}
		}
		if i < len(lines) && lines[i] == "----" {
			for i++; i < len(lines) && lines[i] != ""; i++ {
			}
		}
		out.WriteString("----\n" + answer.String())
	}
	return out.String()
}

func firstDifference(want, have string) (line int, w, h string) {
	a, b := strings.Split(strings.TrimRight(want, "\n"), "\n"), strings.Split(strings.TrimRight(have, "\n"), "\n")
	for i := range max(len(a), len(b)) {
		w, h = "(end)", "(end)"
		if i < len(a) {
			w = a[i]
		}
		if i < len(b) {
			h = b[i]
		}
		if w != h {
			return i + 1, w, h
		}
	}
	return 0, "", ""
}
