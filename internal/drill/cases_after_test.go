package drill_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/job"
)

// TestC61FanInOnce: three parents in three partitions end within milliseconds of each other, one of them in eight shards,
// while servers are killed and some reads of what parents gave are slow: what runs after all of them, and what runs after the
// one, runs once for each instant, and each attempt sees all parents and what those gave.
func TestC61FanInOnce(t *testing.T) {
	long(t)
	runs := 60 // the 500 of the case with -seeds 100
	if *manySeeds > 20 {
		runs = 500
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 61, "a", "b")
		launch := func(name string) {
			f.launch(name).st.starve(func(method string) time.Duration {
				if slow := drill.Draw(61, method, name, time.Now().String()); method == "given" && slow%10 == 0 {
					return 5 * time.Second
				}
				return 0
			})
		}
		for _, name := range f.names {
			launch(name)
		}
		f.allOwned(20 * time.Second)
		parents := []string{"a1", "a2", "a3"}
		for i, name := range parents {
			spec := paced(t, []int{8, 1, 1}[i], work{Steps: 1, StepMs: 2, Gives: 36 << 10}) // of eight more than goes along
			spec.Pool, spec.Overlap = fleetPools[i], &takt.OverlapSpec{Policy: "allow"}
			spec.Schedule = &takt.ScheduleSpec{Cron: "*/2 * * * * *"}
			f.put(name, spec)
		}
		after := map[string][]string{"j": {"a3", "a1", "a2"}, "b": {"a1"}, "last": {"j", "b"}}
		for i, name := range []string{"j", "b", "last"} {
			spec := paced(t, 1, work{Steps: 1, StepMs: 1, Gives: 100, Sees: true})
			spec.Pool, spec.Overlap = fleetPools[(i+1)%3], &takt.OverlapSpec{Policy: "allow"}
			for _, parent := range after[name] {
				spec.After = append(spec.After, takt.AfterSpec{Job: parent})
			}
			f.put(name, spec)
		}
		for _, pool := range fleetPools {
			for i := range 2 {
				f.join(fmt.Sprintf("%s.%d", pool, i), 40)
			}
		}
		dice := rand.New(rand.NewPCG(61, 1))
		for end := time.Now().Add(time.Duration(runs) * 2 * time.Second); time.Now().Before(end); {
			time.Sleep(time.Duration(20+dice.IntN(20))*time.Second + time.Duration(dice.IntN(2000))*time.Millisecond)
			name := f.names[dice.IntN(2)]
			f.sink(name, true)
			time.Sleep(time.Duration(3+dice.IntN(5)) * time.Second)
			launch(name)
		}
		f.balanced(3 * time.Minute) // a pause waits for an owner, and a hand-over is none
		// No instant may lie between the pauses, each of which the owner may see only at its next look.
		time.Sleep(time.Until(time.Now().Truncate(2 * time.Second).Add(2050 * time.Millisecond)))
		for _, name := range parents {
			if _, err := f.people.PauseJob(t.Context(), name, time.Time{}, takt.ChangeOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		f.allEnded(5 * time.Minute)
		states, found := map[job.Instant]map[string][]job.ExecutionState{}, map[job.Instant]map[string]job.Execution{}
		for _, x := range allExecutions(t, f.file) {
			if states[x.PlannedAt] == nil {
				states[x.PlannedAt], found[x.PlannedAt] = map[string][]job.ExecutionState{}, map[string]job.Execution{}
			}
			states[x.PlannedAt][x.Job] = append(states[x.PlannedAt][x.Job], x.State)
			found[x.PlannedAt][x.Job] = x
		}
		f.sawParents(found, after)
		f.history()
		full := 0
		for at, of := range states {
			for _, name := range []string{"a1", "a2", "a3", "j", "b", "last"} {
				if len(of[name]) != 1 || of[name][0] != job.ExecutionSucceeded {
					t.Errorf("%s of %v: %v", name, at.Time(), of[name])
				}
			}
			full++
		}
		if full < runs {
			t.Errorf("%d instants, want %d", full, runs)
		}
	})
}
