package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/schedule"
)

var (
	jobHeader       = []string{"NAME", "POOL", "HANDLER", "SCHEDULE", "SHARDS", "ENABLED", "NEXT", "LAST", "REVISION", "LABELS", "OWNER", "TITLE"}
	executionHeader = []string{"EXECUTION", "JOB", "STATE", "SHARDS", "TRIGGER", "PLANNED", "TOOK", "WHY", "POOL", "HANDLER", "REVISION", "ROUND", "STARTED", "ENDED"}
	shardHeader     = []string{"SHARD", "STATE", "WORKER", "ATTEMPT", "TOKEN", "LEASE", "PROGRESS", "CHECKPOINTS", "WHY", "FAULTS", "LOSSES", "KEY"}
	workerHeader    = []string{"WORKER", "POOL", "BUSY", "SLOTS", "BEAT", "LEASE", "SKEW", "OPENED", "HANDLERS", "BUILD", "LABELS", "SESSION"}
	poolHeader      = []string{"POOL", "WORKERS", "BUSY", "SLOTS", "QUEUED"}
	decisionHeader  = []string{"JOB", "KIND", "COUNT", "FROM", "TO", "WHY", "SCHEDULE"}
)

func jobRow(j *takt.Job) []string {
	shards, next, last := 1, "", ""
	if j.Spec.Shards != nil {
		shards = j.Spec.Shards.Count
	}
	if j.Status != nil {
		next, last = since(j.Status.NextPlannedAt), since(j.Status.LastPlannedAt)
	}
	enabled := strconv.FormatBool(j.Spec.Enabled == nil || *j.Spec.Enabled)
	if j.Status != nil && j.Status.AutoPaused != nil && enabled == "true" {
		enabled = "auto-paused"
	}
	if j.Status != nil && j.Status.Paused != nil && enabled == "true" {
		enabled = "paused"
		if until := j.Status.Paused.Until; until != nil {
			enabled += " until " + until.Local().Format(time.RFC3339)
		}
	}
	if j.Status != nil && j.Status.Unfit != "" {
		enabled = "unfit: " + j.Status.Unfit
	}
	return []string{j.Metadata.Name, j.Spec.Pool, j.Spec.Handler, schedulesText(&j.Spec), strconv.Itoa(shards),
		enabled, next, last, strconv.FormatInt(j.Metadata.Revision, 10),
		labelsText(j.Metadata.Labels), j.Spec.Owner, j.Spec.Title}
}

// schedulesText is all of a job's schedules on one line.
func schedulesText(spec *takt.JobSpec) string {
	var all []string
	if spec.Schedule == nil && len(spec.Schedules) == 0 && len(spec.After) > 0 {
		for i := range spec.After {
			all = append(all, spec.After[i].Job)
		}
		return "after " + strings.Join(all, ", ")
	}
	if spec.Schedule != nil || len(spec.Schedules) == 0 {
		all = append(all, scheduleText(spec.Schedule)+calendarsText(spec.Schedule))
	}
	for i := range spec.Schedules {
		s := spec.Schedules[i].Schedule()
		all = append(all, spec.Schedules[i].Name+": "+scheduleText(&s)+calendarsText(&s))
	}
	return strings.Join(all, "; ")
}

// calendarsText says which calendars a schedule keeps to, and how.
func calendarsText(s *takt.ScheduleSpec) string {
	if s == nil || len(s.Calendars) == 0 {
		return ""
	}
	text := " on days of " + strings.Join(s.Calendars, ",")
	if s.Closed != "" && s.Closed != "skip" {
		text += ", else the " + s.Closed + " one"
	}
	return text
}

// readingText says how an expression without a declared dialect is read, when that is not as five fields usually are.
func readingText(s *takt.ScheduleSpec) string {
	if s.Dialect != "" {
		return ""
	}
	read, err := schedule.Parse(schedule.Spec{Cron: s.Cron, TimeZone: s.TimeZone, Seed: "any"}, time.Time{})
	if err != nil || schedule.Reading(read) == schedule.Unix5 {
		return ""
	}
	return fmt.Sprintf(" (read as %s)", schedule.Reading(read))
}

func scheduleText(s *takt.ScheduleSpec) string {
	switch {
	case s == nil:
		return "manual"
	case s.Cron != "":
		return strings.TrimSpace(s.Cron+" "+s.TimeZone) + readingText(s)
	case s.Delay != 0:
		return s.Delay.String() + " after the end"
	case s.Every != 0:
		return "every " + s.Every.String() + phaseText(s)
	case s.At != nil:
		return "at " + s.At.Format(time.RFC3339)
	}
	return "manual"
}

// phaseText says from where a rate counts, unless it is the job's creation.
func phaseText(s *takt.ScheduleSpec) string {
	if s.Phase == nil {
		return ""
	}
	if *s.Phase == s.Every || *s.Phase == 0 {
		return ", phase 0s"
	}
	return ", phase " + s.Phase.String()
}

func executionRow(e *takt.Execution) []string {
	took := ""
	switch {
	case e.StartedAt != nil && e.EndedAt != nil:
		took = age(e.EndedAt.Sub(*e.StartedAt))
	case e.StartedAt != nil:
		took = age(time.Since(*e.StartedAt))
	}
	return []string{e.ID, e.Job, e.State, strconv.Itoa(e.Shards), e.Trigger, since(&e.PlannedAt), took,
		firstText(e.WaitsText, e.Waits, e.ReasonText, e.Reason), e.Pool, e.Handler, strconv.FormatInt(e.Revision, 10),
		strconv.Itoa(e.Round), since(e.StartedAt), since(e.EndedAt)}
}

func shardRow(s *takt.ShardStatus) []string {
	lease, progress, token := "", "", ""
	if s.LeaseLeftMs > 0 {
		lease = age(time.Duration(s.LeaseLeftMs) * time.Millisecond)
	}
	if p := s.Progress; p != nil {
		progress = strconv.FormatInt(p.Done, 10)
		if p.Total > 0 {
			progress = fmt.Sprintf("%d/%d", p.Done, p.Total)
		}
	}
	if s.Token > 0 {
		token = strconv.FormatInt(s.Token, 10)
	}
	why := firstText(s.WaitsText, s.Waits, s.ReasonText, s.Reason)
	if s.Error != nil {
		why = firstText(why+": "+s.Error.Message, s.Error.Message)
	}
	return []string{strconv.Itoa(s.Index), s.State, s.Worker, strconv.Itoa(s.Attempt), token, lease, progress,
		strconv.FormatInt(s.CheckpointSeq, 10), why, strconv.Itoa(s.Faults), strconv.Itoa(s.Losses), s.Key}
}

func workerRow(w *takt.WorkerStatus) []string {
	lease, skew := "", ""
	if w.SkewMs != nil {
		skew = age(time.Duration(*w.SkewMs) * time.Millisecond)
	}
	if w.LeaseLeftMs > 0 {
		lease = age(time.Duration(w.LeaseLeftMs) * time.Millisecond)
	}
	return []string{w.Name, w.Pool, strconv.Itoa(w.Busy), strconv.Itoa(w.Slots),
		age(time.Duration(w.LastBeatMs) * time.Millisecond), lease, skew, since(w.OpenedAt), strings.Join(w.Handlers, ","), w.Build,
		labelsText(w.Labels), w.Session}
}

func poolRow(p *takt.PoolStatus) []string {
	return []string{p.Name, strconv.Itoa(p.Workers), strconv.Itoa(p.Busy), strconv.Itoa(p.Slots), strconv.Itoa(p.Queued)}
}

func decisionRow(d *takt.Decision) []string {
	return []string{d.Job, d.Kind, strconv.FormatInt(d.Count, 10), d.From.Format(time.RFC3339), d.To.Format(time.RFC3339),
		firstText(d.ReasonText, d.Reason), d.Schedule}
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// labelsText is labels as -l takes them.
func labelsText(labels map[string]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, k+"="+labels[k])
	}
	return strings.Join(all, ",")
}
