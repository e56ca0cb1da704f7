package drill_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/drill"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func promise(epsilon time.Duration, planned ...int) drill.Promise {
	p := drill.Promise{Job: "j", Epsilon: epsilon}
	for _, s := range planned {
		p.Planned = append(p.Planned, noon.Add(time.Duration(s)*time.Second))
	}
	return p
}

func runsAt(starts ...int) (all []drill.Run) {
	for i, s := range starts {
		at := noon.Add(time.Duration(s) * time.Second)
		all = append(all, drill.Run{Job: "j", Token: int64(i + 1), Start: at, End: at.Add(time.Second)})
	}
	return all
}

// The cases that the original checker has for itself, and those that it cannot tell.
func TestChronosChecker(t *testing.T) {
	t.Parallel()
	const forgiveness = 5 * time.Second
	begun := drill.Run{Job: "j", Start: noon}
	year := noon.AddDate(1, 0, 0)
	for _, c := range []struct {
		name                                   string
		p                                      drill.Promise
		runs                                   []drill.Run
		read                                   time.Time
		targets, missed, late, twice, extra, u int
	}{
		{"a year later", promise(10*time.Second, 0, 60, 120), append(runsAt(3, 65, 127, 180), begun), year, 3, 0, 0, 0, 1, 0},
		{"the middle one", promise(10*time.Second, 0, 60, 120), append(runsAt(3, 127, 180), begun), year, 3, 1, 0, 0, 1, 0},
		{"read early", promise(10*time.Second, 0, 60, 120), runsAt(3), noon.Add(70 * time.Second), 1, 0, 0, 0, 0, 0},
		{"not due yet", promise(10*time.Second, 0, 60, 120), runsAt(3, 61), noon.Add(70 * time.Second), 1, 0, 0, 0, 0, 1},
		{"too late", promise(10*time.Second, 0, 60, 120), runsAt(3, 80, 125), year, 3, 1, 1, 0, 0, 0},
		{"twice", promise(10*time.Second, 0, 60, 120), runsAt(3, 4, 65, 127), year, 3, 0, 0, 1, 0, 0},
		{"before the first", promise(10*time.Second, 0, 60), runsAt(-1, 3, 65), year, 2, 0, 0, 0, 1, 0},
		{"windows that overlap", promise(100*time.Second, 0, 60, 120), runsAt(90, 100, 121), year, 3, 0, 0, 0, 0, 0},
		{"one run is none for two", promise(100*time.Second, 0, 60), runsAt(90), year, 2, 1, 0, 0, 0, 0},
		{"nothing promised", promise(10 * time.Second), nil, year, 0, 0, 0, 0, 0, 0},
	} {
		v := drill.JudgeChronos(c.p, c.runs, c.read, forgiveness)
		got := [6]int{len(v.Targets), len(v.Missed), len(v.TooLate), len(v.Duplicates), len(v.Extra), len(v.Undecided)}
		if want := [6]int{c.targets, c.missed, c.late, c.twice, c.extra, c.u}; got != want || v.Valid() != (c.missed == 0) {
			t.Errorf("%s: targets, missed, too late, duplicates, extra, undecided are %v, want %v", c.name, got, want)
		}
	}
}

// The greedy matching covers as many targets as augmenting paths do.
func TestChronosMatching(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		var planned []int
		at := 0
		for range r.IntN(7) {
			at += r.IntN(20)
			planned = append(planned, at)
		}
		var starts []int
		for range r.IntN(8) {
			starts = append(starts, r.IntN(120)-5)
		}
		p := promise(time.Duration(r.IntN(40))*time.Second, planned...)
		v := drill.JudgeChronos(p, runsAt(starts...), noon.AddDate(1, 0, 0), 0)
		if got, want := len(v.Targets)-len(v.Missed), largest(planned, starts, int(p.Epsilon.Seconds())); got != want {
			t.Fatalf("targets %v ± %v, runs %v: %d are covered, %d can be", planned, p.Epsilon, starts, got, want)
		}
	}
}

// largest is the size of a largest matching, by augmenting paths.
func largest(planned, starts []int, epsilon int) (n int) {
	owner := make([]int, len(starts))
	for i := range owner {
		owner[i] = -1
	}
	var try func(target int, seen []bool) bool
	try = func(target int, seen []bool) bool {
		for i, s := range starts {
			if seen[i] || s < planned[target] || s > planned[target]+epsilon {
				continue
			}
			seen[i] = true
			if owner[i] < 0 || try(owner[i], seen) {
				owner[i] = target
				return true
			}
		}
		return false
	}
	for target := range planned {
		if try(target, make([]bool, len(starts))) {
			n++
		}
	}
	return n
}
