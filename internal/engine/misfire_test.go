package engine_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// TestMisfireTwin: whatever outages, restarts and lost commits come, each planned instant has the fate that a list of all
// instants gives it: exactly one execution or decision (I01, I02, I06).
func TestMisfireTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newOutages(t)
		for range rapid.IntRange(1, 6).Draw(t, "outages") {
			w.run(time.Duration(rapid.IntRange(0, 200).Draw(t, "up")) * time.Second)
			people := rapid.SampledFrom([]string{"", "", "edit", "edit, restart"}).Draw(t, "people")
			w.edits(people)
			d := time.Duration(rapid.SampledFrom([]int{3, 30, 100, 500, 2000, 10_000, 100_000}).Draw(t, "down")) * time.Second
			switch how := rapid.SampledFrom([]string{"", "", "clock", "clock back"}).Draw(t, "how"); {
			case how == "clock":
				w.skew += d
			case how == "clock back" && people == "": // an edit then plans from the clock as it is
				w.skew -= min(d, 100*time.Second)
				w.run(2 * time.Minute)
			default:
				w.mono += d // nobody is there
			}
			w.fail(rapid.SampledFrom([]string{"", "", "restart", "lost commit"}).Draw(t, "fault"))
		}
		w.run(20 * time.Minute) // all debts are paid
		w.compare()
	})
}

// outages is a world with a list of what should become of each instant.
type outages struct {
	*world
	t    *rapid.T
	jobs []*listed
	seen job.Instant // instants up to here have a fate in the lists
}

// listed is a job of the twin.
type listed struct {
	def  *job.Definition
	runs []int64 // of each schedule
	fate []map[job.Instant]string
}

func newOutages(t *rapid.T) *outages {
	cfg := engine.Default()
	cfg.OwnerTTL, cfg.MisfireGrace, cfg.PageSize = 2*time.Second, time.Minute, 3
	cfg.CatchUpMax, cfg.CatchUpRate = rapid.IntRange(30, 300).Draw(t, "bound of a step"), rapid.SampledFrom([]int{7, 1000}).Draw(t, "rate")
	w := &outages{world: newWorld(cfg), t: t, seen: wallStart}
	w.must(w.load(false))
	for i := range rapid.IntRange(1, 3).Draw(t, "jobs") {
		def := &job.Definition{UID: job.UID{15: byte(i + 1)}, Namespace: "default", Name: string(rune('a' + i)), Revision: 1, CreatedAt: w.wall(), UpdatedAt: w.wall()}
		s := &def.Spec
		s.Pool, s.Handler, s.Overlap = "files", "index", &job.Overlap{Policy: job.OverlapAllow}
		s.Misfire.Policy = rapid.SampledFrom([]job.MisfirePolicy{"", job.MisfireSkip, job.MisfireOnce, job.MisfireAll}).Draw(t, "policy")
		s.Misfire.Grace = time.Duration(rapid.SampledFrom([]int{0, 1, 20, 120}).Draw(t, "grace")) * time.Second
		s.Misfire.Window = time.Duration(rapid.SampledFrom([]int{0, 150, 3600}).Draw(t, "window")) * time.Second
		if s.Misfire.Policy == job.MisfireAll {
			s.Misfire.Limit = rapid.SampledFrom([]int{0, 1, 4, 30}).Draw(t, "limit")
		}
		specs := []schedule.Spec{{Every: 20 * time.Second}, {Cron: "* * * * *"}, {Cron: "*/7 * * * * *"}, {Cron: "*/5 0-12 * * *"}, {Cron: "0 3 * * *", TimeZone: "Europe/Berlin"}, {At: wallStart.Add(300 * time.Second).Time()}}
		for k, at := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(specs)-1), 1, 3, rapid.ID[int]).Draw(t, "schedules") {
			s.Schedules = append(s.Schedules, job.Schedule{ID: string(rune('x' + k)), Spec: specs[at], MaxRuns: rapid.SampledFrom([]int64{0, 0, 3, 40}).Draw(t, "runs")})
		}
		l := &listed{def: def, runs: make([]int64, len(s.Schedules))}
		for range s.Schedules {
			l.fate = append(l.fate, map[job.Instant]string{})
		}
		w.jobs = append(w.jobs, l)
		w.put(def)
	}
	return w
}

func (w *outages) must(err error) {
	if err != nil {
		w.t.Fatalf("t=%v: %v", w.mono, err)
	}
}

func (w *outages) put(def *job.Definition) {
	w.db.revisions[def.UID] = append(w.db.revisions[def.UID], def)
	w.db.post(engine.Entry{Kind: engine.EntryJobChanged, Job: def.UID})
	w.want.Inbox = true
}

// run lets time pass while the engine is there.
func (w *outages) run(d time.Duration) {
	w.must(w.step())
	w.must(w.settle())
	w.looked()
	for end := w.mono + d; w.mono < end; {
		next := end
		if at, ok := w.nextWake(); ok && at < end {
			next = max(at, w.mono+time.Millisecond)
		}
		w.mono = next
		w.must(w.step())
		w.must(w.settle())
		w.looked()
	}
}

// edits change what does not matter here.
func (w *outages) edits(how string) {
	if how == "" {
		return
	}
	l := w.jobs[0]
	def := *l.def
	def.Revision++
	def.Spec.Shards = 2 - def.Spec.Shards
	l.def = &def
	w.put(&def)
	if how == "edit, restart" {
		w.fail("restart")
	}
}

func (w *outages) fail(how string) {
	switch how {
	case "lost commit":
		w.e.Step(w.now(), []engine.Event{engine.Tick{}})
		w.must(w.load(true))
	case "restart":
		w.must(w.load(true))
	default:
		return
	}
	w.want.Inbox = true
}

// looked gives a fate to all instants since the last look: now is the first moment at which the engine could plan them.
func (w *outages) looked() {
	now := max(w.wall(), w.seen) // a clock that is set back stands still
	for _, l := range w.jobs {
		l.look(w.seen, now, w.cfg)
	}
	w.seen = now
}

func (l *listed) look(since, now job.Instant, cfg engine.Config) {
	m := l.def.Spec.Misfire
	grace, window := cfg.MisfireGrace, m.WithinWindow()
	if m.Grace > 0 {
		grace = max(m.Grace, 2*cfg.OwnerTTL)
	}
	due := make([][]job.Instant, len(l.def.Spec.Schedules))
	missed := map[job.Instant]bool{}
	for i := range l.def.Spec.Schedules {
		due[i] = l.due(i, since, now)
		for _, at := range due[i] {
			if late := now.Sub(at); late > grace && late <= window {
				missed[at] = true
			}
		}
	}
	newest := slices.Sorted(maps.Keys(missed))
	newest = newest[max(len(newest)-m.CatchesUp(), 0):]
	_, why := m.Why()
	for i, all := range due {
		for _, at := range all {
			late := now.Sub(at)
			_, runs := slices.BinarySearch(newest, at)
			switch {
			case l.def.Spec.Schedules[i].UsedUp(l.runs[i]):
				continue
			case late > grace && late > window:
				l.fate[i][at] = string(job.ReasonMissedWindow)
				continue
			case late > grace && !runs:
				l.fate[i][at] = string(why)
				continue
			case late > grace:
				l.fate[i][at] = string(job.TriggerCatchUp)
			default:
				l.fate[i][at] = string(job.TriggerSchedule)
			}
			l.runs[i]++
		}
	}
}

// due lists the instants of a schedule in (since, now]; none when it is used up.
func (l *listed) due(i int, since, now job.Instant) (all []job.Instant) {
	s := &l.def.Spec.Schedules[i]
	if s.UsedUp(l.runs[i]) {
		return nil
	}
	parsed, err := l.def.Parse(s.Spec)
	if err != nil {
		panic(err)
	}
	for at, ok := parsed.Next(since.Time()); ok && !at.After(now.Time()); at, ok = parsed.Next(at) {
		all = append(all, job.InstantOf(at))
	}
	return all
}

// compare reads what became of each instant, and looks for what is of none.
func (w *outages) compare() {
	executions := map[job.ExecutionID]job.Execution{}
	for _, all := range []map[job.ExecutionID]*record{w.db.live, w.db.history} {
		for id, r := range all {
			executions[id] = r.row
		}
	}
	wanted := map[job.ExecutionID]bool{}
	for _, l := range w.jobs {
		for i, s := range l.def.Spec.Schedules {
			have := map[job.Instant]string{}
			for _, d := range w.db.decisions {
				if d.Job != l.def.UID || d.Schedule != s.ID {
					continue
				}
				n := int64(0)
				for _, at := range l.due(i, d.From-1, d.To) {
					n++
					have[at] += string(d.Reason)
				}
				if n != d.Count && !s.UsedUp(l.runs[i]) {
					w.t.Fatalf("decision %+v counts %d of %d", d, d.Count, n)
				}
				if s.UsedUp(l.runs[i]) {
					w.spread(l, i, &d, have)
				}
			}
			for at, fate := range l.fate[i] {
				id := job.PlannedID(l.def.UID, at)
				if x, made := executions[id]; made && (fate == string(job.TriggerSchedule) || fate == string(job.TriggerCatchUp)) {
					have[at] += string(x.Trigger)
					wanted[id] = true
				}
				if have[at] != fate {
					w.t.Fatalf("%s/%s at %s: %q, should be %q", l.def.Name, s.ID, instant(at), have[at], fate)
				}
			}
			for at := range have {
				if l.fate[i][at] == "" {
					w.t.Fatalf("%s/%s at %s: %q, and is not due", l.def.Name, s.ID, instant(at), have[at])
				}
			}
		}
	}
	for id, x := range executions {
		if !wanted[id] {
			w.t.Fatalf("%s ran at %s, which is not due", x.Job, instant(x.PlannedAt))
		}
	}
}

// spread lists the instants of a decision of a schedule that is used up by now.
func (w *outages) spread(l *listed, i int, d *job.Decision, have map[job.Instant]string) {
	n := int64(0)
	for at := range l.fate[i] {
		if d.From <= at && at <= d.To {
			n++
			have[at] += string(d.Reason)
		}
	}
	if n != d.Count {
		w.t.Fatalf("decision %+v counts %d of %d", d, d.Count, n)
	}
}
