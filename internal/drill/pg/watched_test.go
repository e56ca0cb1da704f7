//go:build linux

package pg_test

import (
	"testing"
	"time"
)

// A take-over counts from the death of the owner as long as somebody lived who had watched from then on; deaths of judges excuse
// nothing else.
func TestTakeOversAreJudgedByWhoWatched(t *testing.T) {
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	owner := upheaval{at: at(10), server: "a", incarnation: "a.1"}
	death := func(incarnation string, when float64) upheaval {
		return upheaval{at: at(when), incarnation: incarnation}
	}
	for _, tt := range []struct {
		name   string
		began  map[string]float64
		deaths []upheaval
		taken  float64
		from   float64
	}{
		{"others live on", map[string]float64{"a.1": 0, "b.1": 0, "c.1": 0, "a.2": 11}, nil, 16, 10},
		{"they live on, and are slow", map[string]float64{"b.1": 0, "a.2": 11}, nil, 25, 10},
		{"they live on until they are late", map[string]float64{"b.1": 0, "a.2": 11}, []upheaval{death("b.1", 18.5)}, 25, 10},
		{"one of them lives on", map[string]float64{"b.1": 0, "c.1": 0, "b.2": 13}, []upheaval{death("b.1", 12)}, 17, 10},
		{"the only other dies when the owner was taken over", map[string]float64{"b.1": 0, "a.2": 11}, []upheaval{death("b.1", 17)}, 16.5, 10},
		{"both die, the owner's next life is the first to judge", map[string]float64{"b.1": 0, "c.1": 0, "a.2": 11, "b.2": 13, "c.2": 15},
			[]upheaval{death("b.1", 12), death("c.1", 14)}, 17, 11},
		{"its next life dies, too", map[string]float64{"b.1": 0, "c.1": 0, "a.2": 11, "b.2": 13, "c.2": 15},
			[]upheaval{death("b.1", 12), death("c.1", 14), death("a.2", 15)}, 19, 13},
		{"who takes over had begun last", map[string]float64{"b.1": 0, "b.2": 13}, []upheaval{death("b.1", 12)}, 19, 13},
	} {
		o := &owners{began: map[string]time.Time{}}
		for incarnation, when := range tt.began {
			o.began[incarnation] = at(when)
		}
		x := takeover{span{owner.at, at(tt.taken), "a"}, owner, at(tt.taken)}
		spans, later := o.watched([]takeover{x}, append(tt.deaths, owner), 8*time.Second)
		if want := at(tt.from); !spans[0].from.Equal(want) || spans[0].to != x.to || (later == 1) != want.After(owner.at) {
			t.Errorf("%s: counts from %v, want %v; %d later", tt.name, spans[0].from.Sub(start), want.Sub(start), later)
		}
	}
}
