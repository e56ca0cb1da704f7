package drill_test

import (
	"slices"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// duty is a job with a schedule: from its creation to the end of the run each instant must have a fate (I02), and those
// that became executions must have been run (the Chronos check).
type duty struct {
	pool    string
	created time.Time
	every   time.Duration
	aligned bool // to multiples of every: a cron expression
}

// promise puts a job with an interval, or with the cron expression "*/20 * * * * *".
func (c *cluster) promise(name string, spec takt.JobSpec) {
	c.t.Helper()
	made := c.put(name, spec)
	d := duty{pool: spec.Pool, created: *made.Metadata.CreatedAt, every: time.Duration(spec.Schedule.Every)}
	if spec.Schedule.Cron != "" {
		d.every, d.aligned = 20*time.Second, true
	}
	c.due[name] = d
}

// instants are what was promised until the run was healed; the newest second may still be under way.
func (c *cluster) instants() map[string][]job.Instant {
	all := map[string][]job.Instant{}
	for name, d := range c.due {
		from := d.created
		if d.aligned {
			from = from.Truncate(d.every)
		}
		all["default/"+name] = drill.Every(from, d.every, c.healed.Add(-time.Second))
	}
	return all
}

func (c *cluster) witness(r *drill.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs = append(c.runs, r)
}

// mayLast is how late a run may begin in a storm: after four attempts lost to dead workers, with their back-off.
const mayLast = 4 * time.Minute

// keptPromises is the Chronos check over the runs that the handlers witnessed. What was decided otherwise, in a record
// that everybody can read, is not promised any more; nor is what was given up because worker after worker died, which
// must be rare.
func (c *cluster) keptPromises(h *drill.History) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, due := range c.instants() {
		given := map[job.Instant]bool{}
		for _, e := range h.Events {
			if e.Kind == engine.FactDecided && e.Job == name {
				for _, at := range due {
					given[at] = given[at] || e.PlannedAt <= at && at <= e.Until
				}
			}
		}
		decided, lost := countTrue(given), 0
		for _, x := range h.Executions {
			if x.Namespace+"/"+x.Job == name && drill.Planned(&x) && x.State != job.ExecutionSucceeded {
				given[x.PlannedAt] = true
				lost++
			}
		}
		p := drill.Promise{Job: name[len("default/"):], Epsilon: mayLast, Duration: 10 * time.Second}
		for _, at := range due {
			if !given[at] {
				p.Planned = append(p.Planned, at.Time())
			}
		}
		var runs []drill.Run
		for _, r := range c.runs {
			if r.Job == p.Job && !given[job.InstantOf(r.Planned)] && !r.Planned.After(c.healed.Add(-time.Second)) {
				runs = append(runs, *r)
			}
		}
		slices.SortFunc(runs, func(a, b drill.Run) int { return a.Start.Compare(b.Start) })
		v := drill.JudgeChronos(p, runs, h.End.Add(mayLast+time.Minute), 0)
		for _, m := range v.Missed {
			c.t.Errorf("chronos: %s has no run for %s", name, m.Planned)
		}
		for _, r := range slices.Concat(v.TooLate, v.Extra) {
			c.t.Errorf("chronos: %s ran at %s, which was promised to nobody (planned for %s)", name, r.Start, r.Planned)
		}
		for _, fault := range drill.CheckIdentity(p, runs, h.End.Add(mayLast+time.Minute), 0) {
			c.t.Errorf("chronos: %s", fault)
		}
		if n := len(due); len(v.Targets) < n/2 || lost > max(3, n/20) {
			c.t.Errorf("chronos: of %d instants of %s %d were decided otherwise and %d lost: this proves nothing", n, name, decided, lost)
		}
	}
}

func countTrue(m map[job.Instant]bool) (n int) {
	for _, is := range m {
		if is {
			n++
		}
	}
	return n
}
