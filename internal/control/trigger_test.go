package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

func TestTrigger(t *testing.T) {
	c, _ := open(t, &owner{}, func(c *control.Config) { c.Random = io.LimitReader(seeded(), 16+2*10) })
	mustPut(t, c, put("nightly", "web"))
	ask := control.TriggerRequest{Namespace: "default", Job: "nightly", Key: "k", Params: json.RawMessage(`{"a":1}`)}
	first, err := c.Trigger(t.Context(), ask)
	if err != nil || first.Repeated || first.Effect != control.Effective || first.Execution.PlannedAt() != job.InstantOf(wall) {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := c.Trigger(t.Context(), ask)
	if err != nil || again.Execution != first.Execution || !again.Repeated || again.Effect != control.Pending { // nobody took it in
		t.Errorf("%+v, %v", again, err)
	}
	_, err = c.Trigger(t.Context(), ask)
	wantCode(t, err, job.KindInternal, "no_random_bits")
}

func TestTriggerMany(t *testing.T) {
	o := &owner{}
	c, st := open(t, o, nil)
	mustPut(t, c, put("nightly", "web"))
	mustPut(t, c, put("daily", "web"))
	o.woken = nil
	all := []control.TriggerRequest{{Job: "nightly", Key: "k"}, {Job: "daily", Key: "k"}, {Job: "nightly", Key: "k"}, {Job: "daily"}}
	for i := range all {
		all[i].Namespace = "default"
	}
	made, effect, err := c.TriggerMany(t.Context(), all)
	if err != nil || effect != control.Effective || len(made) != 4 || made[2].Execution != made[0].Execution || !made[2].Repeated {
		t.Fatalf("%+v %s, %v", made, effect, err)
	}
	if !slices.Equal(o.woken, []int{partition.Of("default", "web", 4)}) {
		t.Errorf("woken %v", o.woken)
	}
	page, err := st.InboxPage(t.Context(), partition.Of("default", "web", 4), 100)
	if err != nil {
		t.Fatal(err)
	}
	var order []job.ExecutionID
	for _, e := range page.Entries {
		if e.Request != nil {
			order = append(order, e.Execution)
		}
	}
	if want := []job.ExecutionID{made[0].Execution, made[1].Execution, made[3].Execution}; !slices.Equal(order, want) ||
		!slices.IsSortedFunc(want, func(a, b job.ExecutionID) int { return strings.Compare(a.String(), b.String()) }) {
		t.Errorf("entries %v, made %v", order, want)
	}
	o.takes = -1 // the owner takes nothing in
	if _, effect, err := c.TriggerMany(t.Context(), all); err != nil || effect != control.Pending {
		t.Errorf("%s, %v", effect, err)
	}
	if _, _, err := c.TriggerMany(t.Context(), make([]control.TriggerRequest, control.MaxTriggers+1)); job.KindOf(err) != job.KindTooLarge {
		t.Errorf("too many: %v", err)
	}
}

// choosy refuses sets with the key "bad" without a word of which it is; the first call waits.
type choosy struct {
	store.Control
	store.Reader
	hold chan struct{}
	sets []int
}

func (c *choosy) Triggers(_ context.Context, all []store.Trigger, _ func(job.Definition) int) ([]store.Triggered, error) {
	if c.sets = append(c.sets, len(all)); len(c.sets) == 1 {
		<-c.hold
	}
	if slices.ContainsFunc(all, func(t store.Trigger) bool { return t.Key.Key == "bad" }) {
		return nil, job.Errorf(job.KindRejected, "data_refused", "refused")
	}
	return make([]store.Triggered, len(all)), nil
}

// What the database itself refuses takes nobody with it that came at the same time.
func TestTriggersRefusedByDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &choosy{hold: make(chan struct{})}
		c := control.New(control.Config{Control: s, Reader: s, Owners: &owner{}, Now: func() time.Time { return wall }, Random: seeded()})
		keys := []string{"first", "good", "bad", "fine"}
		kinds := make([]job.Kind, len(keys))
		var done sync.WaitGroup
		for i, key := range keys {
			done.Go(func() {
				_, err := c.Trigger(t.Context(), control.TriggerRequest{Namespace: "default", Job: "nightly", Key: key})
				kinds[i] = job.KindOf(err)
			})
			synctest.Wait()
		}
		close(s.hold)
		done.Wait()
		if want := []job.Kind{"", "", job.KindRejected, ""}; !slices.Equal(kinds, want) {
			t.Errorf("answers %q, want %q", kinds, want)
		}
		if want := []int{1, 3, 1, 2, 1, 1}; !slices.Equal(s.sets, want) {
			t.Errorf("sets of %d triggers, want %d", s.sets, want)
		}
	})
}

// editing changes the job after whatever control may have read of it and before the request is written.
type editing struct {
	store.Control
	put store.PutJob
}

func (e *editing) Triggers(ctx context.Context, all []store.Trigger, partition func(job.Definition) int) ([]store.Triggered, error) {
	if _, _, err := e.PutJob(ctx, e.put); err != nil {
		return nil, err
	}
	return e.Control.Triggers(ctx, all, partition)
}

// An execution has params and revision of one and the same document, whatever edits go on around the request.
func TestTriggerBetweenEdits(t *testing.T) {
	o := &owner{}
	var edits *editing
	c, st := open(t, o, func(c *control.Config) {
		edits = &editing{Control: c.Control}
		c.Control = edits
	})
	document := func(params string) store.PutJob {
		return store.PutJob{At: 1, Partition: partition.Of("default", "web", 4), Definition: job.Definition{UID: job.UID{1}, Namespace: "default",
			Name: "nightly", Spec: job.Spec{Pool: "web", Handler: "index", Params: json.RawMessage(params)}}}
	}
	put := func(p store.PutJob) {
		if _, _, err := st.PutJob(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	put(document(`{"a":1}`))
	edits.put = document(`{"a":2}`)
	for _, x := range []struct {
		params, want string
		revision     int64
	}{{`{"b":1}`, `{"a":2,"b":1}`, 2}, {``, `{"a":2}`, 4}} {
		made, err := c.Trigger(t.Context(), control.TriggerRequest{Namespace: "default", Job: "nightly", Params: json.RawMessage(x.params)})
		if err != nil {
			t.Fatal(err)
		}
		put(document(`{"a":3}`)) // before the owner takes the request in
		page, err := st.InboxPage(t.Context(), edits.put.Partition, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			if e.Execution != made.Execution {
				continue
			}
			params := e.Request.Params
			if params == nil {
				params = e.Definition.Spec.Params
			}
			if e.Definition.Revision != x.revision || string(params) != x.want {
				t.Errorf("revision %d with %s, should be %d with %s", e.Definition.Revision, params, x.revision, x.want)
			}
		}
	}
}

func seeded() io.Reader { return rand.NewChaCha8([32]byte{1}) }

func TestTriggerRefuses(t *testing.T) {
	c, _ := open(t, &owner{}, nil)
	r := put("nightly", "web")
	r.Spec.Params = json.RawMessage(`{"a":"` + strings.Repeat("x", 200<<10) + `"}`)
	mustPut(t, c, r)
	big := json.RawMessage(`{"b":"` + strings.Repeat("x", 100<<10) + `"}`)
	for _, x := range []struct {
		ask  control.TriggerRequest
		kind job.Kind
		code string
	}{
		{control.TriggerRequest{Job: "nobody"}, job.KindNotFound, "job_not_found"},
		{control.TriggerRequest{Job: "nobody", Params: json.RawMessage(`1`)}, job.KindNotFound, "job_not_found"},
		{control.TriggerRequest{Job: "nightly", Key: "a b"}, job.KindInvalid, "bad_idempotency_key"},
		{control.TriggerRequest{Job: "nightly", Key: "."}, job.KindInvalid, "bad_idempotency_key"},
		{control.TriggerRequest{Job: "nightly", Key: ".."}, job.KindInvalid, "bad_idempotency_key"},
		{control.TriggerRequest{Job: "nightly", Key: strings.Repeat("k", 129)}, job.KindInvalid, "bad_idempotency_key"},
		{control.TriggerRequest{Job: "nightly", Params: big}, job.KindTooLarge, "params_too_large"}, // together with the job's
	} {
		x.ask.Namespace = "default"
		_, err := c.Trigger(t.Context(), x.ask)
		wantCode(t, err, x.kind, x.code)
	}
}

// Overlay against a twin on decoded values.
func TestOverlayAgainstTwin(t *testing.T) {
	values := []string{`null`, `1`, `"x"`, `[1,2]`, `{}`, `{"k":{"z":1}}`}
	rapid.Check(t, func(t *rapid.T) {
		object := func(label string) json.RawMessage {
			if rapid.Bool().Draw(t, label+" is no object") {
				return json.RawMessage(rapid.SampledFrom(values[:4]).Draw(t, label))
			}
			m := map[string]json.RawMessage{}
			for _, k := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID[string]).Draw(t, label+" keys") {
				m[k] = json.RawMessage(rapid.SampledFrom(values).Draw(t, label+k))
			}
			b, _ := json.Marshal(m)
			return b
		}
		base, over := object("base"), object("over")
		got, err := control.Overlay(base, over)
		var b, o, g any
		_ = json.Unmarshal(base, &b) // it is JSON
		_ = json.Unmarshal(over, &o)
		_, baseObject := b.(map[string]any)
		_, overObject := o.(map[string]any)
		if b != nil && baseObject != overObject {
			if e, ok := errors.AsType[*job.Error](err); !ok || e.Code != "params_mismatch" {
				t.Fatalf("%s over %s: %s, %v", over, base, got, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for text, v := range map[*any]json.RawMessage{&g: got} {
			if err := json.Unmarshal(v, text); err != nil {
				t.Fatal(err)
			}
		}
		want := o
		if bm, ok := b.(map[string]any); ok {
			if om, ok := o.(map[string]any); ok {
				maps.Copy(bm, om)
				want = bm
			}
		}
		if !reflect.DeepEqual(g, want) {
			t.Fatalf("%s over %s: %s", over, base, got)
		}
	})
}

// A key may outlive the execution that it made: that is told, and nothing runs again.
func TestTriggerOfAKeyWhoseExecutionIsGone(t *testing.T) {
	c, st := open(t, &owner{}, nil)
	mustPut(t, c, put("nightly", "web"))
	ask := control.TriggerRequest{Namespace: "default", Job: "nightly", Key: "k"}
	first, err := c.Trigger(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	p := partition.Of("default", "web", 4)
	rows, err := st.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	row, err := st.AcquirePartition(t.Context(), rows[p], "me", 1, engine.Level)
	if err != nil {
		t.Fatal(err)
	}
	page, err := st.InboxPage(t.Context(), p, 10)
	if err != nil {
		t.Fatal(err)
	}
	b := engine.Batch{Seq: 1}
	for _, e := range page.Entries { // taken in, carried out and deleted since
		b.Consumed = append(b.Consumed, e.ID)
	}
	if err := st.Commit(t.Context(), row.Fence, &b); err != nil {
		t.Fatal(err)
	}
	again, err := c.Trigger(t.Context(), ask)
	wantCode(t, err, job.KindNotFound, "execution_gone")
	if again.Execution != first.Execution || !again.Repeated {
		t.Errorf("again %+v, first %+v", again, first)
	}
}
