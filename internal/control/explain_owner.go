package control

import (
	"context"
	"fmt"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

// addOwner asks who plans the job what keeps it from doing so. Where nobody answers, the rest of the explanation stands.
func (c *Control) addOwner(ctx context.Context, ev *Evidence) {
	d := ev.Newest
	if d.Deleted != nil {
		return
	}
	if _, err := c.inspect(ctx, partition.Of(d.Namespace, d.Spec.Pool, c.owners.Count()), engine.InspectQuery{Namespace: d.Namespace, Pool: d.Spec.Pool}); away(err) {
		ev.Unowned = "no server owns its partition at the moment"
	}
	if t, err := c.Turn(ctx, &store.JobRow{Definition: *d, Cursors: ev.Cursors}); err == nil && len(t.Items) > 0 && t.Items[0].Moves {
		ev.Moving = movingText(d.Spec.Pool, t.Items[0])
	}
}

// movingText says what the move of a job waits for.
func movingText(pool string, t *engine.TurnView) string {
	text := fmt.Sprintf("the job moves to pool %s, and nothing is planned until what runs of it in the old one has ended", pool)
	if n := len(t.Running); n > 0 {
		text += fmt.Sprintf(" (%s", t.Running[0])
		if n > 1 || t.Waiting > 0 {
			text += fmt.Sprintf(", and %d more", n-1+t.Waiting)
		}
		text += ")"
	}
	return text + "; what came due by then is judged by the misfire policy"
}
