package job_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

func TestCheckAfter(t *testing.T) {
	many := make([]job.After, job.MaxAfter+1)
	for i := range many {
		many[i].Job = fmt.Sprintf("j%d", i)
	}
	own := []job.Schedule{{ID: "main", Spec: schedule.Spec{Every: time.Hour}}}
	for _, x := range []struct {
		name      string
		after     []job.After
		schedules []job.Schedule
		code      string
		field     string
	}{
		{"none", nil, nil, "", ""},
		{"as many as may be", many[1:], nil, "", ""},
		{"too many", many, nil, "too_many_parents", "spec.after"},
		{"no name", []job.After{{}}, nil, "bad_name", "spec.after[0].job"},
		{"another namespace", []job.After{{Job: "other/a"}}, nil, "bad_name", "spec.after[0].job"},
		{"twice", []job.After{{Job: "a"}, {Job: "b"}, {Job: "a", On: job.OnFailed}}, nil, "doubled_parent", "spec.after[2].job"},
		{"no end", []job.After{{Job: "a", On: "done"}}, nil, "bad_on", "spec.after[0].on"},
		{"no match", []job.After{{Job: "a", Match: "any"}}, nil, "bad_match", "spec.after[0].match"},
		{"a day without a schedule", []job.After{{Job: "a", Match: job.MatchDay}}, nil, "bad_match", "spec.after[0].match"},
		{"a day", []job.After{{Job: "a", Match: job.MatchDay, TimeZone: "Asia/Shanghai"}}, own, "", ""},
		{"no zone", []job.After{{Job: "a", Match: job.MatchDay, TimeZone: "Mars/Base"}}, own, "bad_time_zone", "spec.after[0].timeZone"},
		{"the machine's zone", []job.After{{Job: "a", Match: job.MatchDay, TimeZone: "Local"}}, own, "bad_time_zone", "spec.after[0].timeZone"},
		{"a zone of no day", []job.After{{Job: "a", TimeZone: "UTC"}}, own, "bad_time_zone", "spec.after[0].timeZone"},
		{"mixed without a schedule", []job.After{{Job: "a"}, {Job: "b", Match: job.MatchLatest}}, nil, "bad_match", "spec.after[1].match"},
		{"mixed with one", []job.After{{Job: "a"}, {Job: "b", Match: job.MatchLatest}}, own, "", ""},
		{"shorter than a second", []job.After{{Job: "a", Within: time.Millisecond}}, nil, "out_of_range", "spec.after[0].within"},
		{"negative", []job.After{{Job: "a", Within: -time.Hour}}, nil, "out_of_range", "spec.after[0].within"},
	} {
		s := job.Spec{Pool: "p", Handler: "h", After: x.after, Schedules: x.schedules}
		err := s.Validate("default/x")
		e, bad := errors.AsType[*job.Error](err)
		if bad != (x.code != "") || bad && (e.Code != x.code || e.Field != x.field || e.Kind != job.KindInvalid) {
			t.Errorf("%s: %+v, want %q at %s", x.name, err, x.code, x.field)
		}
	}
}

// The identities of what others lead to are functions of those, in any order, and of nothing else.
func TestDerivedIDs(t *testing.T) {
	child, other := job.UID{1}, job.UID{2}
	a, b := job.PlannedID(other, 1000), job.PlannedID(other, 2000)
	if job.SetID(child, 2000, []job.ExecutionID{a, b}) != job.SetID(child, 2000, []job.ExecutionID{b, a}) {
		t.Error("the order of parents matters")
	}
	seen := map[job.ExecutionID]string{}
	for name, id := range map[string]job.ExecutionID{"of a": job.DerivedID(child, a), "of b": job.DerivedID(child, b), "of another child": job.DerivedID(other, a),
		"of both": job.SetID(child, 2000, []job.ExecutionID{a, b}), "planned": job.PlannedID(child, 1000)} {
		if seen[id] != "" {
			t.Errorf("%s and %s are the same", name, seen[id])
		}
		seen[id] = name
	}
	if at := job.DerivedID(child, b).PlannedAt(); at != 2000 {
		t.Errorf("it says %d, its parent 2000", at)
	}
}
