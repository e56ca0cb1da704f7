package storetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// putAnswer is what PutJob returns.
type putAnswer struct {
	definition job.Definition
	written    store.Written
}

// someJob is one of ten jobs; its number decides namespace and partition.
func (h *history) someJob() (namespace, name string, partition int) {
	n := h.rng.IntN(10)
	return []string{"a", "b"}[n%2], fmt.Sprintf("job-%d", n/2), n / 2 % partitions
}

func (h *history) putJob() {
	namespace, name, partition := h.someJob()
	h.number++
	p := store.PutJob{
		Definition: job.Definition{
			UID: job.UID(bytes.Repeat([]byte{byte(h.number), byte(h.number >> 8)}, 8)), Namespace: namespace, Name: name,
			Spec: job.Spec{Pool: fmt.Sprintf("pool-%d", partition), Handler: pick(h, []string{"noop", "ünï"}), Params: h.json(),
				Shards: 1 + h.rng.IntN(3), Disabled: h.rng.IntN(3) == 0},
		},
		IfRevision: pick(h, []int64{0, 0, 0, 0, 1, 2, -1}), Partition: partition, At: h.clock,
	}
	if h.rng.IntN(2) == 0 {
		p.Definition.Labels = map[string]string{"team": h.text()}
		p.Definition.Spec.Schedules = []job.Schedule{{ID: "main", Spec: schedule.Spec{Every: time.Duration(1+h.rng.IntN(9)) * time.Second, Calendars: h.someCalendars()}}}
		p.Definition.Spec.Retry = job.Retry{MaxAttempts: 3, Factor: 1.5}
	}
	if h.rng.IntN(4) == 0 {
		p.Definition.Spec.After = h.someAfter()
	}
	switch h.rng.IntN(8) {
	case 0:
		p.Partition = 1 - partition // a pool of another partition: it moves
	case 1, 2, 3: // the same document again
		if row, err := h.twin.Job(ctx, namespace, name); err == nil {
			p.Definition = row.Definition
		}
	}
	_, _ = both(h, "PutJob", func(s store.Store) (putAnswer, error) {
		d, w, err := s.PutJob(ctx, p)
		return putAnswer{d, w}, err
	})
}

// partitionOf is what control passes to Trigger.
func (h *history) partitionOf(d job.Definition) int {
	return h.twin.jobs[jobName{d.Namespace, d.Name}].partition
}

// newTrigger asks for an execution, often with a key, sometimes with one that was used.
func (h *history) newTrigger() store.Trigger {
	namespace, name, _ := h.someJob()
	h.clock++ // keys have different ages, so that a sweep has one order
	t := store.Trigger{Namespace: namespace, Job: name, Execution: h.newID(h.clock),
		Request: engine.Request{At: h.clock, Delayed: h.rng.IntN(3) == 0, Params: h.json()}}
	if h.rng.IntN(2) == 0 {
		key := fmt.Sprintf("key-%d", h.rng.IntN(40))
		t.Key = store.RequestKey{Namespace: namespace, Operation: "trigger/" + name, Key: key, Hash: pick(h, []string{"h", "h", "h", "other"})}
		t.Request.Key = key
	}
	if h.rng.IntN(2) == 0 {
		over := t.Request.Params
		t.Merge = func(d job.Definition) (json.RawMessage, error) {
			return json.RawMessage(fmt.Sprintf(`[%d,%s]`, d.Revision, cmp.Or(string(over), "0"))), nil
		}
	}
	return t
}

func (h *history) trigger() {
	t := h.newTrigger()
	if h.rng.IntN(30) == 0 {
		t.Request.Key = "nul\x00"
	}
	h.known = append(h.known, t.Execution)
	_, _ = both(h, "Trigger", func(s store.Store) (store.Triggered, error) { return s.Trigger(ctx, t, h.partitionOf) })
}

// triggers asks for several at once, sometimes with one that is refused or with a key twice.
func (h *history) triggers() {
	all := make([]store.Trigger, 1+h.rng.IntN(6))
	bulk, alike := h.rng.IntN(2) == 0, h.rng.IntN(2) == 0
	for i := range all {
		all[i] = h.newTrigger()
		if all[i].Bulk = bulk; alike { // so that some lie in one row
			all[i].Job, all[i].Request.Delayed = all[0].Job, all[0].Request.Delayed
			all[i].Request.At, all[i].Namespace = all[0].Request.At, all[0].Namespace
			if i > 0 { // keys are swept by age
				all[i].Key, all[i].Request.Key = store.RequestKey{}, ""
			}
			copy(all[i].Execution[:6], all[0].Execution[:6])
		}
		if h.rng.IntN(30) == 0 {
			all[i].Request.Key = "nul\x00"
		}
		if i > 0 && h.rng.IntN(4) == 0 {
			all[i].Namespace, all[i].Job, all[i].Key, all[i].Request.Key = all[i-1].Namespace, all[i-1].Job, all[i-1].Key, all[i-1].Request.Key
		}
		h.known = append(h.known, all[i].Execution)
		h.bulk[all[i].Execution] = bulk
	}
	_, _ = both(h, "Triggers", func(s store.Store) ([]store.Triggered, error) { return s.Triggers(ctx, all, h.partitionOf) })
}

// triggerLost loses the answer of a keyed trigger and asks again: one execution, one entry.
func (h *history) triggerLost() {
	t := h.newTrigger()
	h.number++
	t.Key = store.RequestKey{Namespace: t.Namespace, Operation: "trigger/" + t.Job, Key: fmt.Sprintf("lost-%d", h.number), Hash: "h"}
	t.Request.Key = t.Key.Key // as whoever writes both does
	first, err := h.real.Trigger(ctx, t, h.partitionOf)
	if err != nil {
		_, _ = both(h, "Trigger", func(s store.Store) (store.Triggered, error) { return s.Trigger(ctx, t, h.partitionOf) })
		return
	}
	h.learnEntry("Trigger", first)
	if _, err := h.twin.Trigger(ctx, t, h.partitionOf); err != nil {
		h.failf("Trigger", "the twin: %v", err)
	}
	h.known = append(h.known, t.Execution)
	again := t
	again.Execution = h.newID(h.clock)
	got, _ := both(h, "Trigger again", func(s store.Store) (store.Triggered, error) { return s.Trigger(ctx, again, h.partitionOf) })
	if !got.Repeated || got.Execution != t.Execution {
		h.failf("Trigger again", "made another execution")
	}
}

func (h *history) ask() {
	if len(h.known) == 0 {
		return
	}
	a := store.Ask{Kind: pick(h, []engine.EntryKind{engine.EntryCancel, engine.EntryRerun, engine.EntryReschedule}), Namespace: pick(h, []string{"a", "b"}),
		Execution: pick(h, h.known), Note: h.text(), At: h.clock}
	h.clock++
	a.Due = h.clock + 20_000 // keys have different ages
	if h.rng.IntN(10) == 0 {
		a.Execution = h.newID(h.clock)
	}
	_, _ = both(h, "Ask", func(s store.Store) (store.Written, error) { return s.Ask(ctx, a) })
}

func (h *history) sweep() {
	before, limit := h.clock-job.Instant(h.rng.IntN(20_000)), 1+h.rng.IntN(20)
	_, _ = both(h, "SweepRequestKeys", func(s store.Store) (int, error) { return s.SweepRequestKeys(ctx, before, limit) })
}

// read draws one of the reads.
func (h *history) read() {
	p := h.rng.IntN(partitions)
	namespace, name, _ := h.someJob()
	limit := 1 + h.rng.IntN(20)
	switch h.rng.IntN(12) {
	case 9:
		h.compareUpstream(p, limit)
	case 0:
		h.compareInbox(p, limit)
	case 1:
		h.compareDue(engine.WantDue{Until: h.instant(), Limit: limit}, p)
	case 2:
		h.compareBacklog(p, limit)
	case 3:
		_, _ = both(h, "Job", func(s store.Store) (store.JobRow, error) { return s.Job(ctx, namespace, name) })
	case 4:
		h.compareExecutions(h.someFilter(namespace, name, limit))
	case 5:
		h.compareDecisions(namespace, pick(h, []string{"", name}), limit)
	case 6:
		entry := h.rng.Int64N(h.twin.lastEntry + 2)
		_, _ = both(h, "EntryPending", func(s store.Store) (bool, error) { return s.EntryPending(ctx, entry) })
	case 7:
		h.compareScheduled(p, h.instant(), limit)
	case 8:
		k := store.RequestKey{Namespace: namespace, Operation: store.TriggerOperation(name), Key: fmt.Sprintf("key-%d", h.rng.IntN(40))}
		_, _ = both(h, "Requested", func(s store.Store) (job.ExecutionID, error) { return s.Requested(ctx, k) })
	default:
		if len(h.known) > 0 {
			id := pick(h, h.known)
			_, _ = both(h, "Execution", func(s store.Store) (job.Execution, error) { return s.Execution(ctx, namespace, id) })
			h.compareShards(namespace, id, limit)
		}
	}
}

func (h *history) someFilter(namespace, name string, limit int) store.ExecutionFilter {
	f := store.ExecutionFilter{Namespace: namespace, Page: store.Page{Limit: limit}}
	if h.rng.IntN(2) == 0 {
		f.Job = name
	}
	if h.rng.IntN(2) == 0 {
		f.State = pick(h, executionStates)
	}
	if h.rng.IntN(3) == 0 {
		f.Pool = fmt.Sprintf("pool-%d", h.rng.IntN(partitions))
	}
	return f
}

// manyIDs is a sample of all ids that were ever named, in any order, with one that was not.
func (h *history) manyIDs(n int) []job.ExecutionID {
	ids := slices.Clone(h.known)
	rand.New(rand.NewPCG(h.seed, uint64(h.step))).Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return append(ids[:min(n, len(ids))], job.ExecutionID{1})
}
