package agent

import (
	"context"

	"github.com/taktsched/takt"
)

// Bytes of parents' results that a handler gets, at most.
const (
	commandParents = 8 << 20
	httpParents    = 1 << 20
)

// Parent is an execution that the handler's ran after, as commands and services get it.
type Parent struct {
	takt.ParentExecution
	Results  []takt.ParentResult `json:"results"`
	Complete bool                `json:"complete"` // results has all that its shards gave
}

// parentsOf gathers the parents of a task with their results, in order, as far as most bytes of these go.
func parentsOf(ctx context.Context, t *takt.Task, most int) ([]Parent, error) {
	var all []Parent
	for _, p := range t.Parents() {
		one := Parent{ParentExecution: p, Results: []takt.ParentResult{}}
		if most >= 0 {
			for r, err := range t.ParentResults(ctx, p.Job) {
				if err != nil {
					return nil, err
				}
				if most -= len(r.Result); most < 0 {
					break // and nothing of those behind it
				}
				one.Results = append(one.Results, r)
			}
		}
		one.Complete = most >= 0
		all = append(all, one)
	}
	return all, nil
}
