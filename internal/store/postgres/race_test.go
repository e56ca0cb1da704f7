package postgres_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// What only many servers at one database can get wrong: every test here has two of them.

const noon = job.Instant(1_800_000_000_000)

// servers opens two stores on one new database.
func servers(t *testing.T) (both [2]*postgres.Store, dsn string) {
	t.Helper()
	dsn = pgtest.Start(t).Database(t)
	for i := range both {
		s, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, Partitions: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		both[i] = s
	}
	return both, dsn
}

// atOnce runs f for n callers at the same time, half of them at each server, and counts the answers by verdict.
func atOnce(both [2]*postgres.Store, n int, f func(i int, s *postgres.Store) error) map[string]int {
	verdicts := make([]string, n)
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range n {
		done.Go(func() {
			start.Wait()
			verdicts[i] = verdict(f(i, both[i%2]))
		})
	}
	start.Done()
	done.Wait()
	count := map[string]int{}
	for _, v := range verdicts {
		count[v]++
	}
	return count
}

func verdict(err error) string {
	if err == nil {
		return "ok"
	}
	if e, ok := errors.AsType[*job.Error](err); ok {
		return string(e.Kind) + "/" + e.Code
	}
	return "not of the contract: " + err.Error()
}

func wantCount(t *testing.T, what string, got map[string]int, want map[string]int) {
	t.Helper()
	for v := range got {
		if want[v] != got[v] {
			t.Errorf("%s: answers %v, should be %v", what, got, want)
			return
		}
	}
}

func put(name, handler string, uid byte, ifRevision int64) store.PutJob {
	return store.PutJob{IfRevision: ifRevision, At: noon, Change: job.Change{By: "me"},
		Definition: job.Definition{UID: job.UID{uid}, Namespace: "ns", Name: name, Labels: map[string]string{"set": "x"}, Spec: job.Spec{Pool: "p", Handler: handler}}}
}

func toFirst(job.Definition) int { return 0 }

const (
	rounds  = 10
	callers = 8
)

func TestRaceOfCreations(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	for r := range rounds {
		name := fmt.Sprint("new-", r)
		got := atOnce(both, callers, func(i int, s *postgres.Store) error {
			_, _, err := s.PutJob(context.Background(), put(name, fmt.Sprint("h", i), byte(100*r+i+1), -1))
			return err
		})
		wantCount(t, "only if new", got, map[string]int{"ok": 1, "conflict/revision_changed": callers - 1})
		name = fmt.Sprint("any-", r)
		got = atOnce(both, callers, func(i int, s *postgres.Store) error {
			_, _, err := s.PutJob(context.Background(), put(name, fmt.Sprint("h", i), byte(100*r+callers+i+1), 0)) // no id of those above
			return err
		})
		wantCount(t, "whatever is there", got, map[string]int{"ok": callers})
		row, err := both[0].Job(t.Context(), "ns", name)
		if err != nil || row.Definition.Revision != callers {
			t.Errorf("revision %d after %d different documents, %v", row.Definition.Revision, callers, err)
		}
	}
}

func TestRaceOfEdits(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	for r := range rounds {
		revision := int64(r + 1)
		if r == 0 {
			if _, _, err := both[0].PutJob(t.Context(), put("j", "first", 1, 0)); err != nil {
				t.Fatal(err)
			}
		}
		got := atOnce(both, callers, func(i int, s *postgres.Store) error {
			_, _, err := s.PutJob(context.Background(), put("j", fmt.Sprint(r, "-", i), 1, revision))
			return err
		})
		wantCount(t, "edits of one revision", got, map[string]int{"ok": 1, "conflict/revision_changed": callers - 1})
	}
}

// A name that is deleted and made again while others edit it: each answer fits some order, and the job's revisions have no gap.
func TestRaceOfLives(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	for r := range 3 * rounds {
		got := atOnce(both, callers, func(i int, s *postgres.Store) error {
			if i < 3 {
				_, err := s.DeleteJob(context.Background(), store.DeleteJob{Namespace: "ns", Name: "j", Deletion: job.Deletion{At: noon + job.Instant(r)}})
				return err
			}
			p := put("j", fmt.Sprint(r, "-", i), 0, 0)
			p.Definition.UID = job.UID{byte(r), byte(i), 1}
			d, _, err := s.PutJob(context.Background(), p)
			if err == nil && d.Spec.Handler != p.Definition.Spec.Handler {
				err = fmt.Errorf("wrote %q, got %q", p.Definition.Spec.Handler, d.Spec.Handler)
			}
			return err
		})
		for v := range got {
			if v != "ok" && v != "not_found/job_not_found" {
				t.Errorf("round %d: %v", r, got)
			}
		}
	}
	row, err := both[0].Job(t.Context(), "ns", "j")
	if err != nil {
		return // the last round ended with a deletion
	}
	all, _, err := both[0].Revisions(t.Context(), "ns", "j", store.Page{Limit: 1000})
	if err != nil || int64(len(all)) != row.Definition.Revision {
		t.Errorf("%d revisions, the newest is %d, %v", len(all), row.Definition.Revision, err)
	}
}

// Sets that overlap, in other orders, with new names and prunes: none waits for another that waits for it.
func TestRaceOfSets(t *testing.T) {
	t.Parallel()
	both, dsn := servers(t)
	strides := [callers]int{1, 3, 7, 9, 11, 13, 17, 19} // prime to 20: each set has each name once
	for r := range rounds {
		got := atOnce(both, callers, func(i int, s *postgres.Store) error {
			var a store.ApplyJobs
			for n := range 20 {
				p := put(fmt.Sprintf("j%02d", (n*strides[i]+i)%20), fmt.Sprint(r, "-", i), 0, 0)
				p.Definition.UID = job.UID{byte(r), byte(i), byte(n), 1}
				a.Items = append(a.Items, p)
			}
			if i%2 == 1 {
				a.Items = a.Items[:10]
				a.Prune = &store.Prune{Namespaces: []string{"ns"}, Match: func(job.Definition) bool { return true },
					Deletion: job.Deletion{At: noon}, Forget: func(d job.Definition) string { return "trigger/" + d.Name }}
			}
			done, err := s.ApplyJobs(context.Background(), a)
			if err == nil && !slices.IsSortedFunc(done.Jobs[:len(a.Items)], func(a, b store.AppliedJob) int { return cmp.Compare(a.Written.Entry, b.Written.Entry) }) {
				err = errors.New("entries are not in the order of the set")
			}
			return err
		})
		wantCount(t, "sets", got, map[string]int{"ok": callers})
	}
	wantNoDeadlock(t, dsn)
}

// wantNoDeadlock: one would have been mended by running a transaction again, a second later.
func wantNoDeadlock(t *testing.T, dsn string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	var n int
	if err := c.QueryRow(t.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d deadlocks, %v", n, err)
	}
}

func TestRaceOfOneRequestKey(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	if _, _, err := both[0].PutJob(t.Context(), put("j", "h", 1, 0)); err != nil {
		t.Fatal(err)
	}
	for r := range rounds {
		var mu sync.Mutex
		executions, entries, fresh := map[job.ExecutionID]bool{}, map[int64]bool{}, 0
		got := atOnce(both, callers, func(i int, s *postgres.Store) error {
			hash := "1"
			if i >= callers-2 {
				hash = "2"
			}
			w, err := s.Trigger(context.Background(), store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{byte(r), byte(i)}),
				Request: engine.Request{At: noon}, Key: store.RequestKey{Namespace: "ns", Operation: "trigger/j", Key: fmt.Sprint("k", r), Hash: hash}}, toFirst)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				executions[w.Execution], entries[w.Entry] = true, true
			}
			if err == nil && !w.Repeated {
				fresh++
			}
			return err
		})
		if len(executions) != 1 || len(entries) != 1 || fresh != 1 {
			t.Errorf("%d executions by %d entries, %d calls were no repeat", len(executions), len(entries), fresh)
		}
		if ok, no := got["ok"], got["conflict/idempotency_key_reused"]; ok+no != callers || no != 2 && ok != 2 {
			t.Errorf("answers %v", got)
		}
	}
}

// Many triggers with overlapping keys in other orders.
func TestRaceOfManyTriggers(t *testing.T) {
	t.Parallel()
	both, dsn := servers(t)
	for n := range 4 {
		if _, _, err := both[0].PutJob(t.Context(), put(fmt.Sprint("j", n), "h", byte(n+1), 0)); err != nil {
			t.Fatal(err)
		}
	}
	strides := [callers]int{1, 3, 7, 9, 11, 13, 17, 19} // prime to 100
	var mu sync.Mutex
	byKey, fresh := map[string]job.ExecutionID{}, map[string]int{}
	got := atOnce(both, callers, func(i int, s *postgres.Store) error {
		var all []store.Trigger
		for n := range 100 {
			k := fmt.Sprint((n*strides[i] + i) % 100)
			name := fmt.Sprint("j", len(k)%4)
			all = append(all, store.Trigger{Namespace: "ns", Job: name, Execution: job.RequestedID(noon, [10]byte{byte(i), byte(n), 1}),
				Request: engine.Request{At: noon, Key: k}, Key: store.RequestKey{Namespace: "ns", Operation: "trigger/" + name, Key: k}})
		}
		done, err := s.Triggers(context.Background(), all, toFirst)
		mu.Lock()
		defer mu.Unlock()
		for n, w := range done {
			k := all[n].Request.Key
			if old, ok := byKey[k]; ok && old != w.Execution {
				err = fmt.Errorf("key %s made %v and %v", k, old, w.Execution)
			}
			if byKey[k] = w.Execution; !w.Repeated {
				fresh[k]++
			}
		}
		return err
	})
	wantCount(t, "lists", got, map[string]int{"ok": callers})
	for k, n := range fresh {
		if n != 1 {
			t.Errorf("key %s was new %d times", k, n)
		}
	}
	if len(byKey) != 100 {
		t.Errorf("%d keys", len(byKey))
	}
	wantNoDeadlock(t, dsn)
}

// A trigger while the job is edited: it pins the newest revision of its moment, which is not older than what was
// there before it was called, and its params are merged with the same.
func TestRaceOfTriggerAndEdit(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	if _, _, err := both[0].PutJob(t.Context(), put("j", "h1", 1, 0)); err != nil {
		t.Fatal(err)
	}
	for r := range 5 * rounds {
		var asked store.Triggered
		var merged int64
		got := atOnce(both, 2, func(i int, s *postgres.Store) (err error) {
			if i == 0 {
				_, _, err = s.PutJob(context.Background(), put("j", fmt.Sprint("h", r+2), 1, 0))
				return err
			}
			asked, err = s.Trigger(context.Background(), store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{byte(r), 1}),
				Request: engine.Request{At: noon}, Merge: func(d job.Definition) (json.RawMessage, error) { merged = d.Revision; return nil, nil }}, toFirst)
			return err
		})
		wantCount(t, "both", got, map[string]int{"ok": 2})
		e, err := both[0].Execution(t.Context(), "ns", asked.Execution)
		if err != nil || e.Revision != merged || e.Revision < int64(r+1) || e.Revision > int64(r+2) || e.Handler != fmt.Sprint("h", e.Revision) {
			t.Errorf("round %d: revision %d (%s), merged with %d, %v", r, e.Revision, e.Handler, merged, err)
		}
	}
}

// A deletion takes the keys of its job with it, also one that a trigger uses at that moment: the next life's are its own.
func TestRaceOfTriggerAndDeletion(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	key := store.RequestKey{Namespace: "ns", Operation: "trigger/j", Key: "k"}
	for r := range 5 * rounds {
		p := put("j", "h", 0, -1)
		p.Definition.UID = job.UID{byte(r), 1}
		if _, _, err := both[0].PutJob(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		got := atOnce(both, 2, func(i int, s *postgres.Store) (err error) {
			if i == 0 {
				_, err = s.DeleteJob(context.Background(), store.DeleteJob{Namespace: "ns", Name: "j", Deletion: job.Deletion{At: noon + job.Instant(r)}, Forget: "trigger/j"})
				return err
			}
			w, err := s.Trigger(context.Background(), store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{byte(r), 1}), Request: engine.Request{At: noon}, Key: key}, toFirst)
			if err == nil && w.Repeated {
				err = errors.New("the key of a former life")
			}
			return err
		})
		for v := range got {
			if v != "ok" && v != "not_found/job_not_found" {
				t.Errorf("round %d: %v", r, got)
			}
		}
	}
}

// Who waits for a job's row while it is edited finds it, at its next revision.
func TestRaceOfPausesAndEdits(t *testing.T) {
	t.Parallel()
	both, _ := servers(t)
	if _, _, err := both[0].PutJob(t.Context(), put("j", "first", 1, 0)); err != nil {
		t.Fatal(err)
	}
	for r := range rounds {
		got := atOnce(both, callers, func(i int, s *postgres.Store) error {
			switch i % 4 {
			case 0:
				_, _, err := s.PauseJob(context.Background(), store.PauseJob{Namespace: "ns", Name: "j", Pause: &job.Pause{At: noon}, At: noon})
				return err
			case 1:
				_, err := s.DeleteJob(context.Background(), store.DeleteJob{Namespace: "ns", Name: "j", IfRevision: 1 << 40, Deletion: job.Deletion{At: noon}})
				return err
			}
			_, _, err := s.PutJob(context.Background(), put("j", fmt.Sprint(r, "-", i), 1, 0))
			return err
		})
		wantCount(t, "pauses, edits, and deletions of another revision", got, map[string]int{"ok": 6, "conflict/revision_changed": 2})
	}
}
