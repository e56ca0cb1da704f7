package job_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/job"
)

// ReadAttempts against encoding/json: over what AppendAttempts writes, and over that with a few bytes changed.
func TestReadAttemptsAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := job.AppendAttempts(nil, rapid.SliceOfN(rapid.Custom(attempt), 0, 3).Draw(t, "attempts"))
		text = spoilt(t, text)
		var want []job.Attempt
		wantErr := json.Unmarshal(text, &want)
		got, err := job.ReadAttempts(text, "worker-1")
		if (err != nil) != (wantErr != nil) || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\ngot  %+v, %v\nwant %+v, %v", text, got, err, want, wantErr)
		}
	})
}

func attempt(t *rapid.T) job.Attempt {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "worker-1", "running", `"\`, "<&>", "\u2028", "任务"}), rapid.String())
	number := rapid.OneOf(rapid.SampledFrom([]int64{0, 1, -1, 999_999_999_999_999_999, 1_000_000_000_000_000_000}), rapid.Int64())
	a := job.Attempt{Number: int(number.Draw(t, "n")), Token: job.Token(number.Draw(t, "token")), Worker: text.Draw(t, "worker"),
		State: job.AttemptState(text.Draw(t, "state")), Reason: job.Reason(text.Draw(t, "reason")), ResumedFrom: number.Draw(t, "from"),
		StartedAt: job.Instant(number.Draw(t, "start")), EndedAt: job.Instant(number.Draw(t, "end"))}
	if rapid.Bool().Draw(t, "failed") {
		a.Error = &job.Failure{Class: text.Draw(t, "class"), Message: text.Draw(t, "message")}
	}
	return a
}

// spoilt is a text, or one that a hand has changed.
func spoilt(t *rapid.T, text []byte) []byte {
	for range rapid.IntRange(0, 2).Draw(t, "changes") {
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		to := min(len(text), at+rapid.IntRange(0, 2).Draw(t, "gone"))
		by := rapid.SampledFrom([]string{"", "0", "-", "1", " ", `"`, "}", "]", ",", "{", "null", `\u0041`, "\xff", "01", "1.5", "1e3"}).Draw(t, "by")
		text = append(append(append([]byte(nil), text[:at]...), by...), text[to:]...)
	}
	return text
}

// What a space stands before is left to encoding/json: it is the twin.
func TestReadShardAgainstTwin(t *testing.T) {
	raw := rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{"a":[1,2.5,null,"\"]}"],"b":"<&>\u0000"}`), json.RawMessage(`9007199254740993`),
		json.RawMessage(`null`), json.RawMessage(`"{"`), json.RawMessage(`[ 1 , 2 ]`), json.RawMessage(` {} `)})
	rapid.Check(t, func(t *rapid.T) {
		s := job.Shard{Closed: rapid.Bool().Draw(t, "closed"), Attempts: rapid.SliceOfN(rapid.Custom(attempt), 0, 2).Draw(t, "attempts"),
			Checkpoint: raw.Draw(t, "checkpoint"), Result: raw.Draw(t, "result"), TimeoutAt: job.Instant(rapid.Int64().Draw(t, "timeout"))}
		one := attempt(t)
		s.Reason, s.Token, s.Worker, s.Error, s.Progress.Note = one.Reason, one.Token, one.Worker, one.Error, string(one.Reason)
		text := spoilt(t, job.AppendShard(nil, &s))
		var got, want job.Shard
		err, wantErr := job.ReadShard(text, &got), job.ReadShard(append([]byte(" "), text...), &want)
		if (err != nil) != (wantErr != nil) || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\ngot  %+v, %v\nwant %+v, %v", text, got, err, want, wantErr)
		}
	})
}

func BenchmarkReadShard(b *testing.B) {
	s := job.Shard{Token: 1_800_000_000_000_001, Session: "0.0123456789abcdef01234567", Worker: "worker-1", Confirmed: true, Attempt: 1, LeasedAt: 1_800_000_000_000,
		StartedAt: 1_800_000_000_001, Checkpoint: []byte(`{"at":123456,"file":"of a run that goes on from there"}`), CheckpointSeq: 1,
		Attempts: []job.Attempt{{Number: 1, Token: 1_800_000_000_000_001, Worker: "worker-1", State: job.AttemptRunning, StartedAt: 1_800_000_000_000}}}
	text := job.AppendShard(nil, &s)
	for _, form := range []string{"", " "} { // by hand, by encoding/json
		b.Run("form="+form, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := job.ReadShard(append([]byte(form), text...), &s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
