package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// TestEveryInstantHasAFate pauses, resumes, edits and reloads at random, with the owner away at times: each
// planned instant of the job is exactly one execution or lies in exactly one decision, whose count is right.
func TestEveryInstantHasAFate(t *testing.T) {
	for seed := range uint64(150) {
		if fault := instantFates(seed); fault != "" {
			t.Errorf("seed %d: %s", seed, fault)
		}
	}
}

func instantFates(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 3))
	s := newScenario()
	var did []string
	run := func(format string, args ...any) string {
		line := fmt.Sprintf(format, args...)
		did = append(did, line)
		if _, err := s.run(line); err != nil {
			return fmt.Sprintf("%s: %v\n%v", line, err, did)
		}
		return ""
	}
	lines := []string{"config catchup=7 page=3 horizon=20s", "job a every=1s cron2=*/2_*_*_*_*_* id2=two", "advance 3s"}
	for range 30 {
		unread := ""
		if r.IntN(3) == 0 {
			unread = " unread"
		}
		now := int(s.mono/time.Second) + len(lines)
		switch r.IntN(8) {
		case 0, 1:
			lines = append(lines, "suspend a"+unread)
		case 2:
			lines = append(lines, fmt.Sprintf("suspend a until=%ds%s", now+r.IntN(60), unread))
		case 3:
			lines = append(lines, "resume a"+unread)
		case 4:
			lines = append(lines, "job a every=1s cron2=*/2_*_*_*_*_* id2=two attempts="+fmt.Sprint(1+r.IntN(5))+unread)
		case 5:
			lines = append(lines, "reload")
		case 6:
			lines = append(lines, fmt.Sprintf("pause %ds", 1+r.IntN(30)))
		default:
			lines = append(lines, fmt.Sprintf("advance %ds", 1+r.IntN(20)))
		}
	}
	for _, line := range append(lines, "inbox", "resume a", "advance 5s") {
		if fault := run("%s", line); fault != "" {
			return fault
		}
	}
	if fault := s.fates("a", time.Second, "main", "two"); fault != "" {
		return fault + fmt.Sprint("\n", did)
	}
	return ""
}

// fates checks the instants of the first schedule, which holds those of all: one execution, or a decision of
// each schedule that has the instant.
func (s *scenario) fates(name string, every time.Duration, schedules ...string) string {
	def := s.jobs[name]
	ran := map[job.Instant]bool{}
	for _, m := range []map[job.ExecutionID]*record{s.db.live, s.db.history} {
		for _, x := range m {
			if x.row.JobUID == def.UID {
				ran[x.row.PlannedAt] = true
			}
		}
	}
	for i, schedule := range schedules {
		step := every * time.Duration(i+1)
		decided := map[job.Instant]int{}
		for _, d := range s.db.decisions {
			if d.Job != def.UID || d.Schedule != schedule {
				continue
			}
			n := int64(0)
			for at := d.From; at <= d.To; at = at.Add(step) {
				decided[at]++
				n++
			}
			if n != d.Count {
				return fmt.Sprintf("decision %+v counts %d of %d", d, d.Count, n)
			}
		}
		last := s.db.cursors[cursorKey{def.UID, schedule}].Last
		if s.wall().Sub(last) > 2*step+s.skew {
			return fmt.Sprintf("schedule %s stands still at %s, now is %s", schedule, instant(last), instant(s.wall()))
		}
		for at := def.CreatedAt.Add(step); at <= last; at = at.Add(step) {
			switch {
			case decided[at] > 1:
				return fmt.Sprintf("instant %s of %s is decided %d times", instant(at), schedule, decided[at])
			case decided[at] == 0 && !ran[at]:
				return fmt.Sprintf("instant %s of %s has no fate", instant(at), schedule)
			}
		}
	}
	return ""
}
