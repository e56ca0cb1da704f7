package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"time"

	"github.com/taktsched/takt"
)

// Params are the parameters of the demo's job.
type Params struct {
	Dir     string `json:"dir"`
	Sink    string `json:"sink"`    // address that takes batches
	Batch   int    `json:"batch"`   // files of one batch
	PauseMs int64  `json:"pauseMs"` // from one batch to the next
}

// progress is the checkpoint: the last of the shard's sorted names that is done, not its place in a list
// that the next attempt makes anew.
type progress struct {
	After string `json:"after"`
}

// rest is what is still to do.
func (p progress) rest(paths []string) []string {
	return paths[sort.Search(len(paths), func(i int) bool { return Name(paths[i]) > p.After }):]
}

// indexer holds what the handler needs besides its task.
type indexer struct {
	worker string
	client *http.Client
}

// run is the handler: it describes the files of its shard, batch by batch, and saves a checkpoint after
// each. A batch goes to the sink first: if the worker dies between the two, the next attempt sends the
// batch again and the sink swallows it.
func (x *indexer) run(ctx context.Context, t *takt.Task) error {
	var p Params
	if err := t.BindParams(&p); err != nil {
		return err
	}
	all, err := Walk(ctx, p.Dir)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return takt.Fatal(err)
	}
	paths := PathsOf(all, t.Shard(), t.ShardTotal())
	var at progress
	if _, err := t.LastCheckpoint(&at); err != nil {
		return takt.Fatal(err)
	}
	for left := at.rest(paths); len(left) > 0; left = at.rest(paths) {
		next := time.NewTimer(time.Duration(p.PauseMs) * time.Millisecond)
		batch := left[:min(max(p.Batch, 1), len(left))]
		if err := x.send(t, p, batch); err != nil {
			return err
		}
		at.After, left = Name(batch[len(batch)-1]), left[len(batch):]
		err := t.Checkpoint(ctx, at)
		if err == nil {
			err = t.Progress(int64(len(paths)-len(left)), int64(len(paths)), "")
		}
		if err == nil {
			select {
			case <-next.C:
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		if errors.Is(err, takt.ErrLeaseLost) && len(left) > 0 {
			return x.oneMore(t, p, left[:min(max(p.Batch, 1), len(left))], err)
		}
		return err
	}
	return t.SetResult(map[string]int{"files": len(paths)})
}

// oneMore is what a handler must not do: it has been told that its lease is lost and writes nevertheless.
// The demo shows that the token stops it.
func (x *indexer) oneMore(t *takt.Task, p Params, batch []string, lost error) error {
	return errors.Join(lost, x.send(t, p, batch))
}

// send describes files and brings them to the sink. It looks at no context: that is the point.
func (x *indexer) send(t *takt.Task, p Params, paths []string) error {
	b := Batch{Shard: t.Shard(), Worker: x.worker, Key: t.Key(), Token: t.Token()}
	for _, path := range paths {
		b.Files = append(b.Files, Describe(p.Dir, path))
	}
	body, err := json.Marshal(b)
	if err != nil {
		return takt.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, p.Sink, bytes.NewReader(body))
	if err != nil {
		return takt.Fatal(fmt.Errorf("the sink's address: %w", err))
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := x.client.Do(req)
	if err != nil {
		return fmt.Errorf("send a batch to the sink: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end or given up
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return fmt.Errorf("read the sink's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the sink refused a batch of shard %d with token %d: %s: %s", b.Shard, b.Token, resp.Status, bytes.TrimSpace(answer))
	}
	return nil
}
