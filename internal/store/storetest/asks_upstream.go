package storetest

import (
	"cmp"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// someAfter draws what a job runs after.
func (h *history) someAfter() (all []job.After) {
	for range 1 + h.rng.IntN(2) {
		_, name, _ := h.someJob()
		a := job.After{Job: name, Match: pick(h, []job.Match{"", job.MatchLatest, job.MatchDay}), On: pick(h, []job.On{"", job.OnFinished})}
		if !slices.ContainsFunc(all, func(x job.After) bool { return x.Job == name }) {
			all = append(all, a)
		}
	}
	return all
}

// learnTold gives the twin the numbers of the entries that a commit put into inboxes, which have to be the same entries in
// the same order.
func (h *history) learnTold(op string) {
	n := h.twin.told
	if h.twin.told = 0; n == 0 {
		return
	}
	var found []twinEntry
	for p := range partitions {
		page, err := h.real.InboxPage(ctx, p, 100_000)
		if err != nil || page.Partial {
			h.failf(op, "InboxPage: partial %v, %v", page.Partial, err)
		}
		for _, e := range page.Entries {
			known := slices.ContainsFunc(h.twin.inbox[:len(h.twin.inbox)-n], func(x twinEntry) bool { return x.ID == e.ID })
			if (e.Kind == engine.EntryParentEnded || e.Kind == engine.EntryArrived || e.Kind == engine.EntryBackfill) && !known {
				found = append(found, twinEntry{partition: p, Entry: e})
			}
		}
	}
	slices.SortFunc(found, func(a, b twinEntry) int { return cmp.Compare(a.ID, b.ID) })
	if len(found) != n {
		h.failf(op, "%d entries tell of ends of parents and of what was sent, there should be %d", len(found), n)
	}
	for i := range found {
		got, want := &found[i], &h.twin.inbox[len(h.twin.inbox)-n+i]
		if got.partition != want.partition || got.Kind != want.Kind || got.Job != want.Job || got.Execution != want.Execution {
			h.failf(op, "an entry tells partition %d, job %s, of %s; it should be %d, %s, %s", got.partition, got.Job, got.Execution, want.partition, want.Job, want.Execution)
		}
		want.ID, h.twin.lastEntry = got.ID, got.ID
	}
}

// compareUpstream asks about some executions, whoever is whose parent.
func (h *history) compareUpstream(p, limit int) {
	var after job.ExecutionID
	if len(h.known) > 0 {
		after = pick(h, h.known)
	}
	_, _ = both(h, "AwaitingPage", func(s store.Store) (engine.AwaitingPage, error) {
		return s.AwaitingPage(ctx, p, engine.WantAwaiting{After: after, Limit: limit})
	})
	jobs := slices.Concat(h.jobsOf(0), h.jobsOf(1))
	if len(jobs) == 0 || len(h.known) == 0 {
		return
	}
	children := jobs
	if some := slices.DeleteFunc(slices.Clone(jobs), func(d job.Definition) bool { return len(d.Spec.After) == 0 }); len(some) > 0 {
		children = some
	}
	var asks []engine.UpstreamAsk
	for range 3 {
		ask := engine.UpstreamAsk{Child: pick(h, children).UID}
		if h.rng.IntN(4) == 0 {
			ask.Child = pick(h, jobs).UID
		}
		if h.rng.IntN(2) == 0 {
			ask.Waiting = pick(h, h.known)
		} else {
			ask.Ended = pick(h, h.known)
		}
		asks = append(asks, ask)
	}
	_, _ = both(h, "UpstreamPage", func(s store.Store) (engine.UpstreamPage, error) { return s.UpstreamPage(ctx, p, asks) })
	parent := pick(h, jobs).UID
	_, _ = both(h, "Children", func(s store.Store) ([]string, error) { return s.Children(ctx, parent) })
	x, there := h.twin.find(pick(h, h.known))
	if !there {
		return
	}
	given := store.GivenAsk{Execution: x.ID, From: h.rng.IntN(2), Rows: h.rng.IntN(4), Bytes: h.rng.IntN(200), Least: h.rng.IntN(2) == 0}
	if shards := h.twin.shardsOf(x.ID); len(shards) > 0 && h.rng.IntN(2) == 0 {
		s := pick(h, shards)
		given.Holder = &store.Holder{Shard: s.Index, Token: s.Token - job.Token(h.rng.IntN(2))}
	}
	asked := []store.GivenAsk{given, {Execution: pick(h, h.known), Rows: 10, Bytes: 1 << 10}}
	_, _ = both(h, "Given", func(s store.Store) ([][]store.Given, error) { return s.Given(ctx, asked) })
	type answer struct {
		Upstream engine.Upstream
		Matched  []job.Parent
	}
	_, _ = both(h, "Upstream", func(s store.Store) (answer, error) {
		u, m, err := s.Upstream(ctx, x)
		return answer{u, m}, err
	})
}
