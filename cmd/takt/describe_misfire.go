package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
)

// misfireFacts tell what becomes of missed instants, and why schedules fire no more.
func (a *account) misfireFacts(j *takt.Job) {
	if m := j.Spec.Misfire; m != nil {
		rule := job.Misfire{Policy: job.MisfirePolicy(m.Policy), Window: m.Window.Std(), Limit: m.Limit}
		text := cmp.Or(m.Policy, string(job.MisfireOnce))
		if rule.Policy == job.MisfireAll {
			text += fmt.Sprintf(", at most %d", rule.CatchesUp())
		}
		a.fact("Misfire", fmt.Sprintf("%s, grace %s, window %s", text, graceText(m.Grace), takt.Duration(rule.WithinWindow())))
	}
	if p := j.Spec.AutoPause; p != nil {
		a.fact("Auto-pause", fmt.Sprintf("after %d failures in a row", p.AfterFailures))
	}
	if j.Status == nil {
		return
	}
	if p := j.Status.AutoPaused; p != nil {
		a.fact("Auto-paused", p.Text)
	}
	for _, s := range j.Status.Schedules {
		text := fmt.Sprintf("%s: %d of %d", s.Name, s.Runs, s.MaxRuns)
		if s.UsedUp {
			text = fmt.Sprintf("%s has made its %d runs and fires no more", s.Name, s.MaxRuns)
		}
		a.fact("Runs made", text)
	}
	if c := j.Status.CatchingUp; c != nil {
		a.when("Catches up from", &c.From)
		a.when("to", &c.To)
	}
}

// timeoutText says which time-outs are in force.
func timeoutText(t *takt.TimeoutSpec) string {
	var all []string
	if t.Attempt != 0 {
		all = append(all, "attempt "+t.Attempt.String())
	}
	if t.Stall != 0 {
		all = append(all, "stall "+t.Stall.String())
	}
	spec := job.Spec{Timeout: job.Timeout{Grace: t.Grace.Std()}}
	return strings.Join(append(all, "grace "+takt.Duration(spec.StopGrace()).String()), ", ")
}

// graceText says which grace is in force: servers take none that is shorter than twice their lease of a partition.
func graceText(own takt.Duration) string {
	const least = 10 * time.Second // with the lease that servers have
	if own != 0 && own.Std() < least {
		return fmt.Sprintf("%s (%s is less than servers take)", takt.Duration(least), own)
	}
	return cmp.Or(own, takt.Duration(time.Minute)).String()
}
