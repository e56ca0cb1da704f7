package job_test

import (
	"errors"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

func TestMisfireIsChecked(t *testing.T) {
	for _, c := range []struct {
		name  string
		spec  func(*job.Spec)
		field string // "": it is taken
	}{
		{"defaults", func(*job.Spec) {}, ""},
		{"all of it", func(s *job.Spec) {
			s.Misfire = job.Misfire{Policy: job.MisfireAll, Grace: time.Minute, Window: time.Hour, Limit: 7}
		}, ""},
		{"no such policy", func(s *job.Spec) { s.Misfire.Policy = "twice" }, "spec.misfire.policy"},
		{"limit without all", func(s *job.Spec) { s.Misfire.Limit = 3 }, "spec.misfire.limit"},
		{"limit too high", func(s *job.Spec) { s.Misfire = job.Misfire{Policy: job.MisfireAll, Limit: job.MaxCatchUp + 1} }, "spec.misfire.limit"},
		{"negative grace", func(s *job.Spec) { s.Misfire.Grace = -1 }, "spec.misfire.grace"},
		{"window below grace", func(s *job.Spec) { s.Misfire = job.Misfire{Grace: time.Hour, Window: time.Minute} }, "spec.misfire.window"},
		{"failures", func(s *job.Spec) { s.AutoPause.AfterFailures = -1 }, "spec.autoPause.afterFailures"},
		{"runs", func(s *job.Spec) {
			s.Schedules = []job.Schedule{{ID: "x", MaxRuns: -1, Spec: schedule.Spec{Every: time.Minute}}}
		}, "spec.schedules[0].maxRuns"},
	} {
		s := job.Spec{Pool: "p", Handler: "h"}
		c.spec(&s)
		err := s.Validate("default/j")
		if got, _ := errors.AsType[*job.Error](err); (err == nil) != (c.field == "") || err != nil && got.Field != c.field {
			t.Errorf("%s: %v, want field %q", c.name, err, c.field)
		}
	}
}

func TestCatchesUp(t *testing.T) {
	for _, c := range []struct {
		m    job.Misfire
		n    int
		kind job.DecisionKind
		why  job.Reason
	}{
		{job.Misfire{}, 1, job.DecisionMissed, job.ReasonMissedDown},
		{job.Misfire{Policy: job.MisfireSkip}, 0, job.DecisionSkipped, job.ReasonMisfireSkip},
		{job.Misfire{Policy: job.MisfireAll}, 100, job.DecisionMissed, job.ReasonMisfireLimit},
		{job.Misfire{Policy: job.MisfireAll, Limit: 5}, 5, job.DecisionMissed, job.ReasonMisfireLimit},
	} {
		kind, why := c.m.Why()
		if n := c.m.CatchesUp(); n != c.n || kind != c.kind || why != c.why {
			t.Errorf("%+v: %d, %s, %s", c.m, n, kind, why)
		}
	}
}
