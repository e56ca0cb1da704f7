package job_test

import (
	"errors"
	"testing"

	"github.com/taktsched/takt/internal/job"
)

func TestOverlap(t *testing.T) {
	t.Parallel()
	n := func(n int) *int { return &n }
	for _, c := range []struct {
		name              string
		is                *job.Overlap
		policy            job.OverlapPolicy
		wait              int
		scheduled, asked  bool // obey it
		field, code, hint string
	}{
		{name: "undeclared", policy: job.OverlapQueue, wait: 1, scheduled: true},
		{name: "declared", is: &job.Overlap{}, policy: job.OverlapQueue, wait: 1, scheduled: true, asked: true},
		{name: "bounds", is: &job.Overlap{Policy: job.OverlapQueue, MaxQueued: n(0)}, policy: job.OverlapQueue, scheduled: true, asked: true},
		{name: "many", is: &job.Overlap{MaxQueued: n(1000)}, policy: job.OverlapQueue, wait: 1000, scheduled: true, asked: true},
		{name: "skip", is: &job.Overlap{Policy: job.OverlapSkip}, policy: job.OverlapSkip, wait: 1, scheduled: true, asked: true},
		{name: "replace", is: &job.Overlap{Policy: job.OverlapReplace}, policy: job.OverlapReplace, wait: 1, scheduled: true, asked: true},
		{name: "allow", is: &job.Overlap{Policy: job.OverlapAllow}, policy: job.OverlapAllow, wait: 1},
		{name: "strange", is: &job.Overlap{Policy: "forbid"}, field: "spec.overlap.policy", code: "bad_overlap", hint: "one of queue, skip, replace, allow"},
		{name: "less than none", is: &job.Overlap{MaxQueued: n(-1)}, field: "spec.overlap.maxQueued", code: "out_of_range", hint: "write a number from 0 (none waits) to 1000"},
		{name: "too many", is: &job.Overlap{MaxQueued: n(1001)}, field: "spec.overlap.maxQueued", code: "out_of_range", hint: "write a number from 0 (none waits) to 1000"},
		{name: "nothing to queue", is: &job.Overlap{Policy: job.OverlapSkip, MaxQueued: n(1)}, field: "spec.overlap.maxQueued", code: "bad_overlap",
			hint: "leave maxQueued out, or choose the policy queue"},
	} {
		s := validSpec()
		s.Overlap = c.is
		if err := s.Validate("default/j"); err != nil || c.code != "" {
			bad, ok := errors.AsType[*job.Error](err)
			if !ok || bad.Kind != job.KindInvalid || bad.Field != c.field || bad.Code != c.code || bad.Hint != c.hint {
				t.Errorf("%s: %+v", c.name, err)
			}
			continue
		}
		if s.OverlapOf() != c.policy || s.MayWait() != c.wait {
			t.Errorf("%s: %s with %d, want %s with %d", c.name, s.OverlapOf(), s.MayWait(), c.policy, c.wait)
		}
		if a, b := s.Obeys(job.TriggerSchedule), s.Obeys(job.TriggerRequest); a != c.scheduled || b != c.asked {
			t.Errorf("%s: scheduled %v, asked %v, want %v, %v", c.name, a, b, c.scheduled, c.asked)
		}
	}
}
