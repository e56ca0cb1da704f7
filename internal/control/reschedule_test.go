package control_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
)

// A request is for the instant that it names; one that has passed is for now, and one too far ahead is refused.
func TestTriggerLater(t *testing.T) {
	c, st := open(t, &owner{}, nil)
	mustPut(t, c, put("nightly", "web"))
	now := job.InstantOf(wall)
	for _, x := range []struct {
		when control.When
		want job.Instant
		past bool
		code string
	}{
		{control.When{}, now, false, ""},
		{control.When{In: 30 * time.Minute}, now.Add(30 * time.Minute), false, ""},
		{control.When{At: wall.Add(time.Hour)}, now.Add(time.Hour), false, ""},
		{control.When{At: wall.Add(-time.Hour)}, now, true, ""},
		{control.When{At: wall.Add(control.MaxDelay)}, now.Add(control.MaxDelay), false, ""},
		{control.When{At: wall.Add(control.MaxDelay + time.Second)}, 0, false, "instant_too_far"},
		{control.When{In: control.MaxDelay + time.Second}, 0, false, "instant_too_far"},
		{control.When{In: -time.Second}, 0, false, "instant_too_far"},
		{control.When{At: wall, In: time.Second}, 0, false, "at_and_in"},
	} {
		got, err := c.Trigger(t.Context(), control.TriggerRequest{Namespace: "default", Job: "nightly", When: x.when})
		if x.code != "" {
			wantCode(t, err, job.KindInvalid, x.code)
			continue
		}
		if err != nil || got.PlannedAt != x.want || got.Past != x.past || got.Execution.PlannedAt() != x.want {
			t.Errorf("%v: %+v, %v; want %v", x.when, got, err, x.want)
			continue
		}
		e, err := st.Execution(t.Context(), "default", got.Execution)
		if err != nil || e.PlannedAt != x.want || e.State != job.ExecutionScheduled {
			t.Errorf("%v: stored %+v, %v", x.when, e, err)
		}
	}
}

// A key stands for the instant as it was asked for: the same words later are the same request.
func TestTriggerLaterOnce(t *testing.T) {
	at := wall
	c, _ := open(t, &owner{}, func(cfg *control.Config) { cfg.Now = func() time.Time { return at } })
	mustPut(t, c, put("nightly", "web"))
	ask := control.TriggerRequest{Namespace: "default", Job: "nightly", Key: "order-17", When: control.When{In: time.Hour}}
	first, err := c.Trigger(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	at = at.Add(time.Minute)
	again, err := c.Trigger(t.Context(), ask)
	if err != nil || !again.Repeated || again.Execution != first.Execution || again.PlannedAt != first.PlannedAt {
		t.Errorf("%+v, %v; want %+v", again, err, first)
	}
	ask.When.In += time.Minute
	_, err = c.Trigger(t.Context(), ask)
	wantCode(t, err, job.KindConflict, "idempotency_key_reused")
	id, err := c.Requested(t.Context(), "default", "nightly", "order-17")
	if err != nil || id != first.Execution {
		t.Errorf("%v, %v", id, err)
	}
	moved, err := c.Reschedule(t.Context(), control.RescheduleRequest{AskRequest: control.AskRequest{Namespace: "default", Execution: id}, When: control.When{In: 2 * time.Hour}})
	if err != nil || moved.PlannedAt != job.InstantOf(at).Add(2*time.Hour) || moved.Past {
		t.Errorf("%+v, %v", moved, err)
	}
	now, err := c.Trigger(t.Context(), control.TriggerRequest{Namespace: "default", Job: "nightly"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Reschedule(t.Context(), control.RescheduleRequest{AskRequest: control.AskRequest{Namespace: "default", Execution: now.Execution}})
	wantCode(t, err, job.KindConflict, "execution_not_scheduled")
	_, err = c.Requested(t.Context(), "default", "nightly", "a b")
	wantCode(t, err, job.KindInvalid, "bad_idempotency_key")
	_, err = c.Requested(t.Context(), "default", "nightly", "nobody")
	wantCode(t, err, job.KindNotFound, "request_not_found")
}
