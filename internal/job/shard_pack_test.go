package job_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/job"
)

// readPacked reads a packed shard whole.
func readPacked(b []byte, s *job.Shard) error {
	failure, attempts, err := job.ReadPackedShard(b, s, func(b []byte) string { return string(b) })
	if err == nil && failure != nil {
		err = json.Unmarshal(failure, &s.Error)
	}
	if err == nil && attempts != nil {
		s.Attempts, err = job.ReadAttempts(attempts, s.Worker)
	}
	return err
}

// What AppendPackedShard writes is read as the same shard. The count of fields is held, so that a new one is not forgotten.
func TestPackedShardComesBack(t *testing.T) {
	if n := reflect.TypeFor[job.Shard]().NumField(); n != 26 {
		t.Errorf("%d fields: does AppendPackedShard write them all?", n)
	}
	states := []job.ShardState{job.ShardQueued, job.ShardLeased, job.ShardRunning, job.ShardRetryWait, job.ShardStopping,
		job.ShardSucceeded, job.ShardFailed, job.ShardTimedOut, job.ShardCancelled}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.SampledFrom([]string{"", "a", `"\`, "<&>", "任务"}), rapid.StringMatching(`[a-zé ]*`))
		number := rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(0, 1<<45), rapid.Int64())
		raw := rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{"a":[1,2.5,null],"b":"<&>\u0000"}`), json.RawMessage(`9007199254740993`)})
		n := func(name string) int64 { return number.Draw(t, name) }
		at := func(name string) job.Instant { return job.Instant(n(name)) }
		s := job.Shard{State: rapid.SampledFrom(states).Draw(t, "state"), Reason: job.Reason(text.Draw(t, "reason")), Token: job.Token(n("token")),
			Session: job.SessionID(text.Draw(t, "session")), Worker: text.Draw(t, "worker"), Closed: rapid.Bool().Draw(t, "closed"),
			Confirmed: rapid.Bool().Draw(t, "confirmed"), Attempt: int(n("attempt")), Faults: int(n("faults")), Losses: int(n("losses")),
			LeasedAt: at("leased"), StartedAt: at("started"), EndedAt: at("ended"), TimeoutAt: at("timeout"), RetryAt: at("retry"),
			StopBy: at("stop"), ReportSeq: n("report"), Checkpoint: raw.Draw(t, "checkpoint"), CheckpointSeq: n("checkpoint seq"),
			Progress: job.Progress{Done: n("done"), Total: n("total"), Note: text.Draw(t, "note")}, Result: raw.Draw(t, "result")}
		switch rapid.IntRange(0, 4).Draw(t, "attempts") {
		case 0:
			s.Error = &job.Failure{Class: text.Draw(t, "class"), Message: text.Draw(t, "message")}
			s.Attempts = []job.Attempt{{Number: 1, Worker: s.Worker, State: job.AttemptFailed, Error: s.Error}, {Number: 2, State: job.AttemptRunning}}
		case 1:
			s.Attempts = []job.Attempt{{Number: s.Attempt, Token: s.Token, Worker: s.Worker, State: job.AttemptRunning, StartedAt: s.LeasedAt}}
		case 2:
			s.Attempts = []job.Attempt{{Number: s.Attempt, Token: s.Token, Worker: s.Worker, State: job.AttemptSucceeded, StartedAt: s.LeasedAt, EndedAt: s.EndedAt}}
		case 3:
			s.Attempts = []job.Attempt{{Number: s.Attempt, Token: s.Token, Worker: s.Worker, State: job.AttemptSucceeded, StartedAt: s.LeasedAt, EndedAt: s.EndedAt + 1}}
		}
		packed := job.AppendPackedShard(nil, &s)
		want := s
		got := job.Shard{Execution: job.ExecutionID{1}, Index: 2}
		want.Execution, want.Index = got.Execution, got.Index
		if err := readPacked(packed, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%x\ngot  %+v, %v\nwant %+v", packed, got, err, want)
		}
		if got := job.PackedState(packed); got != s.State {
			t.Fatalf("state %q, want %q", got, s.State)
		}
		cut := packed[:rapid.IntRange(0, len(packed)-1).Draw(t, "cut")]
		if err := readPacked(cut, &got); err == nil {
			t.Fatalf("%x was read, cut off of %x", cut, packed)
		}
	})
}

func TestPackedShardIsSmall(t *testing.T) {
	queued := job.Shard{State: job.ShardQueued}
	done := job.Shard{State: job.ShardSucceeded, Token: 1_764_489_600_123_456, Worker: "worker-1", Confirmed: true, Attempt: 1,
		LeasedAt: 1_764_489_600_123, EndedAt: 1_764_489_600_223, ReportSeq: 2}
	done.Attempts = []job.Attempt{{Number: 1, Token: done.Token, Worker: done.Worker, State: job.AttemptSucceeded, StartedAt: done.LeasedAt, EndedAt: done.EndedAt}}
	for _, tt := range []struct {
		name  string
		shard *job.Shard
		most  int
	}{{"queued", &queued, 2}, {"succeeded", &done, 40}} {
		if n := len(job.AppendPackedShard(nil, tt.shard)); n > tt.most {
			t.Errorf("a %s shard takes %d bytes, want %d at most", tt.name, n, tt.most)
		}
	}
}

func BenchmarkPackShard(b *testing.B) {
	s := job.Shard{State: job.ShardSucceeded, Token: 1_764_489_600_123_456, Worker: "worker-1", Confirmed: true, Attempt: 1,
		LeasedAt: 1_764_489_600_123, EndedAt: 1_764_489_600_223, ReportSeq: 2}
	s.Attempts = []job.Attempt{{Number: 1, Token: s.Token, Worker: s.Worker, State: job.AttemptSucceeded, StartedAt: s.LeasedAt, EndedAt: s.EndedAt}}
	var packed []byte
	for b.Loop() {
		packed = job.AppendPackedShard(packed[:0], &s)
	}
}
