//go:build linux

package pg_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
)

// evidence is what a drill leaves: the rows of the database, the witnesses of the handlers, the stalls of the machine.
type evidence struct {
	t          *testing.T
	events     []drill.Event
	executions map[string]job.Execution
	decisions  []job.Decision
	sights     []sight
	stalls     []stall
}

// stall is a span for which a process was kept from running.
type stall struct{ from, to time.Time }

const partitions = 32

// collect reads everything, from the database at dsn.
func (f *fleet) collect(dsn string) *evidence {
	f.t.Helper()
	ctx := context.Background()
	st, err := postgres.Open(ctx, postgres.Config{DSN: dsn, NoMigrate: true})
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			f.t.Error(err)
		}
	}()
	v := &evidence{t: f.t, executions: map[string]job.Execution{}, sights: f.sights(), stalls: f.stalls()}
	must := func(err error) {
		if err != nil {
			f.t.Helper()
			f.t.Fatal(err)
		}
	}
	for p := range partitions {
		rows, err := st.Journal(ctx, p, 0, 1<<30)
		must(err)
		events, err := drill.ReadJournal(rows)
		must(err)
		v.events = append(v.events, events...)
	}
	for after, more := "", true; more; more = after != "" {
		rows, next, err := st.Executions(ctx, store.ExecutionFilter{Namespace: "default", Page: store.Page{After: after, Limit: 500}})
		must(err)
		for _, x := range rows {
			v.executions[x.ID.String()] = x
		}
		after = next
	}
	for after, more := "", true; more; more = after != "" {
		rows, next, err := st.Decisions(ctx, "default", "", store.Page{After: after, Limit: 500})
		must(err)
		v.decisions = append(v.decisions, rows...)
		after = next
	}
	return v
}

// sights are the lines of all witnesses so far, by time.
func (f *fleet) sights() (all []sight) {
	f.t.Helper()
	names, _ := filepath.Glob(filepath.Join(f.dir, "*.witness"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var s sight
			if !strings.HasSuffix(line, "\n") {
				continue // being written
			}
			if err := json.Unmarshal([]byte(line), &s); err != nil {
				f.t.Fatalf("%s: %q: %v", name, line, err)
			}
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b sight) int { return a.At.Compare(b.At) })
	return all
}

func (f *fleet) stalls() (all []stall) {
	f.t.Helper()
	names, _ := filepath.Glob(filepath.Join(f.dir, "stalls-*"))
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			f.t.Fatal(err)
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var end, length int64
			if _, err := fmt.Sscanf(lines.Text()+"\n", stallForm, &end, &length); err == nil {
				all = append(all, stall{time.UnixMilli(end - length), time.UnixMilli(end)})
			}
		}
		_ = file.Close() // only read
	}
	return all
}

// stalled is how long processes of the drill were kept from running between two instants, all of them together: an
// answer that needs several in turn may come so much later.
func (v *evidence) stalled(from, to time.Time) (sum time.Duration) {
	for _, s := range v.stalls {
		a, b := s.from, s.to
		if a.Before(from) {
			a = from
		}
		if b.After(to) {
			b = to
		}
		if d := b.Sub(a); d > 0 {
			sum += d
		}
	}
	return sum
}

// sound checks the invariants over the journal.
func (v *evidence) sound(lease leases) {
	v.t.Helper()
	all := make([]job.Execution, 0, len(v.executions))
	for _, x := range v.executions {
		all = append(all, x)
	}
	h := &drill.History{Events: v.events, Executions: all, End: time.Now(), TTL: lease.TTL, Margin: lease.Margin, OwnerTTL: lease.OwnerTTL,
		Slack: time.Hour} // renewals are in no journal: that no verdict came late can not be told
	epochs := map[int]job.Epoch{}
	for _, e := range v.events {
		if e.Epoch < epochs[e.Partition] {
			v.t.Errorf("partition %d: commit %d under epoch %d, behind one under %d", e.Partition, e.Seq, e.Epoch, epochs[e.Partition])
		}
		epochs[e.Partition] = e.Epoch
	}
	for i, bad := range drill.Check(h) {
		if i == 20 {
			v.t.Error("… and more")
			return
		}
		v.t.Error(bad)
	}
}

type leases struct{ TTL, Margin, OwnerTTL time.Duration }

func (f *fleet) leases() leases { return leases{f.lease.TTL, f.lease.Margin, f.lease.OwnerTTL} }

// effects checks that each key had its effect once: or again only under a higher token, and never under a lower one
// afterwards. It returns how many keys there are and how many effects came again.
func (v *evidence) effects() (keys, again int) {
	v.t.Helper()
	newest := map[string]sight{}
	began := map[string]sight{}
	for _, s := range v.sights {
		switch s.What {
		case "began":
			if b, known := began[s.Key]; known && s.Token <= b.Token {
				v.t.Errorf("%s began under token %d after %d", s.Key, s.Token, b.Token)
			} else if known && s.From < b.From {
				v.t.Errorf("%s began at step %d after %d: a checkpoint went back", s.Key, s.From, b.From)
			}
			began[s.Key] = s
		case "effect":
			if n, known := newest[s.Key]; known {
				again++
				if s.Token <= n.Token {
					v.t.Errorf("%s had an effect under token %d after one under %d", s.Key, s.Token, n.Token)
				}
			}
			newest[s.Key] = s
		}
	}
	return len(newest), again
}

// complete checks that everything that was acknowledged is there, has succeeded, and had the effect of each shard.
func (v *evidence) complete(acked map[string]string) {
	v.t.Helper()
	had := map[string]int{}
	for _, s := range v.sights {
		if s.What == "effect" {
			had[s.Key]++
		}
	}
	for key, id := range acked {
		if x, there := v.executions[id]; !there {
			v.t.Errorf("trigger %s was acknowledged as %s, which is not there", key, id)
		} else if x.State != job.ExecutionSucceeded {
			v.t.Errorf("trigger %s was acknowledged as %s, which is %q (%s)", key, id, x.State, x.Reason)
		}
	}
	for id, x := range v.executions {
		if x.State != job.ExecutionSucceeded {
			continue
		}
		for i := range x.ShardTotal {
			if had[job.Key(&x, i)] == 0 {
				v.t.Errorf("shard %d of %s (%s) succeeded without an effect", i, id, x.Job)
			}
		}
	}
}

// instants checks that every instant of a job that was planned each second has one execution or a decision, from its
// creation until the given instant. It returns how many instants there are and how many are decisions.
func (v *evidence) instants(j takt.Job, until time.Time) (n, decided int) {
	v.t.Helper()
	const second = 1000
	created := j.Metadata.CreatedAt.UnixMilli()
	at := map[int64]int{}
	for _, x := range v.executions {
		if x.Job == j.Metadata.Name && drill.Planned(&x) {
			at[int64(x.PlannedAt)]++
			if (int64(x.PlannedAt)-created)%second != 0 {
				v.t.Errorf("%s has an execution for %s, which is no planned instant", x.Job, x.PlannedAt)
			}
		}
	}
	for _, d := range v.decisions {
		if d.Name != j.Metadata.Name {
			continue
		}
		count := int64(0)
		for i := int64(d.From); i <= int64(d.To); i += second {
			at[i]++
			count++
		}
		if decided += int(count); count != d.Count {
			v.t.Errorf("a decision of %s counts %d instants in a range of %d", d.Name, d.Count, count)
		}
	}
	for i := created + second; i <= until.UnixMilli(); i += second {
		n++
		if at[i] != 1 {
			v.t.Errorf("the instant %s of %s has %d executions and decisions", job.Instant(i), j.Metadata.Name, at[i])
		}
	}
	return n, decided
}

// lateness of what was planned by a schedule: until it was decided, and until its handler began for the first time.
func (v *evidence) lateness() (decided, began []span) {
	first := map[string]time.Time{}
	for _, s := range v.sights {
		if _, known := first[s.Execution]; !known && s.What == "began" {
			first[s.Execution] = s.At
		}
	}
	for id, x := range v.executions {
		if x.Trigger != job.TriggerSchedule {
			continue
		}
		decided = append(decided, span{x.PlannedAt.Time(), x.CreatedAt.Time(), x.Job})
		if at, ok := first[id]; ok {
			began = append(began, span{x.PlannedAt.Time(), at, x.Job})
		}
	}
	return decided, began
}

const clockForm = "15:04:05.000"

// span is something that lasted.
type span struct {
	from, to time.Time
	what     string
}

// since are the spans that began after an instant.
func since(all []span, at time.Time) []span {
	return slices.DeleteFunc(slices.Clone(all), func(s span) bool { return s.from.Before(at) })
}

func (s span) d() time.Duration { return s.to.Sub(s.from) }

// within checks that spans are at most limit long, not counting what the machine kept processes from meanwhile, and
// says how long they were.
func (v *evidence) within(what string, all []span, limit time.Duration, share float64) {
	v.t.Helper()
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.d(), b.d()) })
	if len(all) == 0 {
		v.t.Errorf("%s: nothing was measured", what)
		return
	}
	at := func(q float64) span { return all[min(len(all)-1, int(q*float64(len(all))))] }
	worst := all[len(all)-1]
	v.t.Logf("%s: n=%d p50=%v p90=%v p99=%v max=%v (stalls meanwhile %v)", what, len(all), at(.5).d().Round(time.Millisecond), at(.9).d().Round(time.Millisecond),
		at(.99).d().Round(time.Millisecond), worst.d().Round(time.Millisecond), v.stalled(worst.from, worst.to).Round(time.Millisecond))
	if limit == 0 {
		return
	}
	beyond := 0
	for _, s := range all {
		if s.d() > limit+v.stalled(s.from, s.to) {
			beyond++
			if beyond <= 5 {
				v.t.Logf("%s: %s at %s: %v, machine stalled %v", what, s.what, s.from.Format(clockForm), s.d(), v.stalled(s.from, s.to))
			}
		}
	}
	if float64(beyond) > (1-share)*float64(len(all)) {
		v.t.Errorf("%s: %d of %d took longer than %v and what the machine stalled", what, beyond, len(all), limit)
	}
}

// again lists the leases that were not the first of their shard.
func (v *evidence) again() (all []drill.Event) {
	for _, e := range v.events {
		if e.Kind == engine.FactLeaseGranted && e.Attempt > 1 {
			all = append(all, e)
		}
	}
	return all
}

// settled waits until nothing is live any more that was made before the given instant, and every scheduled job has been
// planned up to it.
func (f *fleet) settled(planned []takt.Job, by time.Time) {
	f.t.Helper()
	c := f.client(5 * time.Second)
	ctx := context.Background()
	for _, j := range planned {
		until(f.t, j.Metadata.Name+" is planned up to the end", func() error {
			got, err := c.Job(ctx, j.Metadata.Name)
			if err != nil {
				return err
			}
			return yes(got.Status != nil && got.Status.LastPlannedAt != nil && got.Status.LastPlannedAt.After(by))
		})
		until(f.t, j.Metadata.Name+" is paused", func() error {
			_, err := c.PauseJob(ctx, j.Metadata.Name, time.Time{}, takt.ChangeOptions{})
			return err
		})
	}
	until(f.t, "everything has ended", func() error {
		live := map[string]int{}
		for _, state := range []string{"scheduled", "queued", "running", "cancelling"} {
			list, err := c.Executions(ctx, takt.ExecutionQuery{State: state, Page: takt.Page{Limit: 100}})
			if err != nil {
				return err
			}
			for _, x := range list.Items {
				live[state+" "+x.Job]++
			}
		}
		if len(live) > 0 {
			return fmt.Errorf("live: %v", live)
		}
		return nil
	})
}
