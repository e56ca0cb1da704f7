package job_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

func validSpec() job.Spec {
	return job.Spec{
		Pool: "billing", Handler: "invoices.Close/v2", Params: json.RawMessage(`{"n":1}`), Shards: 8,
		Schedules: []job.Schedule{{ID: "main", Spec: schedule.Spec{Cron: "30 2 * * *", TimeZone: "Europe/Berlin"}}},
		Retry:     job.Retry{MaxAttempts: 3, Initial: time.Second, Factor: 1.5, Max: time.Minute, Jitter: job.JitterNone},
		Timeout:   job.Timeout{Attempt: time.Hour, Stall: time.Minute, Grace: time.Second},
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		wrong func(*job.Spec)
		field string
		kind  job.Kind
	}{
		{"whole", func(*job.Spec) {}, "", ""},
		{"least", func(s *job.Spec) { *s = job.Spec{Pool: "p", Handler: "h"} }, "", ""},
		{"no pool", func(s *job.Spec) { s.Pool = "" }, "spec.pool", job.KindInvalid},
		{"pool", func(s *job.Spec) { s.Pool = "Billing" }, "spec.pool", job.KindInvalid},
		{"pool end", func(s *job.Spec) { s.Pool = "billing-" }, "spec.pool", job.KindInvalid},
		{"pool length", func(s *job.Spec) { s.Pool = strings.Repeat("a", 64) }, "spec.pool", job.KindInvalid},
		{"pool line", func(s *job.Spec) { s.Pool = "billing\n" }, "spec.pool", job.KindInvalid},
		{"long texts", func(s *job.Spec) {
			s.Title, s.Owner, s.Description = strings.Repeat("账", 256), strings.Repeat("单", 256), strings.Repeat("月", 4096)
		}, "", ""},
		{"title", func(s *job.Spec) { s.Title = strings.Repeat("账", 257) }, "spec.title", job.KindInvalid},
		{"owner", func(s *job.Spec) { s.Owner = "a\x00" }, "spec.owner", job.KindInvalid},
		{"description", func(s *job.Spec) { s.Description = "\xff" }, "spec.description", job.KindInvalid},
		{"second schedule", func(s *job.Spec) {
			s.Schedules = append(s.Schedules, job.Schedule{ID: "b", Spec: schedule.Spec{Cron: "61 * * * *"}})
		}, "spec.schedules[0].cron", job.KindInvalid},
		{"many schedules", func(s *job.Spec) { s.Schedules = make([]job.Schedule, job.MaxSchedules+1) }, "spec.schedules", job.KindInvalid},
		{"no handler", func(s *job.Spec) { s.Handler = "" }, "spec.handler", job.KindInvalid},
		{"handler", func(s *job.Spec) { s.Handler = "a b" }, "spec.handler", job.KindInvalid},
		{"handler length", func(s *job.Spec) { s.Handler = strings.Repeat("a", 129) }, "spec.handler", job.KindInvalid},
		{"params", func(s *job.Spec) { s.Params = json.RawMessage(`{"n":`) }, "spec.params", job.KindInvalid},
		{"two params", func(s *job.Spec) { s.Params = json.RawMessage(`1 2`) }, "spec.params", job.KindInvalid},
		{"large params", func(s *job.Spec) { s.Params = json.RawMessage(`"` + strings.Repeat("a", job.MaxParams) + `"`) }, "spec.params", job.KindTooLarge},
		{"shards", func(s *job.Spec) { s.Shards = -1 }, "spec.shards.count", job.KindInvalid},
		{"many shards", func(s *job.Spec) { s.Shards = 10_001 }, "spec.shards.count", job.KindInvalid},
		{"attempts", func(s *job.Spec) { s.Retry.MaxAttempts = 101 }, "spec.retry.maxAttempts", job.KindInvalid},
		{"negative attempts", func(s *job.Spec) { s.Retry.MaxAttempts = -1 }, "spec.retry.maxAttempts", job.KindInvalid},
		{"factor", func(s *job.Spec) { s.Retry.Factor = 0.5 }, "spec.retry.backoff.factor", job.KindInvalid},
		{"large factor", func(s *job.Spec) { s.Retry.Factor = 10.1 }, "spec.retry.backoff.factor", job.KindInvalid},
		{"no factor", func(s *job.Spec) { s.Retry.Factor = math.NaN() }, "spec.retry.backoff.factor", job.KindInvalid},
		{"jitter", func(s *job.Spec) { s.Retry.Jitter = "some" }, "spec.retry.backoff.jitter", job.KindInvalid},
		{"initial", func(s *job.Spec) { s.Retry.Initial = -1 }, "spec.retry.backoff.initial", job.KindInvalid},
		{"max", func(s *job.Spec) { s.Retry.Max = job.MaxDuration + 1 }, "spec.retry.backoff.max", job.KindInvalid},
		{"attempt timeout", func(s *job.Spec) { s.Timeout.Attempt = -time.Second }, "spec.timeout.attempt", job.KindInvalid},
		{"stall", func(s *job.Spec) { s.Timeout.Stall = -time.Second }, "spec.timeout.stall", job.KindInvalid},
		{"grace", func(s *job.Spec) { s.Timeout.Grace = time.Microsecond }, "spec.timeout.grace", job.KindInvalid},
		{"cron", func(s *job.Spec) { s.Schedules[0].Cron = "61 * * * *" }, "spec.schedule.cron", job.KindInvalid},
		{"zone", func(s *job.Spec) { s.Schedules[0].TimeZone = "Nowhere" }, "spec.schedule.timeZone", job.KindInvalid},
		{"every", func(s *job.Spec) { s.Schedules[0].Spec = schedule.Spec{Every: 1} }, "spec.schedule.every", job.KindInvalid},
		{"no schedule", func(s *job.Spec) { s.Schedules[0].Spec = schedule.Spec{} }, "spec.schedule", job.KindInvalid},
		{"schedule without id", func(s *job.Spec) { s.Schedules[0].ID = "" }, "spec.schedules[0].name", job.KindInvalid},
		{"same id", func(s *job.Spec) { s.Schedules = append(s.Schedules, s.Schedules[0]) }, "spec.schedule.name", job.KindInvalid},
	} {
		spec := validSpec()
		c.wrong(&spec)
		err := spec.Validate("default/a")
		if job.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want kind %q", c.name, err, c.kind)
			continue
		}
		if c.kind == "" {
			continue
		}
		if e := err.(*job.Error); e.Field != c.field || e.Message == "" || e.Code == "" || e.Hint == "" {
			t.Errorf("%s: field %q (%v), want %q", c.name, e.Field, e, c.field)
		}
	}
}

// Where the expression is wrong is told, and what to write.
func TestValidateSaysWhere(t *testing.T) {
	t.Parallel()
	spec := validSpec()
	spec.Schedules[0].Cron = "0 22-2 * * *"
	err := spec.Validate("default/a")
	e, ok := err.(*job.Error)
	if !ok || !strings.Contains(e.Message, "position 3") || !strings.Contains(e.Hint, "from 22") {
		t.Errorf("%v, %+v", err, e)
	}
}

// TestValidateAsPlanned: what is taken can be planned, and what can be planned is taken, whatever the job's name gives H and
// the spread, and whenever the job is created.
func TestValidateAsPlanned(t *testing.T) {
	t.Parallel()
	created := job.InstantOf(time.Date(2026, 11, 20, 3, 4, 5, 0, time.UTC))
	start, end := created.Time().Add(time.Hour), created.Time().Add(20*time.Hour)
	for _, planned := range []schedule.Spec{
		{Cron: "0 0 H(29-31) 4 *"},
		{Cron: "0 H * * *", Start: start, End: end},
		{Cron: "0 4 * * *", Jitter: time.Hour, Start: start, End: created.Time().Add(90 * time.Minute)},
		{Every: 15 * time.Hour, Start: start, End: end},
		{Every: 15 * time.Hour, Phase: time.Hour, Start: start, End: end},
	} {
		taken := 0
		for i := range 40 {
			d := job.Definition{Namespace: "default", Name: fmt.Sprintf("job-%d", i), CreatedAt: created, Spec: validSpec()}
			d.Spec.Schedules[0].Spec = planned
			refused := d.Spec.Validate(job.Seed(d.Namespace, d.Name))
			_, err := d.Parse(planned)
			if (refused == nil) != (err == nil) {
				t.Fatalf("%+v of %s: validation says %v, the plan %v", planned, d.Name, refused, err)
			}
			if err == nil {
				taken++
			}
		}
		if taken == 0 {
			t.Errorf("%+v is never taken", planned)
		}
		if _, err := schedule.Parse(planned, time.Unix(0, 0)); err != nil { // a file is judged before its job has a name
			t.Errorf("%+v: %v, though it may fire", planned, err)
		}
	}
}

func TestReasonText(t *testing.T) {
	t.Parallel()
	if got := job.WaitNoHandler.Text(); got != "no live worker offers the handler" {
		t.Error(got)
	}
	if got := job.Reason("of_later").Text(); got != "of_later" {
		t.Error(got)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	var s job.Spec
	if s.ShardTotal() != 1 || s.StopGrace() != 10*time.Second {
		t.Errorf("%d shards, grace %v", s.ShardTotal(), s.StopGrace())
	}
	s.Shards, s.Timeout.Grace = 8, time.Second
	if s.ShardTotal() != 8 || s.StopGrace() != time.Second {
		t.Errorf("%d shards, grace %v", s.ShardTotal(), s.StopGrace())
	}
}
