package engine_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// ends makes what parents did of one word each: "" none, "running", or a state.
func ends(states ...job.ExecutionState) (all []job.Parent) {
	for i, s := range states {
		p := job.Parent{Job: string(rune('a' + i)), State: s}
		if s != "" {
			p.Execution = job.PlannedID(job.UID{15: byte(i + 1)}, wallStart)
		}
		all = append(all, p)
	}
	return all
}

func TestFateOf(t *testing.T) {
	const hour = job.Instant(3_600_000)
	after := func(all ...job.After) []job.After { return all }
	a, b := job.After{Job: "a"}, job.After{Job: "b"}
	failed, finished := job.After{Job: "a", On: job.OnFailed}, job.After{Job: "a", On: job.OnFinished}
	latest, day := job.After{Job: "a", Match: job.MatchLatest}, job.After{Job: "a", Match: job.MatchDay, Within: time.Hour}
	short := job.After{Job: "b", Within: time.Hour}
	for _, x := range []struct {
		name    string
		after   []job.After
		parents []job.Parent
		waited  job.Instant
		fate    engine.Fate
		why     job.Reason
	}{
		{"all succeeded", after(a, b), ends("succeeded", "succeeded"), 0, engine.FateRun, ""},
		{"one runs", after(a, b), ends("succeeded", "running"), 0, engine.FateWait, ""},
		{"one is not there", after(a, b), ends("succeeded", ""), 0, engine.FateWait, ""},
		{"one failed, whatever the other does", after(a, b), ends("", "failed"), 0, engine.FateNever, job.ReasonUpstreamFailed},
		{"partly is not succeeded", after(a), ends("partially_succeeded"), 0, engine.FateNever, job.ReasonUpstreamFailed},
		{"cancelled is not failed", after(failed), ends("cancelled"), 0, engine.FateNever, job.ReasonUpstreamFailed},
		{"a failure is waited for and did not come: nothing to tell", after(failed), ends("succeeded"), 0, engine.FateNone, job.ReasonUpstreamFailed},
		{"on failed", after(failed), ends("timed_out"), 0, engine.FateRun, ""},
		{"on finished", after(finished), ends("cancelled"), 0, engine.FateRun, ""},
		{"finished has to be ended", after(finished), ends("cancelling"), 0, engine.FateWait, ""},
		{"the default bound is not over", after(a), ends(""), 24*hour - 1, engine.FateWait, ""},
		{"the default bound", after(a), ends(""), 24 * hour, engine.FateNever, job.ReasonUpstreamMissing},
		{"the bound of one parent", after(a, short), ends("", "running"), hour, engine.FateNever, job.ReasonUpstreamMissing},
		{"its bound does not matter once it holds", after(a, short), ends("", "succeeded"), hour, engine.FateWait, ""},
		{"held when the bound is over: it runs", after(a), ends("succeeded"), 99 * hour, engine.FateRun, ""},
		{"of the latest another may come", after(latest), ends("failed"), 0, engine.FateWait, ""},
		{"of a day, too, until the bound", after(day), ends("failed"), hour - 1, engine.FateWait, ""},
		{"which says that it failed", after(day), ends("failed"), hour, engine.FateNever, job.ReasonUpstreamFailed},
		{"no parents any more", nil, nil, 0, engine.FateRun, ""},
	} {
		began := wallStart
		fate, why := engine.FateOf(x.after, x.parents, began, began+x.waited)
		if fate != x.fate || why != x.why {
			t.Errorf("%s: %s %q, want %s %q", x.name, fate, why, x.fate, x.why)
		}
	}
}

func TestTargetOf(t *testing.T) {
	child, other := job.UID{1}, job.UID{2}
	planned := &job.Execution{ID: job.PlannedID(other, wallStart), JobUID: other, Job: "a", Trigger: job.TriggerSchedule, PlannedAt: wallStart}
	asked := &job.Execution{ID: job.RequestedID(wallStart+5, [10]byte{1}), JobUID: other, Job: "a", Trigger: job.TriggerRequest, PlannedAt: wallStart + 5}
	chained := &job.Execution{ID: job.DerivedID(other, asked.ID), JobUID: other, Job: "a", Trigger: job.TriggerAfter, PlannedAt: wallStart + 5}
	def := func(own bool, all ...job.After) *job.Definition {
		d := &job.Definition{UID: child, Spec: job.Spec{After: all}}
		if own {
			d.Spec.Schedules = []job.Schedule{{ID: "main", Spec: schedule.Spec{Every: time.Hour}}}
		}
		return d
	}
	a, b := job.After{Job: "a"}, job.After{Job: "b"}
	latest := []job.After{{Job: "a", Match: job.MatchLatest}, {Job: "b", Match: job.MatchLatest}}
	set := []job.Parent{{Job: "a", Execution: planned.ID, State: job.ExecutionSucceeded, PlannedAt: wallStart}, {Job: "b", Execution: asked.ID, State: job.ExecutionSucceeded, PlannedAt: wallStart + 5}}
	older := []job.Parent{{Job: "a", Execution: chained.ID, State: job.ExecutionSucceeded}, set[1]}
	lacking := []job.Parent{set[0], {Job: "b"}}
	var none job.ExecutionID
	for _, x := range []struct {
		name    string
		def     *job.Definition
		ended   *job.Execution
		parents []job.Parent
		want    job.ExecutionID
	}{
		{"of a planned instant", def(false, a, b), planned, nil, job.PlannedID(child, wallStart)},
		{"a request of the only parent", def(false, a), asked, nil, job.DerivedID(child, asked.ID)},
		{"what came of a request goes on", def(false, a), chained, nil, job.DerivedID(child, chained.ID)},
		{"a request of one of several has no others", def(false, a, b), asked, nil, none},
		{"not a parent", def(false, b), planned, nil, none},
		{"a job with instants of its own", def(true, a), planned, nil, job.PlannedID(child, wallStart)},
		{"a request makes none for it", def(true, a), asked, nil, none},
		{"the latest of all", def(false, latest...), planned, set, job.SetID(child, wallStart+5, []job.ExecutionID{asked.ID, planned.ID})},
		{"an older one makes no set", def(false, latest...), planned, older, none},
		{"one of them is lacking", def(false, latest...), planned, lacking, none},
		{"of those with instants, what waits is judged by itself", def(true, latest...), planned, set, none},
	} {
		if got, at := engine.TargetOf(x.def, x.ended, x.parents); got != x.want || !got.IsZero() && got.PlannedAt() != at {
			t.Errorf("%s: %s at %d, want %s", x.name, got, at, x.want)
		}
	}
}

// Case C63: the date of an instant is that of a named zone, on days of 23, 24 and 25 hours.
func TestDayOf(t *testing.T) {
	for _, x := range []struct{ zone, at, first, last string }{
		{"Asia/Shanghai", "2026-03-08T06:00:00Z", "2026-03-07T16:00:00Z", "2026-03-08T15:59:59.999Z"},
		{"America/New_York", "2026-03-08T06:00:00Z", "2026-03-08T05:00:00Z", "2026-03-09T03:59:59.999Z"},
		{"America/New_York", "2026-11-01T06:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T04:59:59.999Z"},
		{"", "2026-03-08T06:00:00Z", "2026-03-08T00:00:00Z", "2026-03-08T23:59:59.999Z"},
	} {
		at, err := time.Parse(time.RFC3339, x.at)
		if err != nil {
			t.Fatal(err)
		}
		a := job.After{Match: job.MatchDay, TimeZone: x.zone}
		first, last := a.Day(job.InstantOf(at))
		if got := first.Time().Format("2006-01-02T15:04:05.999Z") + " " + last.Time().Format("2006-01-02T15:04:05.999Z"); got != x.first+" "+x.last {
			t.Errorf("%s in %q: %s, want %s %s", x.at, x.zone, got, x.first, x.last)
		}
	}
}
