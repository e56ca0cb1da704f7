package api_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// jobCalls are all calls that fakeStore does not have itself.
type jobCalls interface{ store.Store }

// fakeStore is the part of a store that people's calls use, in memory, without paging.
type fakeStore struct {
	jobCalls // nil: those are tested on a real store
	mu       sync.Mutex
	writes   int
	jobs     map[string]store.JobRow
	asked    map[job.ExecutionID]job.Execution
	shards   map[job.ExecutionID][]job.Shard
	keys     map[store.RequestKey]job.ExecutionID
	hashes   map[store.RequestKey]string
	triggers []store.Trigger
	asks     []store.Ask
	filters  []store.ExecutionFilter
	pages    []store.Page
	fails    error // every call fails with it
	given    func(store.GivenAsk) ([]store.Given, error)
	givens   [][]store.GivenAsk // what was asked of it
}

func newFakeStore() *fakeStore {
	return &fakeStore{jobs: map[string]store.JobRow{}, asked: map[job.ExecutionID]job.Execution{}, shards: map[job.ExecutionID][]job.Shard{},
		keys: map[store.RequestKey]job.ExecutionID{}, hashes: map[store.RequestKey]string{}}
}

func (f *fakeStore) Ping(context.Context) error { return f.fails }

func (f *fakeStore) PutJob(_ context.Context, p store.PutJob) (job.Definition, store.Written, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails != nil {
		return job.Definition{}, store.Written{}, f.fails
	}
	at := p.Definition.Namespace + "/" + p.Definition.Name
	old, there := f.jobs[at]
	if p.IfRevision > 0 && old.Definition.Revision != p.IfRevision || p.IfRevision < 0 && there {
		return job.Definition{}, store.Written{}, job.Errorf(job.KindConflict, "revision_changed", "the job has another revision")
	}
	d := p.Definition
	d.Revision, d.CreatedAt, d.UpdatedAt = old.Definition.Revision+1, p.At, p.At
	if there {
		d.UID, d.CreatedAt = old.Definition.UID, old.Definition.CreatedAt
	}
	f.writes++
	f.jobs[at] = store.JobRow{Definition: d}
	return d, store.Written{Partition: p.Partition, Entry: int64(f.writes)}, nil
}

func (f *fakeStore) Trigger(_ context.Context, t store.Trigger, partition func(job.Definition) int) (store.Triggered, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row, ok := f.jobs[t.Namespace+"/"+t.Job]
	if !ok {
		return store.Triggered{}, noJob()
	}
	key := t.Key
	key.Hash = ""
	if id, known := f.keys[key]; known && t.Key.Key != "" {
		if f.hashes[key] != t.Key.Hash {
			return store.Triggered{}, job.Errorf(job.KindConflict, "idempotency_key_reused", "the key came with another request")
		}
		return store.Triggered{Execution: id, Repeated: true}, nil
	}
	var err error
	if t.Request.Params, err = t.Merge(row.Definition); err != nil {
		return store.Triggered{}, err
	}
	f.writes++
	f.keys[key], f.hashes[key] = t.Execution, t.Key.Hash
	f.triggers = append(f.triggers, t)
	p := partition(row.Definition)
	f.asked[t.Execution] = job.Execution{ID: t.Execution, Partition: p, Namespace: t.Namespace, Job: t.Job, Trigger: job.TriggerRequest,
		Pool: row.Definition.Spec.Pool, PlannedAt: t.Request.At, RequestKey: t.Request.Key, ShardTotal: 1, State: job.ExecutionQueued}
	return store.Triggered{Execution: t.Execution, Written: store.Written{Partition: p, Entry: int64(f.writes)}}, nil
}

func (f *fakeStore) Triggers(ctx context.Context, all []store.Trigger, partition func(job.Definition) int) (out []store.Triggered, _ error) {
	for i, t := range all {
		made, err := f.Trigger(ctx, t, partition)
		if e, ok := errors.AsType[*job.Error](err); ok {
			return nil, &job.SetError{Items: []job.ItemError{{Index: i, Err: e}}}
		}
		out = append(out, made)
	}
	return out, nil
}

func (f *fakeStore) Ask(_ context.Context, a store.Ask) (store.Written, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	f.asks = append(f.asks, a)
	return store.Written{Entry: int64(f.writes)}, nil
}

func (f *fakeStore) EntryPending(context.Context, int64) (bool, error) { return false, nil }

func (f *fakeStore) SweepRequestKeys(context.Context, job.Instant, int) (int, error) { return 0, nil }

func noJob() error { return job.Errorf(job.KindNotFound, "job_not_found", "there is no such job") }

func (f *fakeStore) Job(_ context.Context, namespace, name string) (store.JobRow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails != nil {
		return store.JobRow{}, f.fails
	}
	row, ok := f.jobs[namespace+"/"+name]
	if !ok {
		return row, noJob()
	}
	return row, nil
}

func (f *fakeStore) Jobs(_ context.Context, namespace string, p store.Page) ([]store.JobRow, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages = append(f.pages, p)
	var rows []store.JobRow
	for k, r := range f.jobs {
		if strings.HasPrefix(k, namespace+"/") {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b store.JobRow) int { return strings.Compare(a.Definition.Name, b.Definition.Name) })
	return rows, "more", f.fails
}

func (f *fakeStore) Execution(_ context.Context, namespace string, id job.ExecutionID) (job.Execution, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.asked[id]
	if !ok || e.Namespace != namespace {
		return e, job.Errorf(job.KindNotFound, "execution_not_found", "there is no such execution")
	}
	return e, nil
}

func (f *fakeStore) Executions(_ context.Context, q store.ExecutionFilter) ([]job.Execution, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filters = append(f.filters, q)
	return nil, "", f.fails
}

func (f *fakeStore) Shards(_ context.Context, _ string, id job.ExecutionID, _ store.Page) ([]job.Shard, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shards[id], "", nil
}

func (f *fakeStore) Decisions(context.Context, string, string, store.Page) ([]job.Decision, string, error) {
	return []job.Decision{{Name: "nightly", Kind: job.DecisionMissed, Reason: job.ReasonMissedDown, From: 1000, To: 3000, Count: 3, At: 4000}}, "", nil
}

func (f *fakeStore) Journal(context.Context, int, int64, int) ([]store.JournalRow, error) {
	return nil, nil
}

func (f *fakeStore) Children(context.Context, job.UID) ([]string, error) { return nil, nil }

func (f *fakeStore) Counts(context.Context) (store.Counts, error) { return store.Counts{}, f.fails }

func (f *fakeStore) Upstream(context.Context, job.Execution) (u engine.Upstream, matched []job.Parent, err error) {
	return u, nil, nil
}

func (f *fakeStore) Given(_ context.Context, asks []store.GivenAsk) ([][]store.Given, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.givens = append(f.givens, asks)
	all := make([][]store.Given, len(asks))
	for i, ask := range asks {
		if f.given == nil {
			continue
		}
		var err error
		if all[i], err = f.given(ask); err != nil {
			return nil, err
		}
	}
	return all, nil
}
