package job_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/job"
)

// AppendAttempts against encoding/json. The count of fields is held, so that a new one is not forgotten.
func TestAppendAttemptsAgainstTwin(t *testing.T) {
	if n := reflect.TypeFor[job.Attempt]().NumField() + reflect.TypeFor[job.Failure]().NumField(); n != 11 {
		t.Errorf("%d fields: does AppendAttempts write them all?", n)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.SampledFrom([]string{"", "a", `"\`, "<&>", "\u2028", "\xff", "任务"}), rapid.String())
		number := rapid.OneOf(rapid.Just[int64](0), rapid.Int64())
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) job.Attempt {
			a := job.Attempt{Number: int(number.Draw(t, "n")), Token: job.Token(number.Draw(t, "token")), Worker: text.Draw(t, "worker"),
				State: job.AttemptState(text.Draw(t, "state")), Reason: job.Reason(text.Draw(t, "reason")), ResumedFrom: number.Draw(t, "from"),
				StartedAt: job.Instant(number.Draw(t, "start")), EndedAt: job.Instant(number.Draw(t, "end"))}
			if rapid.Bool().Draw(t, "failed") {
				a.Error = &job.Failure{Class: text.Draw(t, "class"), Message: text.Draw(t, "message")}
			}
			return a
		}), 0, 3).Draw(t, "attempts")
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(all); err != nil {
			t.Fatal(err)
		}
		if got := string(job.AppendAttempts(nil, all)) + "\n"; got != want.String() {
			t.Fatalf("got  %s\nwant %s", got, want.String())
		}
	})
}
