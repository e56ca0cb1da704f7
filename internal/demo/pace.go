package demo

import (
	"fmt"
	"time"
)

const (
	leastShard  = 25 * time.Second // that a shard takes, undisturbed
	wantedShard = 55 * time.Second // when the rate is ours to choose
	leastFiles  = 20               // of the smallest shard: enough for batches before and after the kill
	batchEach   = time.Second      // wanted from batch to batch
	mostBatch   = 500              // files of a batch, so that it stays below the sink's limit
)

// pace is how fast a handler goes through its shard.
type pace struct {
	batch int
	pause time.Duration
	takes time.Duration // of the largest shard, undisturbed
}

// BadPlan says that the demo cannot be run on these files.
type BadPlan struct {
	Message string
	Hint    string
}

// Error is the message.
func (e *BadPlan) Error() string { return e.Message }

// paceFor chooses batches so that each shard takes at least leastShard. rate is in files per second and
// shard; 0 leaves it to us.
func paceFor(paths []string, shards int, rate float64) (pace, error) {
	sizes := make([]int, shards)
	for _, p := range paths {
		sizes[ShardOf(p, shards)]++
	}
	smallest, largest := sizes[0], sizes[0]
	for _, n := range sizes {
		smallest, largest = min(smallest, n), max(largest, n)
	}
	if smallest < leastFiles {
		return pace{}, &BadPlan{
			Message: fmt.Sprintf("the directory holds %d files, and the smallest of %d shards only %d: at least %d are needed", len(paths), shards, smallest, leastFiles),
			Hint:    "--dir names a larger directory"}
	}
	if rate == 0 {
		rate = float64(smallest) / wantedShard.Seconds()
	}
	if takes := float64(smallest) / rate; takes < leastShard.Seconds() {
		return pace{}, &BadPlan{
			Message: fmt.Sprintf("at %g files per second the smallest shard takes %.1f s, and %v are needed for a kill and a freeze in the middle", rate, takes, leastShard),
			Hint:    fmt.Sprintf("--rate may be at most %.4g for this directory; without it a good one is chosen", float64(smallest)/leastShard.Seconds())}
	}
	batch := min(max(int(rate*batchEach.Seconds()+0.5), 1), mostBatch)
	pause := time.Duration(float64(batch) / rate * float64(time.Second))
	return pace{batch: batch, pause: pause, takes: time.Duration(largest/batch+1) * pause}, nil
}
