package takt_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
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
	var fileSizes, funcSizes []sized
	files := token.NewFileSet()
	walkGo(t, ".", func(name, rel string) {
		parsed, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		lines := files.File(parsed.Pos()).LineCount()
		fileSizes = append(fileSizes, sized{lines, rel})
		if lines > maxFileLines && !argues(parsed) {
			t.Errorf("%s has %d lines, at most %d: split it by what changes together, or say in a comment that it is %s …",
				rel, lines, maxFileLines, argued)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				length := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1
				funcSizes = append(funcSizes, sized{length, fmt.Sprintf("%s in %s", f.Name.Name, rel)})
			}
		}
	})
	logLongest(t, "files", fileSizes, maxFileLines)
	logLongest(t, "functions", funcSizes, maxFuncLines)
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
