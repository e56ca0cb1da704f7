package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var wall = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// owner is a scripted owner of every partition.
type owner struct {
	takes time.Duration // until it has taken an entry in; 0: at once, < 0: never
	woken []int
	look  func(engine.InspectQuery) (any, error)
}

func (o *owner) Count() int { return 4 }
func (o *owner) Wake(p int) { o.woken = append(o.woken, p) }

// Hand is a wake.
func (o *owner) Hand(p int, _ engine.InboxPage) { o.Wake(p) }

// Expect waits for nothing.
func (o *owner) Expect(int) func() { return func() {} }

func (o *owner) AwaitEntry(ctx context.Context, _ int, _ int64) bool {
	if o.takes == 0 {
		return true
	}
	after := make(<-chan time.Time)
	if o.takes > 0 {
		after = time.After(o.takes)
	}
	select {
	case <-after:
		return true
	case <-ctx.Done():
		return false
	}
}

func (o *owner) Call(ctx context.Context, _ int, _ job.Epoch, ev engine.Event) (partition.Reply, error) {
	if o.look == nil {
		<-ctx.Done()
		return partition.Reply{}, ctx.Err()
	}
	v, err := o.look(ev.(engine.Inspect).Query)
	return partition.Reply{Value: v}, err
}

func (o *owner) Stats() []partition.Stats { return nil }

// open makes a Control over an empty SQLite store of four partitions.
func open(t *testing.T, o *owner, change func(*control.Config)) (*control.Control, store.Store) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "takt.db"), Partitions: 4, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	c := control.Config{Control: st, Reader: st, Owners: o, Now: func() time.Time { return wall }}
	if change != nil {
		change(&c)
	}
	return control.New(c), st
}

func put(name, pool string) control.PutRequest {
	return control.PutRequest{Namespace: "default", Name: name, Spec: job.Spec{Pool: pool, Handler: "index"}}
}

func mustPut(t *testing.T, c *control.Control, r control.PutRequest) control.Put {
	t.Helper()
	p, err := c.PutJob(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantCode(t *testing.T, err error, kind job.Kind, code string) {
	t.Helper()
	e, ok := errors.AsType[*job.Error](err)
	if !ok || e.Kind != kind || e.Code != code {
		t.Errorf("error %v, want %s %s", err, kind, code)
	}
}

func TestPutJob(t *testing.T) {
	o := &owner{}
	c, _ := open(t, o, nil)
	p := mustPut(t, c, put("nightly", "web"))
	want := partition.Of("default", "web", 4)
	if !p.Created || p.Effect != control.Effective || p.Row.Definition.Revision != 1 || p.Row.Definition.UID.IsZero() {
		t.Errorf("created %+v", p)
	}
	if !slices.Equal(o.woken, []int{want}) {
		t.Errorf("woken %v, the pool lies in %d", o.woken, want)
	}
	again := mustPut(t, c, put("nightly", "web"))
	if again.Created || again.Row.Definition.Revision != 1 || again.Effect != control.Effective || again.Row.Definition.UID != p.Row.Definition.UID {
		t.Errorf("equal document %+v", again)
	}
	r := put("nightly", "web")
	r.Spec.Handler, r.IfRevision = "other", 7
	_, err := c.PutJob(t.Context(), r)
	wantCode(t, err, job.KindConflict, "revision_changed")
	r.IfRevision = -1
	_, err = c.PutJob(t.Context(), r)
	wantCode(t, err, job.KindConflict, "revision_changed")
	r.IfRevision = 1
	if p := mustPut(t, c, r); p.Row.Definition.Revision != 2 || p.Created {
		t.Errorf("changed %+v", p)
	}
	for n := range 64 { // some pool lies in another partition
		if pool := fmt.Sprintf("p%d", n); partition.Of("default", pool, 4) != want {
			o.woken = nil
			if p := mustPut(t, c, put("nightly", pool)); p.Row.Definition.Revision != 3 || !slices.Equal(o.woken, []int{want}) {
				t.Errorf("moved %+v, woken %v: the partition that plans the job is %d", p.Row.Definition, o.woken, want)
			}
			return
		}
	}
}

// An equal document whose schedule the owner has not planned yet is not in force yet.
func TestEqualDocumentIsPendingUntilPlanned(t *testing.T) {
	c, _ := open(t, &owner{}, nil)
	r := put("nightly", "web")
	r.Spec.Schedules = []job.Schedule{{ID: "main", Spec: schedule.Spec{Every: time.Minute}}}
	mustPut(t, c, r)
	if p := mustPut(t, c, r); p.Effect != control.Pending {
		t.Errorf("effect %s", p.Effect)
	}
	r.Spec.Disabled = true
	mustPut(t, c, r)
	if p := mustPut(t, c, r); p.Effect != control.Effective {
		t.Errorf("disabled: effect %s", p.Effect)
	}
}

func TestPutJobRefuses(t *testing.T) {
	c, st := open(t, &owner{}, nil)
	for _, x := range []struct {
		field  string
		change func(*control.PutRequest)
	}{
		{"metadata.namespace", func(r *control.PutRequest) { r.Namespace = "A" }},
		{"metadata.name", func(r *control.PutRequest) { r.Name = "a/b" }},
		{"metadata.name", func(r *control.PutRequest) { r.Name = "" }},
		{"metadata.name", func(r *control.PutRequest) { r.Name = strings.Repeat("a", 64) }},
		{"metadata.labels", func(r *control.PutRequest) { r.Labels = map[string]string{"": "x"} }},
		{"metadata.labels.a", func(r *control.PutRequest) { r.Labels = map[string]string{"a": strings.Repeat("x", 257)} }},
		{"metadata.labels", func(r *control.PutRequest) {
			r.Labels = map[string]string{}
			for i := range 33 {
				r.Labels[fmt.Sprintf("l%d", i)] = ""
			}
		}},
		{"spec.params", func(r *control.PutRequest) {
			r.Spec.Params = json.RawMessage(`"` + strings.Repeat("x", control.MaxParams) + `"`)
		}},
	} {
		r := put("nightly", "web")
		x.change(&r)
		_, err := c.PutJob(t.Context(), r)
		if e, ok := errors.AsType[*job.Error](err); !ok || e.Field != x.field {
			t.Errorf("%v, want field %s", err, x.field)
		}
	}
	if rows, _, err := st.Jobs(t.Context(), "default", store.Page{Limit: 10}); err != nil || len(rows) != 0 {
		t.Errorf("written: %d, %v", len(rows), err)
	}
}

// A write waits one second for its owner, and no longer.
func TestEffectWaitsASecond(t *testing.T) {
	for takes, want := range map[time.Duration]control.Effect{-1: control.Pending, 999 * time.Millisecond: control.Effective, 1001 * time.Millisecond: control.Pending} {
		synctest.Test(t, func(t *testing.T) {
			o := &owner{takes: takes}
			c := control.New(control.Config{Control: &written{}, Reader: &written{}, Owners: o, Now: time.Now})
			begun := time.Now()
			p, err := c.PutJob(t.Context(), put("nightly", "web"))
			if err != nil || p.Effect != want {
				t.Errorf("taken in after %s: %s, %v", takes, p.Effect, err)
			}
			if took := time.Since(begun); took > time.Second {
				t.Errorf("waited %s", took)
			}
			// A caller that has gone does not turn a write into an error.
			ctx, leave := context.WithCancel(t.Context())
			leave()
			if p, err := c.PutJob(ctx, put("nightly", "web")); err != nil || takes < 0 && p.Effect != control.Pending {
				t.Errorf("gone: %v, %v", p, err)
			}
		})
	}
}

// written is a store that takes every job.
type written struct {
	store.Control
	store.Reader
}

func (written) PutJob(_ context.Context, p store.PutJob) (job.Definition, store.Written, error) {
	return p.Definition, store.Written{Entry: 1}, nil
}

func (written) Job(context.Context, string, string) (store.JobRow, error) {
	return store.JobRow{}, job.Errorf(job.KindUnavailable, "store_unavailable", "gone meanwhile")
}

// Reads show the rows alone when the owner is away or slow, and other faults as they are.
func TestReadsWithoutAnOwner(t *testing.T) {
	o := &owner{}
	c, st := open(t, o, func(c *control.Config) { c.LiveWait = time.Millisecond })
	mustPut(t, c, put("nightly", "web"))
	done, err := c.Trigger(t.Context(), control.TriggerRequest{Namespace: "default", Job: "nightly"})
	if err != nil {
		t.Fatal(err)
	}
	take(t, st, done.Execution)
	for _, look := range []func(engine.InspectQuery) (any, error){
		nil, // never answers
		func(engine.InspectQuery) (any, error) { return nil, job.Errorf(job.KindNoOwner, "no_owner", "nobody") },
	} {
		o.look = look
		e, err := c.Execution(t.Context(), "default", done.Execution)
		if err != nil || e.State != job.ExecutionQueued || e.Waits != "" {
			t.Errorf("%+v, %v", e, err)
		}
		if s, _, err := c.Shards(t.Context(), "default", done.Execution, store.Page{Limit: 10}); err != nil || len(s) != 1 || s[0].Key == "" {
			t.Errorf("%+v, %v", s, err)
		}
		if _, err := c.Workers(t.Context(), "default", ""); err == nil {
			t.Error("workers without an owner")
		}
	}
	o.look = func(engine.InspectQuery) (any, error) { return 5, nil }
	_, err = c.Execution(t.Context(), "default", done.Execution)
	wantCode(t, err, job.KindInternal, "bad_answer")
	_, err = c.Execution(t.Context(), "other", done.Execution)
	wantCode(t, err, job.KindNotFound, "execution_not_found")
}

// take does what an owner does with a trigger: it makes the execution's rows.
func take(t *testing.T, st store.Store, id job.ExecutionID) {
	t.Helper()
	p := partition.Of("default", "web", 4)
	rows, err := st.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := st.AcquirePartition(t.Context(), rows[p], "me", wall.UnixMicro(), engine.Level)
	if err != nil {
		t.Fatal(err)
	}
	page, err := st.InboxPage(t.Context(), p, 10)
	if err != nil {
		t.Fatal(err)
	}
	b := engine.Batch{Seq: row.Seq + 1, LastToken: row.LastToken, At: job.InstantOf(wall)}
	for _, e := range page.Entries {
		b.Consumed = append(b.Consumed, e.ID)
		if e.Kind != engine.EntryTrigger {
			continue
		}
		d := e.Definition
		b.Executions = append(b.Executions, engine.ExecutionWrite{Row: job.Execution{ID: id, Partition: p, Namespace: d.Namespace, Job: d.Name, JobUID: d.UID,
			Revision: d.Revision, Pool: d.Spec.Pool, Handler: d.Spec.Handler, Trigger: job.TriggerRequest, PlannedAt: e.Request.At, ShardTotal: 1,
			State: job.ExecutionQueued, CreatedAt: b.At}})
		b.Shards = append(b.Shards, engine.ShardWrite{Row: job.Shard{Execution: id, State: job.ShardQueued}})
	}
	if err := st.Commit(t.Context(), row.Fence, &b); err != nil {
		t.Fatal(err)
	}
}
