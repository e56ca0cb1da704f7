package main

import (
	"context"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
)

// selectJobs is a page of jobs, with -l of those with such labels.
func (q *get) selectJobs(ctx context.Context, c *takt.Client) (takt.JobList, error) {
	want, err := job.ParseSelector(q.labels)
	if err != nil {
		return takt.JobList{}, err
	}
	if want.Empty() {
		return c.Jobs(ctx, q.page)
	}
	items, next, err := selected(q.page, func(p takt.Page) ([]takt.Job, string, error) {
		list, err := c.Jobs(ctx, p)
		return list.Items, list.Next, err
	}, func(j *takt.Job) bool { return want.Matches(j.Metadata.Labels) })
	return takt.JobList{Items: items, Next: next}, err
}

// selectDecisions is a page of decisions; with -l, of those on jobs with such labels. Jobs that were deleted have none.
func (q *get) selectDecisions(ctx context.Context, c *takt.Client) (takt.DecisionList, error) {
	want, err := job.ParseSelector(q.labels)
	if err != nil {
		return takt.DecisionList{}, err
	}
	if want.Empty() {
		return c.Decisions(ctx, q.job, q.page)
	}
	jobs, err := jobsNamed(ctx, c, nil)
	if err != nil {
		return takt.DecisionList{}, err
	}
	labels := make(map[string]map[string]string, len(jobs))
	for i := range jobs {
		labels[jobs[i].Metadata.Name] = jobs[i].Metadata.Labels
	}
	items, next, err := selected(q.page, func(p takt.Page) ([]takt.Decision, string, error) {
		list, err := c.Decisions(ctx, q.job, p)
		return list.Items, list.Next, err
	}, func(d *takt.Decision) bool { return want.Matches(labels[d.Job]) })
	return takt.DecisionList{Items: items, Next: next}, err
}

// selected makes a page of what fits of as many pages of the server as it takes.
func selected[T any](page takt.Page, ask func(takt.Page) ([]T, string, error), fits func(*T) bool) (out []T, next string, err error) {
	for out = []T{}; ; page.After = next {
		var items []T
		if items, next, err = ask(page); err != nil {
			return out, next, err
		}
		for i := range items {
			if fits(&items[i]) {
				out = append(out, items[i])
			}
		}
		if next == "" || page.Limit > 0 && len(out) >= page.Limit {
			return out, next, nil
		}
	}
}
