package main

import (
	"cmp"
	"fmt"

	"github.com/taktsched/takt"
)

// misfireFacts tell what becomes of missed instants, and why schedules fire no more.
func (a *account) misfireFacts(j *takt.Job) {
	if m := j.Spec.Misfire; m != nil {
		text := cmp.Or(m.Policy, "once")
		if m.Policy == "all" {
			text += fmt.Sprintf(", at most %d", cmp.Or(m.Limit, 100))
		}
		a.fact("Misfire", fmt.Sprintf("%s, grace %s, window %s (0s: default)", text, m.Grace, m.Window))
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
