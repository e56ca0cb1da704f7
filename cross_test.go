package takt_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var systems = flag.String("systems", "", "systems for which TestSystems checks all packages and tests, such as darwin/arm64,windows/amd64")

// TestSystems checks the types of all packages and tests as another system compiles them; `make cross` names the systems. What they are
// made of is checked from its source, without the bodies of functions: to compile SQLite for each system takes minutes.
func TestSystems(t *testing.T) {
	if *systems == "" {
		t.Skip("a part of `make cross`")
	}
	for system := range strings.SplitSeq(*systems, ",") {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			goos, arch, _ := strings.Cut(system, "/")
			checked := 0
			for _, err := range checkSystem(t, goos, arch, ".", &checked, "./...") {
				t.Error(err)
			}
			if checked < 20 {
				t.Errorf("%d packages of ours: this proves nothing", checked)
			}
		})
	}
}

// listed is a package as go list tells it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct {
		Main      bool
		GoVersion string
	}
	Error *struct{ Err string }
}

// checkSystem checks packages of the module in dir and what they import, in the order of go list: what is imported comes first.
func checkSystem(t *testing.T, goos, arch, dir string, checked *int, packages ...string) (found []error) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-e", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Module,Error"}, packages...)...)
	list.Dir, list.Env, list.Stderr = dir, append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch), os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]*types.Package{"unsafe": types.Unsafe}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Error != nil {
			found = append(found, errors.New(p.Error.Err))
		}
		if strings.HasSuffix(p.ImportPath, ".test") || p.ImportPath == "unsafe" { // the main of a test binary is made by go test
			continue
		}
		ours := p.Module != nil && p.Module.Main
		if ours {
			*checked++
		}
		pkg, faults := p.check(known, arch, ours)
		known[p.ImportPath] = pkg
		found = append(found, faults...)
	}
}

// check checks one package.
func (p *listed) check(known map[string]*types.Package, arch string, ours bool) (pkg *types.Package, found []error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			found = append(found, err)
			continue
		}
		files = append(files, f)
	}
	c := types.Config{Importer: importer(func(path string) (*types.Package, error) {
		if mapped, is := p.ImportMap[path]; is {
			path = mapped
		}
		if known[path] == nil {
			return nil, fmt.Errorf("%s is not known", path)
		}
		return known[path], nil
	}), IgnoreFuncBodies: !ours, Sizes: types.SizesFor("gc", arch), Error: func(err error) { found = append(found, err) }}
	if p.Module != nil && p.Module.GoVersion != "" {
		c.GoVersion = "go" + p.Module.GoVersion
	}
	pkg, _ = c.Check(p.ImportPath, fset, files, nil) // errors go to c.Error
	return pkg, found
}

type importer func(path string) (*types.Package, error)

// Import implements types.Importer.
func (f importer) Import(path string) (*types.Package, error) { return f(path) }

// TestSystemsCatches: what compiles here and not there is found, in packages and in their tests.
func TestSystemsCatches(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module x\n\ngo 1.26\n",
		"x.go":      "package x\n\nimport \"syscall\"\n\nfunc f() error { return syscall.Kill(1, 0) }\n",
		"y/y.go":    "package y\n",
		"y_test.go": "package x\n\nimport (\n\t\"syscall\"\n\t\"testing\"\n)\n\nfunc TestX(*testing.T) { _ = syscall.Kill }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for system, want := range map[string]bool{"windows": true, "linux": false} {
		n := 0
		found := fmt.Sprint(checkSystem(t, system, "amd64", dir, &n, "./..."))
		for _, file := range []string{"/x.go:5", "/y_test.go:8"} {
			if strings.Contains(filepath.ToSlash(found), file) != want {
				t.Errorf("%s of %s: %s", file, system, found)
			}
		}
		if n < 3 {
			t.Errorf("%d packages", n)
		}
	}
}
