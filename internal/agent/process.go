package agent

import (
	"context"
	"slices"
	"time"
)

// markVariable carries an attempt's mark in the environment of its processes.
const markVariable = "TAKT_MARK"

// processID names a process for good: a pid is given again, with another start.
type processID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in clock ticks since the machine's start
}

// process is what the system says about one.
type process struct {
	processID
	parent int
	dead   bool // a zombie: ended, and not waited for
}

// processes are those of the system by pid.
type processes map[int]process

// below adds to found all that descend from the processes in it.
func (ps processes) below(found map[int]processID) {
	children := map[int][]int{}
	for pid, p := range ps {
		children[p.parent] = append(children[p.parent], pid)
	}
	var next []int
	for pid := range found {
		next = append(next, pid)
	}
	for len(next) > 0 {
		pid := next[0]
		next = next[1:]
		for _, child := range children[pid] {
			if _, known := found[child]; !known {
				found[child] = ps[child].processID
				next = append(next, child)
			}
		}
	}
}

// descendants lists the living processes below pid, without itself.
func (ps processes) descendants(pid int) []processID {
	found := map[int]processID{pid: ps[pid].processID}
	ps.below(found)
	delete(found, pid)
	return ps.living(found)
}

func (ps processes) living(found map[int]processID) []processID {
	var list []processID
	for pid, id := range found {
		if !ps[pid].dead {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, func(a, b processID) int { return a.PID - b.PID })
	return list
}

// sweep kills the known processes, those that carry the mark and all below them, again and again until
// none is left or ctx ends. Only processes whose pid and start are still those that were found get a
// signal. It tells how many it killed and which are left.
func sweep(ctx context.Context, mark string, known ...processID) (killed int, left []processID) {
	seen := map[processID]bool{}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		ps := list()
		found := map[int]processID{}
		for _, id := range known {
			if p, ok := ps[id.PID]; ok && p.processID == id {
				found[id.PID] = id
			}
		}
		for _, p := range ps {
			if hasMark(p.PID, mark) {
				found[p.PID] = p.processID
			}
		}
		ps.below(found)
		spare(found)
		left = ps.living(found)
		for _, id := range known {
			collect(id)
		}
		if len(left) == 0 {
			return len(seen), nil
		}
		for _, id := range left {
			seen[id] = true
			kill(id)
		}
		for _, id := range left { // one that loses its parent and its mark is still known
			if !slices.Contains(known, id) {
				known = append(known, id)
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return len(seen), left
		}
	}
}
