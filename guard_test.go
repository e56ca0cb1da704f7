package takt_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules of the house that no compiler checks: which package may import which, what pure packages
// must not touch, and who may print or end the process. Each rule is proved by a fixture in
// testdata/guard/<rule> that breaks it and nothing else.

const module = "github.com/taktsched/takt"

// level orders the packages: one imports only packages of a lower level. Adding a package means giving it
// a place here. "." is the SDK.
var level = map[string]int{
	"internal/boottime":              0,
	"internal/filter":                0,
	"internal/ical":                  1,
	"internal/schedule":              0,
	"internal/job":                   1,
	"internal/engine":                2,
	"internal/store":                 3,
	"internal/store/sqlite":          4,
	"internal/store/postgres":        4,
	"internal/store/storetest":       5,
	"internal/store/postgres/pgtest": 5,
	"internal/control":               6,
	"internal/partition":             5,
	"internal/peer":                  6,
	".":                              6,
	"internal/jobfile":               7,
	"internal/api":                   8,
	"internal/app":                   9,
	"internal/agent":                 8,
	"internal/drill":                 10,
	"internal/drill/pg":              11,
	"internal/demo":                  10,
	"cmd/takt":                       11,
	"examples/goworker":              11,
	"internal/bench":                 10,
}

// only lists packages with a closed list of imports from this module; std is all else they may import.
var only = map[string][]string{
	".":                 {"internal/boottime"},
	"internal/boottime": {},
	"internal/schedule": {},
	"internal/filter":   {},
	"internal/ical":     {"internal/schedule"},
	"internal/job":      {"internal/schedule"},
	"internal/engine":   {"internal/job", "internal/schedule"},
}

// sdkUsers may import the root package: the types of the API stop there.
var sdkUsers = []string{"internal/agent", "internal/api", "internal/jobfile", "internal/demo", "internal/bench", "internal/drill", "cmd/takt", "examples/goworker"}

// pure packages decide; they do not act.
var pure = []string{"internal/schedule", "internal/filter", "internal/ical", "internal/job", "internal/engine"}

var (
	// clockReads are what package time offers beyond arithmetic.
	clockReads = []string{"Now", "Since", "Until", "After", "NewTimer", "NewTicker", "Sleep", "Tick", "AfterFunc"}
	// actions are imports by which a pure package would do something or draw random bits.
	actions = []string{"math/rand", "math/rand/v2", "crypto/rand", "os", "os/exec", "net", "net/http", "io/fs", "database/sql",
		"log", "log/slog", "syscall", "sync", "sync/atomic"}
	// excused are uses that change no answer.
	excused = map[string][]string{"internal/schedule": {"sync"}} // a cache of loaded time zones
)

// source is one parsed file that is not a test.
type source struct {
	dir     string // of the package below the module's root, with slashes
	file    *ast.File
	imports map[string]string // import path by the name under which the file knows it
}

// violation is a broken rule and where.
type violation struct {
	rule, where, what string
}

// rules look at one file each and call report for what they find.
var rules = map[string]func(s *source, report func(at ast.Node, format string, args ...any)){
	"direction": checkDirection,
	"sdk":       checkSDK,
	"closed":    checkClosed,
	"action":    checkActions,
	"clock":     checkClock,
	"goroutine": checkGoroutine,
	"print":     checkPrint,
	"exit":      checkExit,
}

func TestHouseRules(t *testing.T) {
	t.Parallel()
	found, packages := inspect(t, ".")
	for _, v := range found {
		t.Errorf("%s: %s (rule %s)", v.where, v.what, v.rule)
	}
	if len(packages) < 10 {
		t.Errorf("only %d packages looked at: %v", len(packages), packages)
	}
}

// A guard that finds nothing may be blind: every rule must catch its fixture, and only that.
func TestHouseRulesCatch(t *testing.T) {
	t.Parallel()
	for rule := range rules {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			found, _ := inspect(t, filepath.Join("testdata", "guard", rule))
			want := expected(t, filepath.Join("testdata", "guard", rule))
			var got []string
			for _, v := range found {
				if v.rule != rule {
					t.Errorf("%s: %s (rule %s)", v.where, v.what, v.rule)
				}
				got = append(got, v.where)
			}
			if slices.Sort(got); len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("caught %v, want %v", got, want)
			}
		})
	}
}

// expected lists the lines of a fixture that end with "// want".
func expected(t *testing.T, root string) []string {
	t.Helper()
	var want []string
	walkGo(t, root, func(name, rel string) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasSuffix(strings.TrimSpace(line), "// want") {
				want = append(want, fmt.Sprintf("%s:%d", rel, i+1))
			}
		}
	})
	slices.Sort(want)
	return want
}

// otherModule tells whether a directory is a module of its own, such as tools and bench.
func otherModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// walkGo visits the Go files below root with their paths below it. Fixtures and other modules are left out.
func walkGo(t *testing.T, root string, visit func(name, rel string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (d.Name() == "testdata" || otherModule(name) || strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		visit(name, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// inspect holds every file below root that is not a test against every rule.
func inspect(t *testing.T, root string) (found []violation, packages []string) {
	t.Helper()
	files := token.NewFileSet()
	walkGo(t, root, func(name, rel string) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		parsed, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		s := &source{dir: path.Dir(rel), file: parsed, imports: map[string]string{}}
		for _, i := range parsed.Imports {
			s.imports[importName(i)] = importPath(i)
		}
		for rule, check := range rules {
			check(s, func(at ast.Node, format string, args ...any) {
				where := fmt.Sprintf("%s:%d", rel, files.Position(at.Pos()).Line)
				found = append(found, violation{rule, where, fmt.Sprintf(format, args...)})
			})
		}
		if !slices.Contains(packages, s.dir) {
			packages = append(packages, s.dir)
		}
	})
	return found, packages
}

func importPath(i *ast.ImportSpec) string {
	p, err := strconv.Unquote(i.Path.Value)
	if err != nil {
		return i.Path.Value // not reached: the parser has read it
	}
	return p
}

func importName(i *ast.ImportSpec) string {
	if i.Name != nil && i.Name.Name != "_" {
		return i.Name.Name
	}
	return strings.TrimSuffix(importPath(i), "/v2")[strings.LastIndex(strings.TrimSuffix(importPath(i), "/v2"), "/")+1:]
}

// ours is the directory of an import of this module.
func ours(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func checkDirection(s *source, report func(ast.Node, string, ...any)) {
	mine, known := level[s.dir]
	if !known {
		report(s.file.Name, "package %s has no level in guard_test.go", s.dir)
		return
	}
	for _, i := range s.file.Imports {
		if to, ok := ours(importPath(i)); ok && level[to] >= mine {
			report(i, "%s (level %d) must not import %s (level %d): arrows point down", s.dir, mine, to, level[to])
		}
	}
}

func checkSDK(s *source, report func(ast.Node, string, ...any)) {
	for _, i := range s.file.Imports {
		if importPath(i) == module && !slices.Contains(sdkUsers, s.dir) {
			report(i, "%s must not import the SDK: types of the API stop in %v", s.dir, sdkUsers)
		}
	}
}

func checkClosed(s *source, report func(ast.Node, string, ...any)) {
	allowed, closed := only[s.dir]
	if !closed {
		return
	}
	for _, i := range s.file.Imports {
		p := importPath(i)
		to, our := ours(p)
		foreign := strings.Contains(strings.Split(p, "/")[0], ".")
		if our && !slices.Contains(allowed, to) && level[to] < level[s.dir] || !our && foreign {
			report(i, "%s may import the standard library and %v only, not %s", s.dir, allowed, p)
		}
	}
}

func checkActions(s *source, report func(ast.Node, string, ...any)) {
	if !slices.Contains(pure, s.dir) {
		return
	}
	for _, i := range s.file.Imports {
		if p := importPath(i); slices.Contains(actions, p) && !slices.Contains(excused[s.dir], p) || i.Name != nil && i.Name.Name == "." {
			report(i, "%s is pure: it must not import %s", s.dir, p)
		}
	}
}

// uses calls found for each use of package pkg in the file.
func (s *source) uses(pkg string, found func(at ast.Node, name string)) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && s.imports[x.Name] == pkg {
				found(sel, sel.Sel.Name)
			}
		}
		return true
	})
}

func checkClock(s *source, report func(ast.Node, string, ...any)) {
	if !slices.Contains(pure, s.dir) {
		return
	}
	s.uses("time", func(at ast.Node, name string) {
		if slices.Contains(clockReads, name) {
			report(at, "%s is pure: time.%s is a clock; take the instant as an argument", s.dir, name)
		}
	})
}

func checkGoroutine(s *source, report func(ast.Node, string, ...any)) {
	if !slices.Contains(pure, s.dir) {
		return
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n, "%s is pure: it starts no goroutine", s.dir)
		case *ast.SelectStmt:
			report(n, "%s is pure: it waits for no channel", s.dir)
		}
		return true
	})
}

func inCommand(s *source) bool {
	return strings.HasPrefix(s.dir, "cmd/") || strings.HasPrefix(s.dir, "examples/")
}

func checkPrint(s *source, report func(ast.Node, string, ...any)) {
	if inCommand(s) {
		return
	}
	s.uses("fmt", func(at ast.Node, name string) {
		if strings.HasPrefix(name, "Print") {
			report(at, "fmt.%s prints: write to an io.Writer you are given, or log with slog", name)
		}
	})
	s.uses("os", func(at ast.Node, name string) {
		if name == "Stdout" || name == "Stderr" {
			report(at, "os.%s belongs to cmd: take an io.Writer", name)
		}
	})
	s.uses("log", func(at ast.Node, name string) {
		if strings.HasPrefix(name, "Print") {
			report(at, "log.%s prints: log with slog", name)
		}
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.Ident); ok && (f.Name == "println" || f.Name == "print") {
				report(call, "%s prints to stderr", f.Name)
			}
		}
		return true
	})
}

func checkExit(s *source, report func(ast.Node, string, ...any)) {
	if inCommand(s) {
		return
	}
	s.uses("os", func(at ast.Node, name string) {
		if name == "Exit" {
			report(at, "os.Exit belongs to cmd: return an error")
		}
	})
	s.uses("log", func(at ast.Node, name string) {
		if strings.HasPrefix(name, "Fatal") || strings.HasPrefix(name, "Panic") {
			report(at, "log.%s ends the process: return an error", name)
		}
	})
}
