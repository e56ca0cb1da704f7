package store_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Blocks against a map: what is written to shards of an execution is what is read, a write from another state is refused,
// and what has much to say moves out for good.
func TestBlocksAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := job.ExecutionID{1}
		const total = 2*store.BlockShards + 5
		stored, apart := map[int][]byte{}, map[int]bool{}
		twin := map[int]job.Shard{}
		states := []job.ShardState{job.ShardQueued, job.ShardLeased, job.ShardRunning, job.ShardSucceeded}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				b := engine.Batch{Level: engine.Level}
				var writes []*engine.ShardWrite
				for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, total-1), 1, 20, rapid.ID[int]).Draw(t, "indexes") {
					s := job.Shard{Execution: id, Index: i, State: rapid.SampledFrom(states).Draw(t, "state"), Token: job.Token(rapid.Int64Range(0, 9).Draw(t, "token"))}
					if rapid.IntRange(0, 20).Draw(t, "large") == 0 {
						s.Checkpoint = json.RawMessage(`"` + strings.Repeat("x", 2000) + `"`)
					}
					writes = append(writes, &engine.ShardWrite{From: twin[i].State, Row: s})
				}
				for _, w := range store.BlockWrites(&b, writes) {
					var block store.Block
					if old := stored[w.Block]; old != nil {
						var err error
						if block, err = store.ReadBlock(old); err != nil {
							t.Fatal(err)
						}
					}
					own, refused := w.Apply(&block, false)
					if refused != nil {
						t.Fatalf("shard %d was refused", refused.Row.Index)
					}
					for _, o := range own {
						if fresh := o.From == ""; fresh == apart[o.Row.Index] {
							t.Fatalf("shard %d in a row of its own: inserted %v, though it was there %v", o.Row.Index, fresh, apart[o.Row.Index])
						}
						apart[o.Row.Index] = true
					}
					stored[w.Block] = block.Append(nil)
				}
				for _, w := range writes {
					twin[w.Row.Index] = w.Row
				}
			},
			"refuse": func(t *rapid.T) {
				i := rapid.IntRange(0, total-1).Draw(t, "index")
				from := rapid.SampledFrom(append(states, "")).Draw(t, "from")
				if from == twin[i].State || apart[i] {
					return
				}
				w := store.BlockWrites(&engine.Batch{}, []*engine.ShardWrite{{From: from, Row: job.Shard{Execution: id, Index: i, State: job.ShardQueued}}})[0]
				var block store.Block
				if old := stored[w.Block]; old != nil {
					block, _ = store.ReadBlock(old)
				}
				if _, refused := w.Apply(&block, false); refused == nil {
					t.Fatalf("shard %d is %q and was written from %q", i, twin[i].State, from)
				}
			},
			"": func(t *rapid.T) {
				for n := range total / 7 { // some of them
					i := (n*7 + len(twin)) % total
					got, is := store.PackedShard(id, i, stored[store.InBlock(i)])
					if want, there := twin[i]; is != (there && !apart[i]) || is && !reflect.DeepEqual(got, want) {
						t.Fatalf("shard %d: %+v, %v; want %+v, %v", i, got, is, want, there)
					}
				}
			},
		})
	})
}

// Whatever a block holds, reading it ends, with shards of its own only.
func TestBlocksThatAreBroken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "block")
		if rapid.Bool().Draw(t, "of the form") {
			stored = append([]byte{1}, stored...)
		}
		key := store.BlockKey(3)
		for _, s := range store.PackedShards(nil, job.ExecutionID{1}, key, stored, 0) {
			if store.InBlock(s.Index) != 3 {
				t.Fatalf("shard %d", s.Index)
			}
		}
	})
}
