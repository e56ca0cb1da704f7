package store

import (
	"maps"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// PastRevisions numbers the revisions that Entry.Past brings, newest first.
func PastRevisions(e *engine.Entry) (all []int64) {
	oldest := e.Definition.Revision
	for _, c := range e.Cursors {
		oldest = min(oldest, max(c.Revision, 1))
	}
	for n := e.Definition.Revision - 1; n >= oldest && len(all) < engine.PastMax; n-- {
		all = append(all, n)
	}
	for _, c := range e.Cursors {
		if c.Revision > 0 && c.Revision < e.Definition.Revision && !slices.Contains(all, c.Revision) {
			all = append(all, c.Revision)
		}
	}
	slices.SortFunc(all, func(a, b int64) int { return int(b - a) })
	return all
}

// PastCalendars names the calendars whose revisions Entry.Past brings.
func PastCalendars(newest *job.Definition, old []*job.Definition) []string {
	names := map[string]bool{}
	for _, d := range append(slices.Clone(old), newest) {
		for _, name := range d.Spec.Calendars() {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
