package job_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/job"
)

// What AppendShard writes is JSON, and ReadShard reads the same shard from it. The count of fields is held, so that a
// new one is not forgotten.
func TestAppendShardComesBack(t *testing.T) {
	if n := reflect.TypeFor[job.Shard]().NumField(); n != 26 {
		t.Errorf("%d fields: does AppendShard write them all?", n)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.SampledFrom([]string{"", "a", `"\`, "<&>", "\u2028", "任务"}), rapid.StringMatching(`[a-zé ]*`))
		number := rapid.OneOf(rapid.Just[int64](0), rapid.Int64())
		raw := rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{"a":[1,2.5,null],"b":"<&>\u0000"}`), json.RawMessage(`9007199254740993`)})
		n := func(name string) int64 { return number.Draw(t, name) }
		at := func(name string) job.Instant { return job.Instant(n(name)) }
		s := job.Shard{Reason: job.Reason(text.Draw(t, "reason")), Token: job.Token(n("token")), Session: job.SessionID(text.Draw(t, "session")),
			Worker: text.Draw(t, "worker"), Closed: rapid.Bool().Draw(t, "closed"), Confirmed: rapid.Bool().Draw(t, "confirmed"),
			Attempt: int(n("attempt")), Faults: int(n("faults")), Losses: int(n("losses")), LeasedAt: at("leased"), StartedAt: at("started"),
			EndedAt: at("ended"), TimeoutAt: at("timeout"), RetryAt: at("retry"), StopBy: at("stop"), ReportSeq: n("report"),
			Checkpoint: raw.Draw(t, "checkpoint"), CheckpointSeq: n("checkpoint seq"),
			Progress: job.Progress{Done: n("done"), Total: n("total"), Note: text.Draw(t, "note")}, Result: raw.Draw(t, "result")}
		if rapid.Bool().Draw(t, "failed") {
			s.Error = &job.Failure{Class: text.Draw(t, "class"), Message: text.Draw(t, "message")}
			s.Attempts = []job.Attempt{{Number: 1, Worker: s.Worker, Error: s.Error}, {Number: 2}}
		}
		written := job.AppendShard(nil, &s)
		if !json.Valid(written) {
			t.Fatalf("no JSON: %s", written)
		}
		want := s
		got := job.Shard{Execution: job.ExecutionID{1}, Index: 2, State: job.ShardQueued}
		want.Execution, want.Index, want.State = got.Execution, got.Index, got.State
		if err := job.ReadShard(written, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\ngot  %+v, %v\nwant %+v", written, got, err, want)
		}
	})
}
