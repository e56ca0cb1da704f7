package control

import (
	"context"

	"github.com/taktsched/takt/internal/filter"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// maxSelected bounds the jobs whose executions one list looks for.
const maxSelected = 1000

// ExecutionsOf lists executions of the jobs that have labels now; of a job that was deleted none. Errors: KindTooLarge
// "selector_too_wide" when more than 1000 jobs have them, and the store's.
func (c *Control) ExecutionsOf(ctx context.Context, want job.Selector, f store.ExecutionFilter) ([]job.Execution, string, error) {
	term := filter.Term{Field: "job", Op: filter.Is}
	for page := (store.Page{Limit: 500}); ; {
		rows, next, err := c.Jobs(ctx, f.Namespace, page)
		if err != nil {
			return nil, "", err
		}
		for i := range rows {
			if want.Matches(rows[i].Definition.Labels) {
				term.Texts = append(term.Texts, rows[i].Definition.Name)
			}
		}
		if len(term.Texts) > maxSelected {
			return nil, "", job.Errorf(job.KindTooLarge, "selector_too_wide", "more than %d jobs have these labels", maxSelected).
				WithField("query.labels").WithHint("select fewer by further labels, or list without them")
		}
		if page.After = next; next == "" {
			break
		}
	}
	if len(term.Texts) == 0 {
		return nil, "", nil
	}
	f.Query.Terms = append(f.Query.Terms, term)
	return c.Executions(ctx, f)
}
