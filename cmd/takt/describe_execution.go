package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/taktsched/takt"
)

func describeExecution(ctx context.Context, c *takt.Client, id string) (*account, error) {
	e, err := c.Execution(ctx, id)
	if err != nil {
		return nil, err
	}
	shards, err := c.Shards(ctx, id, takt.Page{Limit: mostShards})
	if err != nil {
		return nil, err
	}
	a := &account{value: map[string]any{"execution": e, "shards": shards}}
	a.fact("Execution", e.ID)
	a.fact("Job", fmt.Sprintf("%s, revision %d", e.Job, e.Revision))
	why := firstText(e.ReasonText, e.Reason)
	if e.State == "scheduled" && e.Reason == "not_due" {
		why = "due " + since(&e.PlannedAt)
	}
	a.fact("State", strings.TrimSuffix(e.State+": "+why, ": "))
	if w := waitsText(&e); w != "" {
		a.fact("Waits", w)
		a.fact("To do", adviceOn(&e))
	}
	a.fact("Runs", fmt.Sprintf("handler %s in pool %s", e.Handler, e.Pool))
	a.fact("Trigger", e.Trigger)
	for i := range e.Parents {
		a.fact("After", parentText(&e.Parents[i]))
	}
	a.when("Planned", &e.PlannedAt)
	a.when("Started", e.StartedAt)
	a.when("Ended", e.EndedAt)
	if e.Round > 0 {
		a.fact("Reruns", strconv.Itoa(e.Round))
	}
	if len(e.Params) > 0 {
		a.fact("Params", string(e.Params))
	}
	table := titled{title: fmt.Sprintf("Shards: %d", e.Shards), header: []string{"SHARD", "STATE", "WORKER", "ATTEMPT", "LEASE", "PROGRESS", "RETRY", "WHY"}}
	if shards.Next != "" {
		table.title += fmt.Sprintf(", the first %d of them (takt get shards shows all)", len(shards.Items))
	}
	tries := titled{title: "Attempts", header: []string{"SHARD", "ATTEMPT", "TOKEN", "WORKER", "STATE", "STARTED", "TOOK", "FROM CHECKPOINT", "WHY"}}
	for i := range shards.Items {
		s := &shards.Items[i]
		row := shardRow(s)
		table.rows = append(table.rows, []string{row[0], row[1], row[2], row[3], row[5], row[6], since(s.RetryAt), row[8]})
		for j := range s.Attempts {
			tries.rows = append(tries.rows, attemptRow(s.Index, &s.Attempts[j]))
		}
	}
	a.tables = append(a.tables, table)
	if len(tries.rows) > 0 {
		a.tables = append(a.tables, tries)
	}
	return a, nil
}

// waitsText says why an execution waits, and for which other one.
func waitsText(e *takt.Execution) string {
	why := firstText(e.WaitsText, e.Waits)
	if e.WaitsFor != "" {
		why += " (" + e.WaitsFor + ")"
	}
	return why
}

// adviceOn says what ends a waiting that does not pass by itself.
func adviceOn(e *takt.Execution) string {
	switch e.Waits {
	case "no_worker":
		return fmt.Sprintf("start a worker or an agent for pool %s", e.Pool)
	case "no_handler":
		return fmt.Sprintf("start a worker of pool %s that offers %s; `takt get workers --pool %s` shows what the live ones offer", e.Pool, e.Handler, e.Pool)
	case "no_slot":
		return fmt.Sprintf("wait, or add workers or slots; `takt get workers --pool %s` shows who is busy", e.Pool)
	case "overlap":
		if e.WaitsFor != "" {
			return fmt.Sprintf("wait, or `takt cancel %s`", e.WaitsFor)
		}
	}
	return ""
}

func attemptRow(shard int, t *takt.Attempt) []string {
	took := ""
	if t.StartedAt != nil && t.EndedAt != nil {
		took = age(t.EndedAt.Sub(*t.StartedAt))
	}
	why, from := t.Reason, ""
	if t.Error != nil {
		why = strings.TrimPrefix(why+": "+t.Error.Message, ": ")
	}
	if t.ResumedFrom > 0 {
		from = strconv.FormatInt(t.ResumedFrom, 10)
	}
	return []string{strconv.Itoa(shard), strconv.Itoa(t.Number), strconv.FormatInt(t.Token, 10), t.Worker, t.State, since(t.StartedAt), took, from, why}
}

// parentText says which execution of a parent counts.
func parentText(p *takt.ParentExecution) string {
	if p.Execution == "" {
		return p.Job + ": no execution yet"
	}
	text := fmt.Sprintf("%s: execution %s %s", p.Job, p.Execution, p.State)
	if p.PlannedAt != nil {
		text += ", planned " + p.PlannedAt.Local().Format(time.RFC3339)
	}
	return text
}
