//go:build linux

package pg_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/engine"
)

// worthTelling is how late a handler must begin for its story to be told.
const worthTelling = 3 * time.Second

// toldOf are the facts of a story, of which it has at most storyLines.
var toldOf = []engine.FactKind{engine.FactExecutionCreated, engine.FactLeaseGranted, engine.FactStarted, engine.FactResult, engine.FactLeaseEnded, engine.FactLeaseExpired}

const storyLines = 25

// tell prints what the journal says of the jobs of the latest handlers, while these were due and had not begun.
func (v *evidence) tell(began []span, most int) {
	v.t.Helper()
	slices.SortFunc(began, func(a, b span) int { return cmp.Compare(b.d(), a.d()) })
	told := map[string]bool{}
	for _, s := range began {
		if s.d() < worthTelling || len(told) == most {
			return
		}
		if told[s.what] {
			continue
		}
		told[s.what] = true
		v.t.Logf("%s, planned for %s, began %v late:", s.what, s.from.Format(clockForm), s.d().Round(time.Millisecond))
		lines := 0
		for _, e := range v.events {
			at := e.At.Time()
			if e.Job != "default/"+s.what || !slices.Contains(toldOf, e.Kind) || at.Before(s.from.Add(-2*time.Second)) || at.After(s.to.Add(time.Second)) {
				continue
			}
			if lines++; lines > storyLines {
				v.t.Log("  …")
				break
			}
			v.t.Logf("  %s seq %d epoch %d %s %s token %d %s %s", at.Format(clockForm), e.Seq, e.Epoch, e.Kind, e.Execution, e.Token, e.Worker, e.Reason)
		}
	}
}
