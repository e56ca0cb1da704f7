package api_test

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

func answers(v any) func(context.Context, engine.Event) (any, error) {
	return func(context.Context, engine.Event) (any, error) { return v, nil }
}

const session = "1.0123456789abcdef01234567"

func TestOpen(t *testing.T) {
	r := newRig(t, nil)
	r.owners.answer = func(_ context.Context, ev engine.Event) (any, error) {
		o := ev.(engine.SessionOpen)
		o.Session.TTL, o.Session.Beat, o.Session.Margin = 15*time.Second, 3*time.Second, 1500*time.Millisecond
		return &engine.Opened{Session: o.Session, Call: o.Call}, nil
	}
	got := ok[takt.OpenResponse](r, open(`"call":1`, `"call":1,"epoch":7,"labels":{"zone":"a"},"build":"v1","someNewField":{"x":[1]}`))
	p := partition.Of("default", "web", 4)
	id := job.SessionIDOf(p, "default", "web", "w1", "abc")
	want := takt.OpenResponse{Session: string(id), Epoch: int64(epoch), Call: 1, TTLMs: 15000, BeatMs: 3000, MarginMs: 1500, CallTimeoutMs: 2000,
		PollMs: 20000, ServerTime: wall, Limits: takt.Limits{Params: 256 << 10, Checkpoint: 64 << 10, Result: 256 << 10, Items: 1000}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	ev := r.owners.last(t).(engine.SessionOpen)
	wantSession := job.Session{ID: id, Partition: p, Namespace: "default", Pool: "web", Worker: "w1", Incarnation: "abc", Handlers: []string{"index"},
		Slots: 4, Labels: map[string]string{"zone": "a"}, Build: "v1"}
	if d := cmp.Diff(wantSession, ev.Session); d != "" || r.owners.at[0] != p || r.owners.seen[0] != 7 {
		t.Errorf("partition %d, seen %d, (-want +got)\n%s", r.owners.at[0], r.owners.seen[0], d)
	}
}

func TestPoll(t *testing.T) {
	r := newRig(t, nil)
	id := job.RequestedID(5000, [10]byte{1})
	e := job.Execution{ID: id, Namespace: "default", Job: "nightly", Revision: 3, Handler: "index", PlannedAt: 5000, ShardTotal: 8, Params: json.RawMessage(`{"a":1}`)}
	r.owners.answer = answers(&engine.Polled{
		Assignments: []engine.Assignment{{Execution: e, Shard: 2, Attempt: 1, Token: 77, LeaseCall: 2, TimeoutIn: 500 * time.Microsecond,
			Checkpoint: json.RawMessage(`{"at":5}`), CheckpointSeq: 4, Key: "k"}},
		Cancels: []engine.Cancel{{Execution: id, Shard: 1, Token: 76, Reason: job.ReasonStalled, Grace: 10 * time.Second}}})
	got := ok[takt.PollResponse](r, post(work+"poll", `{"session":"`+session+`","epoch":5,"call":2,"number":9,"free":3,"held":[70,71],"waitMs":999999999999}`))
	want := takt.PollResponse{Epoch: int64(epoch),
		Assignments: []takt.Assignment{{Namespace: "default", Job: "nightly", Revision: 3, Execution: id.String(), Handler: "index",
			PlannedAt: time.UnixMilli(5000).UTC(), Shard: 2, ShardTotal: 8, Attempt: 1, Token: 77, LeaseCall: 2, TimeoutMs: 1,
			Params: json.RawMessage(`{"a":1}`), Checkpoint: json.RawMessage(`{"at":5}`), CheckpointSeq: 4, Key: "k"}},
		Cancels: []takt.Cancel{{Execution: id.String(), Shard: 1, Token: 76, Reason: "stalled", GraceMs: 10000}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	wantEvent := engine.Poll{Session: session, Call: 2, Number: 9, Free: 3, Held: []job.Token{70, 71}, Wait: 20 * time.Second}
	if d := cmp.Diff(wantEvent, r.owners.last(t)); d != "" || r.owners.at[0] != 1 || r.owners.seen[0] != 5 {
		t.Errorf("partition %d, (-want +got)\n%s", r.owners.at[0], d)
	}
	r.owners.answer = answers(&engine.Polled{Superseded: true})
	if got := ok[takt.PollResponse](r, post(work+"poll", `{"session":"`+session+`","epoch":5,"call":2,"waitMs":5}`)); !got.Superseded {
		t.Errorf("%+v", got)
	}
	if ev := r.owners.last(t).(engine.Poll); ev.Wait != 5*time.Millisecond {
		t.Errorf("wait %s", ev.Wait)
	}
}

func TestHeartbeatReportClose(t *testing.T) {
	r := newRig(t, nil)
	r.owners.answer = answers(&engine.Beaten{Call: 3, Renewed: []job.Token{7}, Lost: []job.Token{8}})
	beat := ok[takt.HeartbeatResponse](r, post(work+"heartbeat",
		`{"session":"`+session+`","epoch":5,"call":3,"held":[{"token":7,"progress":{"done":1,"total":2,"note":"`+strings.Repeat("é", 200)+`"}},{"token":8}],"localTime":"2026-03-01T12:00:00Z"}`))
	if d := cmp.Diff(takt.HeartbeatResponse{Epoch: int64(epoch), Call: 3, Renewed: []int64{7}, Lost: []int64{8}}, beat); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	ev := r.owners.last(t).(engine.Heartbeat)
	if len(ev.Held) != 2 || ev.Held[0].Progress.Done != 1 || ev.Held[1].Progress != nil || ev.Held[0].Progress.Note != strings.Repeat("é", 126)+"…" {
		t.Errorf("held %+v", ev.Held)
	}

	r.owners.answer = answers(&engine.Reported{Items: []engine.ItemStatus{engine.ItemAccepted, engine.ItemStale, engine.ItemUnknown}})
	id := job.RequestedID(5000, [10]byte{1})
	at := `"execution":"` + id.UUID() + `","shard":2,"token":7,`
	report := ok[takt.ReportResponse](r, post(work+"report", `{"session":"`+session+`","epoch":5,"call":4,"items":[
		{`+at+`"seq":1,"kind":"started"},
		{`+at+`"seq":2,"kind":"progress","progress":{"done":3}},
		{`+at+`"seq":3,"kind":"checkpoint","checkpoint":null},
		{`+at+`"seq":4,"kind":"done","outcome":"error","result":{"n":1},"error":{"class":"x","message":"`+strings.Repeat("m", 20000)+`"},"retryAfterMs":1500}]}`))
	if d := cmp.Diff(takt.ReportResponse{Epoch: int64(epoch), Items: []string{"accepted", "stale", "unknown"}}, report); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	base := engine.ReportItem{Execution: id, Shard: 2, Token: 7}
	started, progress, checkpoint, done := base, base, base, base
	started.Seq, started.Kind = 1, engine.ItemStarted
	progress.Seq, progress.Kind, progress.Progress = 2, engine.ItemProgress, job.Progress{Done: 3}
	checkpoint.Seq, checkpoint.Kind, checkpoint.Checkpoint = 3, engine.ItemCheckpoint, json.RawMessage("null")
	done.Seq, done.Kind, done.Outcome, done.Result, done.RetryAfter = 4, engine.ItemDone, engine.OutcomeError, json.RawMessage(`{"n":1}`), 1500*time.Millisecond
	done.Failure = &job.Failure{Class: "x", Message: strings.Repeat("m", 16384-3) + "…"}
	want := engine.Report{Session: session, Call: 4, Items: []engine.ReportItem{started, progress, checkpoint, done}}
	if d := cmp.Diff(want, r.owners.last(t)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}

	r.owners.answer = answers(&engine.Closed{})
	if got := ok[takt.CloseResponse](r, post(work+"close", `{"session":"`+session+`","epoch":5,"call":5}`)); got.Epoch != int64(epoch) {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff(engine.SessionClose{Session: session, Call: 5}, r.owners.last(t)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// The owner's refusals reach the worker with their kind and code.
func TestOwnersRefusals(t *testing.T) {
	for _, c := range []struct {
		err        error
		status     int
		code, kind string
	}{
		{job.Errorf(job.KindNotFound, "session_unknown", "no such session"), 404, "session_unknown", "not_found"},
		{job.Errorf(job.KindNoOwner, "no_owner", "nobody"), 503, "no_owner", "no_owner"},
		{job.Errorf(job.KindUnavailable, "", "database away"), 503, "unavailable", "unavailable"},
		{job.Errorf(job.KindFenced, "fenced", "an older owner"), 503, "fenced", "fenced"},
		{job.Errorf(job.KindUnknown, "unknown", "commit"), 503, "unknown", "unknown"},
		{job.Errorf(job.KindRejected, "poison", "set aside"), 422, "poison", "rejected"},
		{job.Errorf(job.KindInternal, "oops", secret).WithCause(io.ErrUnexpectedEOF), 500, "oops", "internal"},
		{io.ErrUnexpectedEOF, 500, "internal", "internal"},
		{context.DeadlineExceeded, 503, "timeout", "unavailable"},
	} {
		r := newRig(t, nil)
		r.owners.answer = func(context.Context, engine.Event) (any, error) { return nil, c.err }
		w := r.do(post(work+"poll", `{`+sess+`}`))
		raw, after := w.Body.String(), w.Header().Get("Retry-After")
		if got := w.Header().Get(takt.EpochHeader); got != strconv.FormatInt(int64(epoch), 10) {
			t.Errorf("%v: epoch %q", c.err, got)
		}
		p := isProblem(t, w, c.status, c.code)
		if p.Kind != c.kind || (after != "") != (c.status == 503) {
			t.Errorf("%v: kind %s, Retry-After %q", c.err, p.Kind, after)
		}
		if strings.Contains(raw, secret) || strings.Contains(raw, "EOF") {
			t.Errorf("%v leaks: %s", c.err, raw)
		}
		if logged := strings.Count(r.log.String(), "level=ERROR"); (logged == 1) != (c.status == 500) {
			t.Errorf("%v: logged %d times:\n%s", c.err, logged, r.log)
		}
	}
	r := newRig(t, nil)
	r.owners.answer = answers(&engine.Closed{}) // no answer to a poll
	refused(r, post(work+"poll", `{`+sess+`}`), 500, "bad_answer")
	r.owners.answer = func(context.Context, engine.Event) (any, error) { panic("boom") }
	refused(r, post(work+"poll", `{`+sess+`}`), 500, "internal")
	if !strings.Contains(r.log.String(), "boom") {
		t.Error("a panic is not in the log")
	}
}
