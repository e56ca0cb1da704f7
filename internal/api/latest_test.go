package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
)

// An execution that was rescheduled to an earlier instant has an id of a later one: it is not the latest for ever.
func TestLatestBehindAReschedule(t *testing.T) {
	n := startNode(t)
	c, saw := n.client(), make(chan string, 8)
	n.employ(func(_ context.Context, task *takt.Task) error {
		for _, p := range task.Parents() {
			if p.Job == "la" {
				saw <- p.Execution
			}
		}
		return nil
	})
	for _, name := range []string{"la", "lb"} {
		asked[takt.Job](n, "PUT", jobs+"/"+name, strings.Replace(doc(`{"pool":"web","handler":"index"}`), "nightly", name, 1))
	}
	asked[takt.Job](n, "PUT", jobs+"/child", strings.Replace(doc(`{"pool":"web","handler":"index","after":[{"job":"la","match":"latest"},{"job":"lb","match":"latest"}]}`), "nightly", "child", 1))
	run := func(job string) string {
		made, err := c.Trigger(t.Context(), job, takt.TriggerOptions{})
		if err == nil {
			_, err = c.Wait(t.Context(), made.Execution)
		}
		if err != nil {
			t.Fatal(err)
		}
		return made.Execution
	}
	old, err := c.Trigger(t.Context(), "la", takt.TriggerOptions{In: 5 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reschedule(t.Context(), old.Execution, takt.RescheduleOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Wait(t.Context(), old.Execution); err != nil {
		t.Fatal(err)
	}
	run("lb")
	if got := within(t, saw); got != old.Execution {
		t.Errorf("the first child saw %s, want the rescheduled %s", got, old.Execution)
	}
	newer := run("la")
	if got := within(t, saw); got != newer {
		t.Errorf("the end of a newer parent gave a child of %s, want %s", got, newer)
	}
	run("lb")
	if got := within(t, saw); got != newer {
		t.Errorf("the end of the other parent gave a child of %s, want %s", got, newer)
	}
}
