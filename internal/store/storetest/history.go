package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// partitions of a random history.
const partitions = 2

// history puts one random operation after the other to an adapter and to the twin.
type history struct {
	tb     TB
	rng    *rand.Rand
	seed   uint64
	step   int
	real   store.Store
	twin   *twin
	clock  job.Instant
	number uint64                   // of ids made
	seen   []store.PartitionRow     // rows as they were once
	sent   []sentBatch              // commits that went through
	known  []job.ExecutionID        // all that were ever named
	bulk   map[job.ExecutionID]bool // whose triggers may lie in one row with others: no engine forwards them
}

type sentBatch struct {
	fence store.Fence
	batch *engine.Batch
}

// runHistory is one seed. The whole readable state is compared in the middle and at the end, parts of it all the time.
func runHistory(tb TB, harness Harness, seed uint64, operations int) {
	tb.Helper()
	h := &history{tb: tb, rng: rand.New(rand.NewPCG(seed, 17)), seed: seed, clock: 1_800_000_000_000, bulk: map[job.ExecutionID]bool{}, real: harness.Open(tb, partitions)}
	defer closeStore(tb, h.real)
	h.twin = newTwin(partitions, lineageOf(tb, h.real))
	for h.step = 1; h.step <= operations; h.step++ {
		h.operation()()
		if h.step%max(operations/2, 1) == 0 {
			h.compareAll()
		}
	}
}

// operation draws one, by weight.
func (h *history) operation() func() {
	switch n := h.rng.IntN(100); {
	case n < 8:
		return h.acquire
	case n < 13:
		return h.renew
	case n < 14:
		return h.release
	case n < 15:
		if h.rng.IntN(2) == 0 {
			return h.raiseFloor
		}
		return h.settle
	case n < 24:
		return h.putJob
	case n < 29:
		return h.trigger
	case n < 32:
		return h.triggers
	case n < 34:
		return h.triggerLost
	case n < 42:
		return h.ask
	case n < 44:
		return h.sweep
	case n < 62:
		return h.commit
	case n < 71:
		return h.badCommit
	case n < 75:
		return h.replay
	case n < 78:
		return h.unknown
	case n < 80:
		return h.deleteJob
	case n < 83:
		return h.pauseJob
	case n < 87:
		return h.applyJobs
	case n < 89:
		return h.readRevisions
	case n < 91:
		return h.changeCalendars
	default:
		return h.read
	}
}

func (h *history) failf(op, format string, args ...any) {
	h.tb.Helper()
	h.tb.Fatalf("seed %d, operation %d, %s: %s", h.seed, h.step, op, fmt.Sprintf(format, args...))
}

// verdict is what callers tell errors apart by.
func verdict(err error) string {
	if err == nil {
		return "ok"
	}
	if e, ok := errors.AsType[*job.Error](err); ok {
		return string(e.Kind) + "/" + e.Code
	}
	return "not of the contract: " + err.Error()
}

// both asks the adapter and the twin and compares results and errors. f must not draw.
func both[T any](h *history, op string, f func(store.Store) (T, error)) (T, error) {
	h.tb.Helper()
	got, gotErr := f(h.real)
	h.learnEntry(op, got)
	want, wantErr := f(h.twin)
	if verdict(gotErr) != verdict(wantErr) {
		h.failf(op, "answered %s (%v), should be %s", verdict(gotErr), gotErr, verdict(wantErr))
	}
	if !reflect.DeepEqual(got, want) {
		h.failf(op, "wrong answer (- expected, + got):\n%s", cmp.Diff(want, got, cmp.AllowUnexported(putAnswer{}, pauseAnswer{})))
	}
	return want, wantErr
}

// learnEntry gives the twin the adapter's number for the next inbox entry: they rise, but may leave gaps.
func (h *history) learnEntry(op string, answer any) {
	var w store.Written
	switch a := answer.(type) {
	case store.Written:
		w = a
	case store.Triggered:
		if a.Repeated {
			return
		}
		w = a.Written
	case []store.Triggered: // their entries follow each other, but for repeats
		for i := 0; i < len(a) && w.Entry == 0; i++ {
			if !a[i].Repeated {
				w = a[i].Written
			}
		}
	case putAnswer:
		w = a.written
	case pauseAnswer:
		w = a.written
	case store.DeletedJob:
		w = a.Written
	case store.AppliedSet: // their entries follow each other
		for i := 0; i < len(a.Calendars) && w.Entry == 0; i++ {
			for _, last := range a.Calendars[i].Written {
				w.Entry = max(w.Entry, last.Entry-int64(a.Calendars[i].Jobs)+1)
			}
		}
		for i := 0; i < len(a.Jobs) && w.Entry == 0; i++ {
			w = a.Jobs[i].Written
		}
	}
	if w.Entry == 0 {
		return
	}
	if w.Entry <= h.twin.lastEntry {
		h.failf(op, "entry %d is not above %d", w.Entry, h.twin.lastEntry)
	}
	h.twin.lastEntry = w.Entry - 1
}

// none is the answer of operations that only succeed or fail.
type none struct{}

func (h *history) acquire() {
	seen := h.twin.parts[h.rng.IntN(partitions)]
	if len(h.seen) > 0 && h.rng.IntN(4) == 0 {
		seen = pick(h, h.seen)
	}
	owner, clock, level := pick(h, []string{"first", "second", "third"}), h.rng.Int64N(1<<20), engine.Level
	if h.rng.IntN(4) == 0 {
		level = h.rng.IntN(engine.Level)
	}
	row, err := both(h, "AcquirePartition", func(s store.Store) (store.PartitionRow, error) {
		return s.AcquirePartition(ctx, seen, owner, clock, level)
	})
	if err == nil {
		h.seen = append(h.seen, row)
	}
}

// anyFence is the newest of a partition, or an old one.
func (h *history) anyFence() store.Fence {
	if len(h.seen) > 0 && h.rng.IntN(3) == 0 {
		return pick(h, h.seen).Fence
	}
	return h.twin.parts[h.rng.IntN(partitions)].Fence
}

func (h *history) renew() {
	f := h.anyFence()
	_, _ = both(h, "RenewPartition", func(s store.Store) (int64, error) { return s.RenewPartition(ctx, f) })
}

func (h *history) release() {
	f := h.anyFence()
	_, _ = both(h, "ReleasePartition", func(s store.Store) (none, error) { return none{}, s.ReleasePartition(ctx, f) })
}

func (h *history) raiseFloor() {
	level := h.rng.IntN(engine.Level + 1)
	_, _ = both(h, "RaiseFloor", func(s store.Store) (int, error) { return s.RaiseFloor(ctx, level) })
}

func (h *history) settle() {
	f, lineage := h.anyFence(), fmt.Sprint("lineage ", h.rng.IntN(3))
	_, _ = both(h, "SettlePartition", func(s store.Store) (none, error) { return none{}, s.SettlePartition(ctx, f, lineage) })
}

// ownedPartition draws a partition; one without an owner gets one.
func (h *history) ownedPartition() int {
	p := h.rng.IntN(partitions)
	if seen := h.twin.parts[p]; seen.Owner == "" {
		_, _ = both(h, "AcquirePartition", func(s store.Store) (store.PartitionRow, error) {
			return s.AcquirePartition(ctx, seen, "first", 0, engine.Level)
		})
	}
	return p
}

func (h *history) putCommit(op string, f store.Fence, b *engine.Batch) error {
	_, err := both(h, op, func(s store.Store) (none, error) { return none{}, s.Commit(ctx, f, b) })
	if err == nil {
		h.learnTold(op)
		h.sent = append(h.sent, sentBatch{f, b})
		for _, e := range b.Executions {
			if e.From == "" {
				h.known = append(h.known, e.Row.ID)
			}
		}
	}
	return err
}

func (h *history) commit() {
	p := h.ownedPartition()
	if err := h.putCommit("Commit", h.twin.parts[p].Fence, h.batch(p)); err != nil {
		h.failf("Commit", "a batch built from the twin's own state: %v", err)
	}
}

// badCommit spoils one thing of a good batch. Nothing of it may be written.
func (h *history) badCommit() {
	p := h.ownedPartition()
	f, b := h.twin.parts[p].Fence, h.batch(p)
	op := pick(h, []string{"old epoch", "next epoch", "other owner", "seq behind", "seq ahead", "missing entry", "missing forward", "cursor of another", "hand-over of another", "execution guard", "shard guard", "granted twice", "bad text"})
	switch op {
	case "old epoch":
		f.Epoch--
	case "next epoch":
		f.Epoch++
	case "other owner":
		f.Owner += "x"
	case "seq behind":
		b.Seq--
	case "seq ahead":
		b.Seq++
	case "missing entry":
		b.Consumed = append(b.Consumed, h.twin.lastEntry+7)
	case "missing forward":
		b.Forwarded = append(b.Forwarded, engine.Forward{Entry: h.twin.lastEntry + 7, Partition: p})
	case "cursor of another", "hand-over of another":
		jobs := h.plannedBy(1 - p)
		if len(jobs) == 0 {
			return
		}
		if op == "hand-over of another" {
			b.Handovers = append(b.Handovers, engine.Handover{Job: pick(h, jobs).UID, Partition: p})
		} else {
			b.Cursors = append(b.Cursors, job.Cursor{Job: pick(h, jobs).UID, Schedule: pick(h, []string{"main", "fresh"}), Next: h.instant()})
		}
	case "granted twice":
		live := slices.DeleteFunc(ordered(h.twin.live, byID), func(e job.Execution) bool {
			return e.Partition != p || e.ShardTotal != 1 || slices.ContainsFunc(b.Executions, func(w engine.ExecutionWrite) bool { return w.Row.ID == e.ID })
		})
		if len(live) == 0 {
			return
		}
		e := pick(h, live)
		e.State = job.ExecutionRunning
		b.Executions = append(b.Executions, engine.ExecutionWrite{Row: e})
		b.Shards = append(slices.DeleteFunc(b.Shards, func(w engine.ShardWrite) bool { return w.Row.Execution == e.ID }),
			engine.ShardWrite{Row: job.Shard{Execution: e.ID, State: job.ShardLeased}})
	case "bad text":
		b.Sessions = append(b.Sessions, job.Session{ID: "0.bad", Worker: pick(h, []string{"nul\x00", "no utf-8 \xff"})})
	case "execution guard":
		if len(b.Executions) == 0 {
			return
		}
		w := &b.Executions[h.rng.IntN(len(b.Executions))]
		w.From = pick(h, slices.DeleteFunc([]job.ExecutionState{"", job.ExecutionQueued, job.ExecutionRunning, job.ExecutionFailed},
			func(s job.ExecutionState) bool { return s == w.From }))
	case "shard guard":
		if len(b.Shards) == 0 {
			return
		}
		w := &b.Shards[h.rng.IntN(len(b.Shards))]
		w.From = pick(h, slices.DeleteFunc([]job.ShardState{"", job.ShardQueued, job.ShardLeased, job.ShardRunning, job.ShardStopping},
			func(s job.ShardState) bool { return s == w.From }))
	}
	if err := h.putCommit("Commit with "+op, f, b); err == nil {
		h.failf("Commit with "+op, "was not refused")
	}
	if h.rng.IntN(5) == 0 {
		h.comparePartition(p)
	}
}

// replay sends a commit again that went through.
func (h *history) replay() {
	if len(h.sent) == 0 {
		return
	}
	old := pick(h, h.sent)
	if err := h.putCommit("replayed Commit", old.fence, old.batch); err == nil {
		h.failf("replayed Commit", "was not refused")
	}
}

// unknown loses the answer of a commit: it has landed, or it has not, or it lands after its sender has
// given up (R3: acquired the partition again, under a new epoch); the last must be refused.
func (h *history) unknown() {
	p := h.ownedPartition()
	fate := pick(h, []landing{landed, lost, late})
	before := h.twin.parts[p]
	b := h.batch(p)
	faulty := &unsure{Store: h.real, fate: fate}
	if err := faulty.Commit(ctx, before.Fence, b); job.KindOf(err) != job.KindUnknown {
		h.failf("unknown Commit", "the fault itself failed: %v", err)
	}
	rows, err := h.real.PartitionRows(ctx)
	if err != nil {
		h.failf("unknown Commit", "PartitionRows: %v", err)
	}
	switch rows[p].Seq {
	case before.Seq:
	case b.Seq: // it has landed: so must everything of it
		if err := h.twin.Commit(ctx, before.Fence, b); err != nil {
			h.failf("unknown Commit", "the twin: %v", err)
		}
		h.learnTold("unknown Commit")
		h.sent = append(h.sent, sentBatch{before.Fence, b})
		for _, e := range b.Executions {
			h.known = append(h.known, e.Row.ID)
		}
	default:
		h.failf("unknown Commit", "seq is %d, neither %d nor %d", rows[p].Seq, before.Seq, b.Seq)
	}
	h.comparePartition(p)
	seen := h.twin.parts[p]
	if _, err := both(h, "AcquirePartition from oneself", func(s store.Store) (store.PartitionRow, error) {
		return s.AcquirePartition(ctx, seen, seen.Owner, 0, engine.Level)
	}); err != nil {
		h.failf("AcquirePartition from oneself", "%v", err)
	}
	if fate == late {
		if err := faulty.arrive(); job.KindOf(err) != job.KindFenced {
			h.failf("late Commit", "answered %v, should be fenced", err)
		}
		h.comparePartition(p)
	}
}

func pick[T any](h *history, from []T) T { return from[h.rng.IntN(len(from))] }
