package partition

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// Of is the partition of a pool among n: every server computes the same.
func Of(namespace, pool string, n int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(namespace + "\x00" + pool))
	return int(h.Sum64() % uint64(n))
}

// Reply is what a call to an owner brought, with the epoch under which it was decided.
type Reply struct {
	Value any // see engine.Answer
	Epoch job.Epoch
}

// Owners is what the rest of a server knows of partitions: calls to their owner and hints to it.
// *Node implements it; api and control take the interface.
type Owners interface {
	// Count is the fixed number of partitions.
	Count() int
	// Call hands a call (SessionOpen, Poll, Heartbeat, Report, SessionClose or Inspect; Reply is drawn
	// here) to the partition's owner and waits for its answer. seen is the highest epoch that the caller
	// has met (0: none): an owner with a lower one answers no_owner and drops its engine (R6), but each 10 s at most. An *job.Error answer is
	// returned as the error. KindNoOwner when nobody here may answer: nothing was sent or acknowledged.
	Call(ctx context.Context, partition int, seen job.Epoch, ev engine.Event) (Reply, error)
	// Wake hints that the partition's inbox has something. May be lost.
	Wake(partition int)
	// Hand is Wake for who has just written entries, and knows what a page of the inbox with this Seq would tell of them (see
	// store.Trigger): an owner here that knows of nothing before them does not read them.
	Hand(partition int, p engine.InboxPage)
	// Expect says that entries are being written that will be handed over, so that an owner here waits for them a moment with what else
	// it has to commit. done, called behind Hand, ends that.
	Expect(partition int) (done func())
	// AwaitEntry waits until the owner has consumed an inbox entry; false when ctx ended first.
	AwaitEntry(ctx context.Context, partition int, entry int64) bool
	// Stats of every partition owned here.
	Stats() []Stats
}

// Stats is what a runner counts, since the process started, over all its engines.
type Stats struct {
	Partition  int
	Owned      bool
	Epoch      job.Epoch
	Seq        int64
	Steps      int64
	Events     int64
	Commits    int64
	CommitErr  int64
	Engines    int64 // engines made: 1, and one more after every failed or unknown commit
	Poisoned   int64
	CommitP99  time.Duration // of the newest 1,000
	PlanBehind time.Duration // how long ago the oldest instant was due that is not decided; 0: there is none, or it is not known yet
	Executions Executions
	engine.Counters
}
