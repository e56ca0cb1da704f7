package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
)

// An instant that comes due while its job waits to move to the pool of another partition says what the move waits for.
func TestExplainTellsWhatAMoveWaitsFor(t *testing.T) {
	c := startCluster(t, 1)
	n := c.nodes[0]
	spec := func(pool string) string {
		return fmt.Sprintf(`{"pool":%q,"handler":"h","schedule":{"cron":"* * * * * *"}}`, pool)
	}
	answered[takt.Job](n, "PUT", jobsPath+"mover", named("mover", spec(c.pools[0])))
	var made takt.ExecutionList
	for len(made.Items) == 0 {
		made = answered[takt.ExecutionList](n, "GET", "/api/v1/namespaces/default/executions?job=mover", "")
	}
	answered[takt.Job](n, "PUT", jobsPath+"mover", named("mover", spec(c.pools[1])))
	at := time.Now().Truncate(time.Second).Add(2 * time.Second)
	want := "after its time: the job moves to pool " + c.pools[1] + ", and nothing is planned until what runs of it in the old one has ended (" + made.Items[len(made.Items)-1].ID
	for {
		x := answered[takt.Explanation](n, "GET", jobsPath+"mover/explain?at="+at.UTC().Format(time.RFC3339), "")
		switch {
		case x.Verdict == "due" && strings.Contains(x.Text, want):
			return
		case x.Verdict != "will_run" && x.Verdict != "due":
			t.Fatalf("%s: %s\nwant …%s…", x.Verdict, x.Text, want)
		}
	}
}
