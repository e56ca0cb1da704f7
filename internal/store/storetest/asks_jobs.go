package storetest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
)

// uid draws the identity of a new job.
func (h *history) uid() job.UID {
	h.number++
	return job.UID(bytes.Repeat([]byte{byte(h.number), byte(h.number >> 8)}, 8))
}

func (h *history) deleteJob() {
	namespace, name, _ := h.someJob()
	h.clock++ // lives of one name end at different instants
	d := store.DeleteJob{Namespace: namespace, Name: name, IfRevision: pick(h, []int64{0, 0, 1}), Forget: "trigger/" + name,
		Deletion: job.Deletion{At: h.clock, Cancel: h.rng.IntN(2) == 0, By: "me", Reason: h.text()}}
	_, _ = both(h, "DeleteJob", func(s store.Store) (store.DeletedJob, error) { return s.DeleteJob(ctx, d) })
}

// pauseAnswer is what PauseJob returns.
type pauseAnswer struct {
	definition job.Definition
	written    store.Written
}

func (h *history) pauseJob() {
	namespace, name, _ := h.someJob()
	p := store.PauseJob{Namespace: namespace, Name: name, At: h.clock}
	if h.rng.IntN(2) == 0 {
		p.Pause = &job.Pause{At: h.clock, Until: h.instant(), By: "me", Reason: h.text()}
	}
	_, _ = both(h, "PauseJob", func(s store.Store) (pauseAnswer, error) {
		d, w, err := s.PauseJob(ctx, p)
		return pauseAnswer{d, w}, err
	})
}

func (h *history) applyJobs() {
	a := store.ApplyJobs{Calendars: h.putCalendars()}
	h.clock++
	named := map[jobName]bool{}
	for range 1 + h.rng.IntN(4) {
		namespace, name, partition := h.someJob()
		if named[jobName{namespace, name}] {
			continue
		}
		named[jobName{namespace, name}] = true
		p := store.PutJob{At: h.clock, Partition: partition, IfRevision: pick(h, []int64{0, 0, 0, 0, 0, 0, 1, -1}), Change: job.Change{By: "me", Reason: h.text()},
			Definition: job.Definition{UID: h.uid(), Namespace: namespace, Name: name, Labels: map[string]string{"set": pick(h, []string{"x", "y"})},
				Spec: job.Spec{Pool: fmt.Sprintf("pool-%d", partition), Handler: pick(h, []string{"noop", "other"}), Owner: "o"}}}
		if names := h.someCalendars(); h.rng.IntN(2) == 0 && len(names) > 0 {
			p.Definition.Spec.Schedules = []job.Schedule{{ID: "main", Spec: schedule.Spec{Every: time.Minute, Calendars: names}}}
		}
		if h.rng.IntN(4) == 0 {
			p.Definition.Spec.After = h.someAfter()
		}
		if h.rng.IntN(20) == 0 {
			p.Definition.Spec.Title = "nul\x00"
		}
		a.Items = append(a.Items, p)
	}
	if h.rng.IntN(2) == 0 {
		a.Prune = &store.Prune{Namespaces: []string{"a", "b"}, Match: func(d job.Definition) bool { return d.Labels["set"] == "x" },
			Deletion: job.Deletion{At: h.clock}, Forget: func(d job.Definition) string { return "trigger/" + d.Name }}
	}
	a.DryRun = h.rng.IntN(4) == 0
	_, _ = both(h, "ApplyJobs", func(s store.Store) (store.AppliedSet, error) { return s.ApplyJobs(ctx, a) })
}

func (h *history) readRevisions() {
	namespace, name, _ := h.someJob()
	n, limit := h.rng.Int64N(4), 1+h.rng.IntN(5)
	_, _ = both(h, "Revision", func(s store.Store) (store.Revision, error) { return s.Revision(ctx, namespace, name, n) })
	_, _ = both(h, "Revisions", walk(limit, func(s store.Store, p store.Page) ([]store.Revision, string, error) {
		return s.Revisions(ctx, namespace, name, p)
	}))
}
