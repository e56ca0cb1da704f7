// Command goworker is a worker with one sharded handler: it counts the lines of the files of a directory, each
// shard those whose names fall to it.
//
//	TAKT_SERVER=http://127.0.0.1:7070 go run ./examples/goworker
package main

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/taktsched/takt"
)

func main() {
	if err := run(); err != nil {
		slog.Error("the worker ended", "err", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	w, err := takt.NewWorker(takt.WorkerConfig{Server: os.Getenv("TAKT_SERVER"), Pool: "goworker", Slots: 2, Token: os.Getenv("TAKT_TOKEN")})
	if err != nil {
		return err
	}
	w.Handle("lines", lines)
	return w.Run(ctx)
}

// progress is the checkpoint: the file that was counted last, and the sum so far.
type progress struct {
	After string `json:"after"`
	Lines int    `json:"lines"`
}

func lines(ctx context.Context, t *takt.Task) error {
	var params struct {
		Dir string `json:"dir"`
	}
	if err := t.BindParams(&params); err != nil {
		return takt.Fatal(err) // trying again would not help
	}
	var done progress
	if _, err := t.LastCheckpoint(&done); err != nil {
		return takt.Fatal(err)
	}
	files, err := filesBelow(params.Dir, t)
	if err != nil {
		return fmt.Errorf("look for files: %w", err)
	}
	for _, path := range files {
		if path <= done.After {
			continue // counted by an earlier attempt
		}
		if ctx.Err() != nil { // the lease is lost, it is cancelled, or the worker stops
			return context.Cause(ctx)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("count lines: %w", err)
		}
		done = progress{After: path, Lines: done.Lines + bytes.Count(text, []byte("\n"))}
		if err := t.Checkpoint(ctx, done); err != nil { // durable when it returns
			return err
		}
	}
	t.Log().Info("counted", "lines", done.Lines)
	return t.SetResult(done.Lines)
}

// filesBelow are the files that fall to this shard, in order.
func filesBelow(dir string, t *takt.Task) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && mine(path, t) {
			files = append(files, path)
		}
		return err
	})
	slices.Sort(files)
	return files, err
}

// mine tells whether a file falls to this shard.
func mine(path string, t *takt.Task) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(path)) // never fails
	return int(h.Sum32()%uint32(t.ShardTotal())) == t.Shard()
}
