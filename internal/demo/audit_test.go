package demo_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/demo"
)

// indexed is a directory with the effects that a faultless run leaves, one line each.
func indexed(t *testing.T) (dir string, lines []string) {
	t.Helper()
	dir = tree(t, map[string]string{"a.go": "package a\n", "b/b.go": "package b\n", "b/c.go": "", "目录/d.txt": "x"})
	paths, err := demo.Walk(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	s := demo.NewSink(&file)
	for _, p := range paths {
		b := demo.Batch{Shard: demo.ShardOf(p, 2), Key: "k", Token: 1, Files: []demo.Entry{demo.Describe(dir, p)}}
		if _, err := s.Take(b); err != nil {
			t.Fatal(err)
		}
	}
	return dir, slices.Collect(strings.Lines(file.String()))
}

func TestAudit(t *testing.T) {
	for _, c := range []struct {
		name                         string
		change                       func(dir string, lines []string) []string
		missing, duplicates, foreign int
		bad                          bool // no file of effects at all
	}{
		{name: "holds", change: func(_ string, l []string) []string { return l }},
		{name: "in another order", change: func(_ string, l []string) []string { slices.Reverse(l); return l }},
		{name: "a line is missing", change: func(_ string, l []string) []string { return l[1:] }, missing: 1},
		{name: "all are missing", change: func(string, []string) []string { return nil }, missing: 4},
		{name: "a line is there twice", change: func(_ string, l []string) []string { return append(l, l[2]) }, duplicates: 1},
		{name: "a line is there three times", change: func(_ string, l []string) []string { return append(l, l[2], l[2]) }, duplicates: 1},
		{name: "one missing, one twice: the count alone is right", change: func(_ string, l []string) []string { return append(l[1:], l[1]) }, missing: 1, duplicates: 1},
		{name: "another size", change: altered(`"size":10`, `"size":11`), missing: 1},
		{name: "another number of lines", change: altered(`"lines":1`, `"lines":2`), missing: 1},
		{name: "another hash", change: altered(`"sha256":"`, `"sha256":"0`), missing: 1},
		{name: "a path that is not there", change: altered(`"path":"`, `"path":"no/`), missing: 1, foreign: 1},
		{name: "a file changed meanwhile", change: func(dir string, l []string) []string {
			if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("package z\n"), 0o644); err != nil {
				panic(err)
			}
			return l
		}, missing: 1},
		{name: "half a line", change: func(_ string, l []string) []string { l[3] = l[3][:len(l[3])/2]; return l }, bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, lines := indexed(t)
			a, err := demo.Audit(t.Context(), dir, strings.NewReader(strings.Join(c.change(dir, lines), "")))
			if (err != nil) != c.bad {
				t.Fatal(err)
			}
			if c.bad {
				return
			}
			if a.Files != 4 || a.Missing != c.missing || a.Duplicates != c.duplicates || a.Foreign != c.foreign {
				t.Errorf("got %+v, want missing %d, duplicates %d, foreign %d", a, c.missing, c.duplicates, c.foreign)
			}
			if a.Holds() != (c.missing+c.duplicates+c.foreign == 0) || a.Holds() != (len(a.Findings) == 0) {
				t.Errorf("holds = %v with findings %q", a.Holds(), a.Findings)
			}
		})
	}
}

// altered changes the first line only.
func altered(old, to string) func(string, []string) []string {
	return func(_ string, lines []string) []string {
		lines[0] = strings.Replace(lines[0], old, to, 1)
		return lines
	}
}
