package engine_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

func init() { // behind the one that makes the table
	commands["backfill"], commands["unfill"] = (*scenario).doBackfill, (*scenario).doUnfill
}

// doBackfill asks for a backfill of a job's newest revision, as people's requests do.
func (s *scenario) doBackfill(c *command) error {
	def := s.jobs[c.arg(0)]
	if def == nil {
		return fmt.Errorf("no job %q", c.arg(0))
	}
	b := job.Backfill{ID: job.ExecutionID{0: 0xff, 15: byte(len(*s.db.backfills) + 1)}, Partition: s.db.partition, Namespace: def.Namespace, Job: def.Name,
		JobUID: def.UID, Revision: def.Revision, From: wallStart.Add(c.dur("from", 0)), To: wallStart.Add(c.dur("to", 0)), At: s.wall(),
		Spec: job.BackfillSpec{Reverse: c.has("reverse"), MaxParallel: c.num("parallel", 0)}}
	for i := range def.Spec.Schedules {
		line, err := def.Parse(def.Spec.Schedules[i].Spec)
		if err != nil {
			return err
		}
		n, _, _ := schedule.Count(line, b.From.Add(-time.Millisecond).Time(), b.To.Time(), job.MaxBackfill)
		b.Spec.Total += int64(n)
	}
	return s.putBackfill(c, b)
}

// doUnfill asks for the end of the newest backfill.
func (s *scenario) doUnfill(c *command) error {
	b := (*s.db.backfills)[len(*s.db.backfills)-1]
	b.Cancel = &job.BackfillCancel{At: s.wall(), Running: c.has("running")}
	return s.putBackfill(c, b)
}

func (s *scenario) putBackfill(c *command, b job.Backfill) error {
	s.db.keepBackfill(b)
	s.db.post(engine.Entry{Kind: engine.EntryBackfill, Job: b.JobUID, Execution: b.ID})
	if c.has("unread") {
		return c.err
	}
	return cmpErr(c.err, s.take(s.db.inboxPage(inboxLimit)))
}

func (d *database) keepBackfill(b job.Backfill) {
	for i := range *d.backfills {
		if old := &(*d.backfills)[i]; old.ID == b.ID {
			b.Progress, b.Partition = old.Progress, old.Partition
			*old = b
			return
		}
	}
	*d.backfills = append(*d.backfills, b)
}

// writeBackfills takes the progress of a batch.
func (d *database) writeBackfills(b *engine.Batch) error {
	for _, p := range b.Backfills {
		for i := range *d.backfills {
			if k := &(*d.backfills)[i]; k.ID == p.ID {
				if pending := k.Progress.State == job.BackfillPending || k.Progress.State == ""; pending {
					k.Partition = d.partition
				}
				if k.Partition != d.partition {
					return fmt.Errorf("backfill guard: partition %d writes what is of %d", d.partition, k.Partition)
				}
				k.Progress = p
			}
		}
	}
	for _, s := range b.SentBackfills {
		for i := range *d.backfills {
			if k := &(*d.backfills)[i]; k.ID == s.ID {
				if k.Partition != d.partition || k.JobUID != s.Job || k.Revision != s.Revision || len(k.Progress.Open) > 0 {
					return fmt.Errorf("backfill guard: partition %d sends %+v of %+v", d.partition, s, k)
				}
				k.Partition = s.Partition
				d.mate(s.Partition).post(engine.Entry{Kind: engine.EntryBackfill, Job: s.Job, Execution: s.ID})
			}
		}
	}
	return nil
}

func (d *database) liveBackfills() (all []engine.Backfill) {
	for _, b := range *d.backfills {
		if s := b.Progress.State; b.Partition == d.partition && (s == job.BackfillRunning || s == job.BackfillCancelling) {
			all = append(all, engine.Backfill{Backfill: b, Definition: d.revision(b.JobUID, b.Revision), Home: d.home(b.JobUID, b.Revision)})
		}
	}
	return all
}

// joinBackfill adds to an entry the row that it is about.
func (d *database) joinBackfill(e *engine.Entry) {
	for _, b := range *d.backfills {
		if e.Kind == engine.EntryBackfill && b.ID == e.Execution {
			e.Backfill, e.Definition = &b, d.revision(b.JobUID, b.Revision)
			e.Pool = d.newest(b.JobUID).Spec.Pool
		}
	}
}

// elsewhere notes which of the ids asked for other partitions have.
func (d *database) elsewhere(p *engine.ExecutionPage) {
	for _, id := range p.Asked {
		for n, m := range d.mates {
			for _, where := range []map[job.ExecutionID]*record{m.live, m.history} {
				if r := where[id]; n != d.partition && r != nil {
					engine.PutElsewhere(p, &r.row)
				}
			}
		}
	}
}

func backfillWrite(p *job.BackfillProgress) string {
	var w words
	var open []string
	for _, at := range p.Open {
		open = append(open, instant(at))
	}
	w.add(p.Cursor != 0, "cursor=%s", instant(p.Cursor))
	w.add(len(open) > 0, "open=%s", strings.Join(open, ","))
	w.add(p.Succeeded > 0, "succeeded=%d", p.Succeeded)
	w.add(p.Failed > 0, "failed=%d", p.Failed)
	w.add(p.Skipped > 0, "skipped=%d", p.Skipped)
	w.add(p.Reason != "", "(%s)", p.Reason)
	return strings.TrimSpace(fmt.Sprintf("backfill b%d %s %s", p.ID[15], p.State, strings.Join(w, " ")))
}
