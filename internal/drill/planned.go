package drill

import "github.com/taktsched/takt/internal/job"

// Planned tells that an instant of a schedule made an execution, in time or as a catch-up.
func Planned(x *job.Execution) bool {
	return x.Trigger == job.TriggerSchedule || x.Trigger == job.TriggerCatchUp
}
