package demo_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/demo"
)

// tree writes files below a new directory.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEveryPathIsInExactlyOneShard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.SliceOfDistinct(rapid.String(), func(s string) string { return s }).Draw(t, "paths")
		n := rapid.IntRange(1, 64).Draw(t, "shards")
		slices.Sort(paths)
		var all []string
		for shard := range n {
			own := demo.PathsOf(paths, shard, n)
			if !slices.IsSorted(own) {
				t.Fatalf("shard %d is not sorted: %q", shard, own)
			}
			all = append(all, own...)
		}
		slices.Sort(all)
		if !slices.Equal(all, paths) {
			t.Fatalf("the shards together hold %q, want %q", all, paths)
		}
	})
}

// The hash is part of what a checkpoint means: another process, or another build, must cut alike.
func TestShardOfIsStable(t *testing.T) {
	for path, want := range map[string]int{"": 5, "a": 4, "net/http/server.go": 3, "目录/文件.go": 5} {
		if got := demo.ShardOf(path, 8); got != want {
			t.Errorf("ShardOf(%q, 8) = %d, want %d", path, got, want)
		}
	}
}

func TestWalkListsRegularFilesSorted(t *testing.T) {
	dir := tree(t, map[string]string{"b/z.go": "", "b/a.go": "", "a.txt": "", "b-c": ""})
	if err := os.Symlink(filepath.Join(dir, "a.txt"), filepath.Join(dir, "link")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	got, err := demo.Walk(t.Context(), dir)
	if want := []string{"a.txt", "b-c", "b/a.go", "b/z.go"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := demo.Walk(t.Context(), filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is not there is no error")
	}
}

func TestDescribe(t *testing.T) {
	dir := tree(t, map[string]string{"empty": "", "lines": "a\nb\n", "open": "a\nb"})
	const (
		nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
		lines   = "911169ddaaf146aff539f58c26c489af3b892dff0fe283c1c264c65ae5aa59a2"
	)
	for _, c := range []struct {
		path        string
		size, lines int64
		sum         string
	}{{"empty", 0, 0, nothing}, {"lines", 4, 2, lines}, {"open", 3, 2, ""}} {
		got := demo.Describe(dir, c.path)
		if got.Size != c.size || got.Lines != c.lines || c.sum != "" && got.SHA256 != c.sum {
			t.Errorf("%s: %+v", c.path, got)
		}
	}
	if got := demo.Describe(dir, "gone"); got.Error == "" || got.SHA256 != "" {
		t.Errorf("a file that is not there: %+v", got)
	}
}
