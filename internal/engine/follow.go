package engine

import (
	"fmt"

	"github.com/taktsched/takt/internal/job"
)

// What waits follows its job. An execution that obeys the overlap policy of its job gets its turn where the job is planned,
// for only there is known what else of the job runs. But the job may have moved while it waited for its instant or its parents, or
// had ended and is run again. Then, when its wait is over, it is sent to the partition that its job's pool is of by now: its row changes
// its partition and an entry (arrived) is made for the owner there, in one commit. That one puts it into that pool. All else of
// it (revision, parameters, key) stays as it was asked for. Executions that obey no policy stay in the pool that they were made for.
//
// On its way it is scheduled with the reason job.WaitMove: no page but that of its entry shows it. Like a request it waits in
// the inbox until the job has come, too. (So it may be sent to the partition where it is.)

// Home is where executions of a job belong by now.
type Home struct {
	Place   int    // partition of Pool
	Pool    string // in the newest revision of the job
	Planner int    // decides whose turn it is; when that is another one it will hand the job over to Place
}

// HomeOf is the home of a job's executions, given its newest revision, the partition of that one's pool and the planner.
// cursors: it has some; else there may be nothing to hand over. What is left of a job that was deleted stays where it is: nil.
func HomeOf(def *job.Definition, place, planner int, cursors bool) *Home {
	if def.Deleted != nil || def.Unfit != "" {
		return nil
	}
	if !cursors && !def.Spec.Obeys(job.TriggerRequest) && len(def.Spec.After) == 0 {
		planner = place
	}
	return &Home{Place: place, Pool: def.Spec.Pool, Planner: planner}
}

func homeOf(entry *Entry) *Home {
	if entry.Definition == nil {
		return nil
	}
	h := HomeOf(entry.Definition, entry.Place, entry.Planner, len(entry.Cursors) > 0)
	if h != nil && entry.Pool != "" {
		h.Pool = entry.Pool // that of the newest revision; the definition may be an older one
	}
	return h
}

// strays tells that the turn of what obeys the overlap policy of a job with this home is not decided here.
func (e *Engine) strays(h *Home, def *job.Definition, trigger job.Trigger) bool {
	return h != nil && def != nil && (h.Place != e.cfg.Partition || h.Planner != e.cfg.Partition) && def.Spec.Obeys(trigger) &&
		e.knownToAll(levelFollow) && !e.cfg.Switches.NothingFollows && !e.cfg.Switches.PlannerIgnored
}

// send gives a scheduled execution to the partition of its home.
func (e *Engine) send(x *execution) {
	to := x.home.Place
	x.row.Partition, x.row.Pool, x.row.Reason, x.sent = to, x.home.Pool, job.WaitMove, true
	e.touch(x)
	e.goneFrom(x)
	e.fact(Fact{Kind: FactSent, Job: x.name(), Execution: x.row.ID, Reason: job.WaitMove, Note: fmt.Sprintf("to partition %d", to)})
	if e.step.created == nil {
		e.step.created = map[job.ExecutionID]bool{}
	}
	e.step.created[x.row.ID] = true // no page shows it as this step leaves it
	if e.step.away == nil {
		e.step.away = map[job.ExecutionID]bool{}
	}
	e.step.away[x.row.ID] = true
	e.soon.drop(x)
	e.forget(x)
	e.step.sent = append(e.step.sent, to)
}

// arrived takes in an execution that was sent here.
func (e *Engine) arrived(row Row) {
	if !row.Execution.Moves() || !e.usable(&row) {
		return // it was taken in, cancelled, or is left out
	}
	x := e.hold(row)
	if h := x.home; h != nil && h.Place == e.cfg.Partition {
		x.row.Pool = h.Pool
	}
	for _, s := range x.shards {
		e.token = max(e.token, s.Token) // its next one is newer, whoever gave the last (R6)
	}
	if goesWithJob(row.Definition) {
		e.cancel(x, Entry{Definition: row.Definition})
		return
	}
	e.admit(x)
}

// awaitsPlanner tells that an entry is about what is to run here of a job that another partition plans still, and will hand over.
func (e *Engine) awaitsPlanner(entry *Entry) bool {
	h := homeOf(entry)
	return h != nil && h.Place == e.cfg.Partition && h.Planner != e.cfg.Partition && !e.cfg.Switches.PlannerIgnored
}

// rehome tells what of a job is in memory, and may start later, where it belongs: planner decides about it.
func (e *Engine) rehome(entry *Entry, planner int) {
	b, u := &e.soon, entry.Definition.UID
	h := &Home{Place: entry.Place, Pool: entry.Definition.Spec.Pool, Planner: planner}
	for _, x := range b.held {
		if x.row.JobUID == u {
			x.home = h
		}
	}
	for _, due := range [][]*execution{b.ripe, b.late} {
		for _, x := range due {
			if x.row.JobUID == u {
				x.home = h
			}
		}
	}
	for _, k := range e.backfills {
		if k.JobUID == u {
			k.home, k.again = h, true
		}
	}
}
