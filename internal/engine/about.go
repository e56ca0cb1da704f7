package engine

import (
	"fmt"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// About names what a step decides outside of its events: an execution, or one schedule of a revision of a
// job. Zero: neither.
type About struct {
	Execution job.ExecutionID
	Job       job.UID
	Schedule  string
	Revision  int64
	Stamp     int64 // of its calendars
}

// String names it for the log; "" for the zero value.
func (a About) String() string {
	switch {
	case !a.Execution.IsZero():
		return "execution " + a.Execution.String()
	case !a.Job.IsZero():
		return fmt.Sprintf("schedule %s of job %s in revision %d", a.Schedule, a.Job, a.Revision)
	default:
		return ""
	}
}

// About tells what the engine was at when Step panicked. What makes it panic outside of any event would do
// so again after each load: given back with Loaded.LeftOut, the engine does without it.
func (e *Engine) About() About { return e.about }

// at notes which execution is being decided.
func (e *Engine) at(id job.ExecutionID) { e.about = About{Execution: id} }

func (d *dueEntry) about() About {
	return About{Job: d.def.UID, Schedule: d.cursor.Schedule, Revision: d.def.Revision, Stamp: d.def.Stamp()}
}

// leaveOut goes on without something that can not be decided, and tells so once.
func (e *Engine) leaveOut(a About, name, why string) {
	if known := e.leftOut[a]; known {
		return
	}
	e.leftOut[a] = true
	e.fact(Fact{Kind: FactSetAside, Job: name, Execution: a.Execution, Note: a.String() + " is left out: " + why})
}

// usable tells whether an execution that was read can be held: it is not left out, and has a definition.
func (e *Engine) usable(row *Row) bool {
	a := About{Execution: row.Execution.ID}
	name := row.Execution.Namespace + "/" + row.Execution.Job
	switch {
	case row.Definition == nil:
		e.leaveOut(a, name, "the revision of its job is not there")
	case row.Definition.Unfit != "":
		e.leaveOut(a, name, "the revision of its job is unfit: "+row.Definition.Unfit)
	case row.Execution.Unfit != "":
		e.leaveOut(a, name, row.Execution.Unfit)
	}
	for i := range row.Shards {
		if why := row.Shards[i].Unfit; why != "" {
			e.leaveOut(a, name, why)
		}
	}
	if e.leftOut[a] {
		e.turnOver(row.Execution.JobUID, a.Execution) // it is in nobody's way
	}
	return !e.leftOut[a]
}

// unfit tells whether a job can not be planned as it is stored, with an alarm.
func (e *Engine) unfit(def *job.Definition, schedule string) bool {
	if def == nil || def.Unfit == "" {
		return false
	}
	e.leaveOut(About{Job: def.UID, Schedule: schedule, Revision: def.Revision, Stamp: def.Stamp()}, def.Namespace+"/"+def.Name, def.Unfit)
	return true
}

// parse reads a schedule; false: it is left out.
func (e *Engine) parse(d *dueEntry, spec schedule.Spec) bool {
	e.about = d.about()
	sched, err := d.def.Parse(spec)
	if err != nil {
		e.leaveOut(d.about(), d.def.Namespace+"/"+d.def.Name, err.Error())
	}
	d.sched = sched
	return !e.leftOut[d.about()]
}
