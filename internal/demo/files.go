package demo

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Entry is what the index holds of one file.
type Entry struct {
	Path   string `json:"path"` // Name of the path relative to the directory, with slashes
	Size   int64  `json:"size"`
	Lines  int64  `json:"lines"`
	SHA256 string `json:"sha256"`
	Error  string `json:"error,omitempty"` // why the file could not be read; then the rest is zero
}

// Name is a path as JSON can carry it: bytes that are no UTF-8 are escaped.
func Name(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	quoted := strconv.Quote(path)
	return quoted[1 : len(quoted)-1]
}

// Stamp identifies the state of the files below dir by names, sizes and times of change, so that a run
// over a directory in which somebody writes can be told from one that lost something.
func Stamp(ctx context.Context, dir string) (string, error) {
	paths, err := Walk(ctx, dir)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, p := range paths {
		size, changed := int64(-1), int64(0)
		if info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(p))); err == nil {
			size, changed = info.Size(), info.ModTime().UnixNano()
		}
		_, _ = fmt.Fprintf(sum, "%q %d %d\n", p, size, changed)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Walk lists the regular files below dir, sorted by name. Links are not followed; what may not be entered is
// left out. It stops with the cause when ctx ends.
func Walk(ctx context.Context, dir string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if path == dir {
				return err
			}
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		paths = append(paths, filepath.ToSlash(rel))
		return nil
	})
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(Name(a), Name(b)) })
	return paths, err
}

// ShardOf is the shard of a path among n: a stable hash, the same in every process.
func ShardOf(path string, n int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(path))
	return int(h.Sum64() % uint64(n))
}

// PathsOf picks the paths of one shard; their order is kept.
func PathsOf(paths []string, shard, n int) []string {
	var own []string
	for _, p := range paths {
		if ShardOf(p, n) == shard {
			own = append(own, p)
		}
	}
	return own
}

// Describe reads one file. A file that cannot be read is described by its error.
func Describe(dir, path string) Entry {
	e := Entry{Path: Name(path)}
	size, lines, sum, err := measure(filepath.Join(dir, filepath.FromSlash(path)))
	if err != nil {
		e.Error = "unreadable"
		if cause := errors.Unwrap(err); cause != nil {
			e.Error = cause.Error()
		}
		return e
	}
	e.Size, e.Lines, e.SHA256 = size, lines, sum
	return e
}

// measure counts bytes and lines (a last one without a line feed counts too) and hashes the content.
func measure(name string) (size, lines int64, sum string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, 0, "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	hash := sha256.New()
	r := bufio.NewReaderSize(f, 64<<10)
	var last byte = '\n'
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			_, _ = hash.Write(buf[:n])
			size += int64(n)
			lines += int64(bytes.Count(buf[:n], []byte{'\n'}))
			last = buf[n-1]
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, "", err
		}
	}
	if last != '\n' {
		lines++
	}
	return size, lines, hex.EncodeToString(hash.Sum(nil)), nil
}
