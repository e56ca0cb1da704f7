package takt_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPureNeedNoWatch: `make race` leaves the race detector out for exactly the pure packages, and their tests start no goroutine either.
func TestPureNeedNoWatch(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^PURE := (.*)$`).FindStringSubmatch(string(text))
	if named == nil || !slices.Equal(strings.Fields(named[1]), pure) {
		t.Errorf("the Makefile takes %q for pure, they are %q", named, pure)
	}
	files := token.NewFileSet()
	walkGo(t, ".", func(name, rel string) {
		if !slices.Contains(pure, path.Dir(rel)) || !strings.HasSuffix(rel, "_test.go") {
			return
		}
		parsed, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		for n := range ast.Preorder(parsed) {
			if goes(n) {
				t.Errorf("%s starts a goroutine: this test belongs into a package that the race detector watches", files.Position(n.Pos()))
			}
		}
	})
}

// goes tells whether n starts a goroutine: `go f()`, or the Go of a WaitGroup.
func goes(n ast.Node) bool {
	if _, is := n.(*ast.GoStmt); is {
		return true
	}
	s, is := n.(*ast.SelectorExpr)
	return is && s.Sel.Name == "Go"
}

func TestPureNeedNoWatchCatches(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"go f()": true, "wg.Go(f)": true, "f()": false, "wg.Wait()": false} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", "package p\nfunc g() { "+text+" }", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		got := false
		for n := range ast.Preorder(parsed) {
			got = got || goes(n)
		}
		if got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
