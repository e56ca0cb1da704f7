package takt_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	maxFileLines = 400
	maxFuncLines = 45
	// argued is what a comment says in a file that has to be longer.
	argued = "long because"
)

// sized is a file or function with its lines.
type sized struct {
	lines int
	what  string
}

// TestBudget holds files to their size. Functions are reported only: `go test -run Budget -v .` shows
// the longest.
func TestBudget(t *testing.T) {
	t.Parallel()
	over, fileSizes, funcSizes := measure(t, ".")
	for _, o := range over {
		t.Errorf("%s has %d lines, at most %d: split it by what changes together, or say in a comment that it is %s …",
			o.what, o.lines, maxFileLines, argued)
	}
	logLongest(t, "files", fileSizes, maxFileLines)
	logLongest(t, "functions", funcSizes, maxFuncLines)
}

func TestBudgetCatches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rest := strings.Repeat("\n", maxFileLines)
	for name, text := range map[string]string{
		"long.go":   "package p\n" + rest,
		"argued.go": "package p // " + argued + " it is one table\n" + rest,
		"just.go":   "package p" + rest,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	over, all, _ := measure(t, dir)
	if len(over) != 1 || over[0] != (sized{maxFileLines + 1, "long.go"}) {
		t.Errorf("caught %v of %v, want long.go", over, all)
	}
}

// measure finds the files below root that are too long without a reason, and the sizes of all.
func measure(t *testing.T, root string) (over, fileSizes, funcSizes []sized) {
	t.Helper()
	files := token.NewFileSet()
	walkGo(t, root, func(name, rel string) {
		parsed, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		file := sized{files.File(parsed.FileStart).LineCount(), rel}
		fileSizes = append(fileSizes, file)
		if file.lines > maxFileLines && !argues(parsed) {
			over = append(over, file)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				length := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1
				funcSizes = append(funcSizes, sized{length, fmt.Sprintf("%s in %s", f.Name.Name, rel)})
			}
		}
	})
	return over, fileSizes, funcSizes
}

func argues(f *ast.File) bool {
	return slices.ContainsFunc(f.Comments, func(c *ast.CommentGroup) bool { return strings.Contains(c.Text(), argued) })
}

func logLongest(t *testing.T, kind string, all []sized, limit int) {
	t.Helper()
	slices.SortFunc(all, func(a, b sized) int { return cmp.Compare(b.lines, a.lines) })
	over := 0
	for _, s := range all {
		if s.lines > limit {
			over++
		}
	}
	t.Logf("%s: %d, of them %d over %d lines", kind, len(all), over, limit)
	for _, s := range all[:min(10, len(all))] {
		t.Logf("%5d %s", s.lines, s.what)
	}
}
