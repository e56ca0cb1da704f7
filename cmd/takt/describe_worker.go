package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/taktsched/takt"
)

func describeWorker(ctx context.Context, c *takt.Client, name string) (*account, error) {
	list, err := c.Workers(ctx, "")
	if err != nil {
		return nil, err
	}
	var found []takt.WorkerStatus
	for i := range list.Items {
		if list.Items[i].Name == name || list.Items[i].Session == name {
			found = append(found, list.Items[i])
		}
	}
	if len(found) == 0 && list.Incomplete != "" {
		return nil, &failure{code: exitUnavailable, what: "cannot describe worker " + name, why: list.Incomplete, todo: "ask again in a moment"}
	}
	if len(found) == 0 {
		return nil, &failure{code: exitNotFound, what: "cannot describe worker " + name, why: "no live worker has this name or session",
			todo: "`takt get workers` lists the live ones; one that was silent for longer than its leases is gone"}
	}
	a := &account{value: map[string]any{"items": found}}
	for i := range found {
		w := &found[i]
		row := workerRow(w)
		a.fact("Worker", w.Name)
		a.fact("Session", w.Session)
		a.fact("Pool", w.Pool)
		a.fact("Handlers", strings.Join(w.Handlers, ", "))
		a.fact("Slots", fmt.Sprintf("%d, busy %d", w.Slots, w.Busy))
		a.fact("Labels", labelsText(w.Labels))
		a.fact("Build", w.Build)
		a.when("Opened", w.OpenedAt)
		a.fact("Last heard", row[4]+" ago")
		a.fact("Lease left", firstText(row[5], "holds none")+", of "+age(time.Duration(w.LeaseTTLMs)*time.Millisecond))
		if w.SkewMs != nil {
			a.fact("Clock", skewText(time.Duration(*w.SkewMs)*time.Millisecond))
		}
	}
	return a, nil
}

// skewText words how a worker's clock stands to the server's.
func skewText(d time.Duration) string {
	if d < 0 {
		return age(-d) + " behind the server's (the way of the call included)"
	}
	return age(d) + " ahead of the server's"
}
