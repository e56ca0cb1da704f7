package drill_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// sight is what one attempt saw of the executions that its own was decided by.
type sight struct {
	execution string
	attempt   int
	text      string
}

// give sets a result that no other attempt gives: for one instant in four of so many bytes, else a small one.
func (m *member) give(t *takt.Task, size int) error {
	if size == 0 {
		return nil
	}
	if t.PlannedAt().Unix()/2%4 != 0 {
		size = min(size, 100)
	}
	name := fmt.Sprintf("%s/%d by %d ", t.Execution(), t.Shard(), t.Token())
	return t.SetResult(name + strings.Repeat("x", max(size-len(name), 0)))
}

// see notes what the attempt sees.
func (m *member) see(ctx context.Context, t *takt.Task) error {
	var all []string
	for _, p := range t.Parents() {
		one := fmt.Sprintf("%s %s %s", p.Job, p.Execution, p.State)
		for r, err := range t.ParentResults(ctx, p.Job) {
			if err != nil {
				return err
			}
			one += gave(r.Shard, string(r.Result))
		}
		all = append(all, one)
	}
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.c.sights = append(m.c.sights, sight{t.Execution(), t.Attempt(), strings.Join(all, ", ")})
	return nil
}

// gave says in short what a shard gave: its name and length.
func gave(shard int, result string) string {
	return fmt.Sprintf(" [%d: %s… %d]", shard, strings.TrimRight(result, `x"`), len(result))
}

// familyOf is what a child has to see of its parents' executions, as the database has them at the end.
func familyOf(t *testing.T, st store.Reader, parents ...job.Execution) string {
	t.Helper()
	var all []string
	for i := range parents {
		x := &parents[i]
		one := fmt.Sprintf("%s %s %s", x.Job, x.ID, x.State)
		shards, next, err := st.Shards(context.Background(), "default", x.ID, store.Page{Limit: 100})
		if err != nil || next != "" {
			t.Fatalf("shards of %s: next %q, %v", x.ID, next, err)
		}
		for _, s := range shards {
			one += gave(s.Index, string(s.Result))
		}
		all = append(all, one)
	}
	return strings.Join(all, ", ")
}

// sawParents checks that every attempt at a child saw all its parents of the same instant, in order, with all that they gave, and
// that each child was seen.
func (f *fleet) sawParents(found map[job.Instant]map[string]job.Execution, after map[string][]string) {
	f.t.Helper()
	f.mu.Lock()
	sights := map[string][]sight{}
	for _, s := range f.sights {
		sights[s.execution] = append(sights[s.execution], s)
	}
	f.mu.Unlock()
	for at, of := range found {
		for child, names := range after {
			var parents []job.Execution
			for _, name := range names {
				parents = append(parents, of[name])
			}
			want, all := familyOf(f.t, f.file, parents...), sights[of[child].ID.String()]
			for _, s := range all {
				if s.text != want {
					f.t.Errorf("%s of %v, attempt %d, saw\n%s\nwant\n%s", child, at.Time(), s.attempt, s.text, want)
				}
			}
			if len(all) == 0 {
				f.t.Errorf("no attempt at %s of %v saw its parents", child, at.Time())
			}
		}
	}
}
