package takt_test

import (
	"fmt"
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

// TestUnwatchedAreRun: `make race` runs each test that leaves itself out under the race detector without it, and names no other.
func TestUnwatchedAreRun(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) string {
		found := regexp.MustCompile(`(?m)^` + name + ` := (.*)$`).FindStringSubmatch(string(text))
		if found == nil {
			t.Fatalf("the Makefile has no %s", name)
		}
		return found[1]
	}
	named, dirs := strings.Split(value("ALONE"), "|"), strings.Fields(value("ALONE_IN"))
	there := map[string]bool{} // the tests of these packages
	walkGo(t, ".", func(name, rel string) {
		if !strings.HasSuffix(rel, "_test.go") {
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		run := slices.Contains(dirs, path.Dir(rel))
		for test, out := range unwatchedIn(parsed) {
			there[test] = there[test] || run
			if out && (!run || !slices.Contains(named, test)) {
				t.Errorf("%s: Test%s is left out under the race detector and run nowhere else: name it in ALONE of the Makefile, and its package in ALONE_IN", rel, test)
			}
		}
	})
	for _, name := range named {
		if !there[name] {
			t.Errorf("ALONE of the Makefile names Test%s, which is in no package of ALONE_IN", name)
		}
	}
}

// unwatchedIn lists the tests of a file, without the Test of their names, and tells which are left out under the race detector.
func unwatchedIn(file *ast.File) map[string]bool {
	all := map[string]bool{}
	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || f.Recv != nil || f.Body == nil || !strings.HasPrefix(f.Name.Name, "Test") {
			continue
		}
		out := false
		for n := range ast.Preorder(f.Body) {
			call, is := n.(*ast.CallExpr)
			if is && fmt.Sprint(call.Fun) == "unwatched" {
				out = true
			}
		}
		all[strings.TrimPrefix(f.Name.Name, "Test")] = out
	}
	return all
}

func TestUnwatchedAreRunCatches(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"unwatched(t); t.Parallel()": true, "t.Parallel()": false, "x.unwatched(t)": false} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", "package p\nfunc TestX(t *testing.T) { "+text+" }", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := unwatchedIn(parsed); len(got) != 1 || got["X"] != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
