package takt

import "time"

// MisfireSpec says what becomes of planned instants that nobody planned in time: no server ran, or the clock jumped. They
// are those of all schedules of the job together. What does not run is a decision with its reason.
type MisfireSpec struct {
	Policy string   `json:"policy,omitempty" enum:"skip,once,all" doc:"Of instants that are later than grace and inside of window. skip: none runs; once (default): the newest runs; all: the newest limit of them run, in planned order, as their overlap policy lets them. What runs has trigger catchup and its own planned instant."`
	Grace  Duration `json:"grace,omitempty" pattern:"^([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))*([0-9]*[1-9][0-9]*(\\.[0-9]{1,6})?|[0-9]{1,9}\\.[0-9]*[1-9][0-9]*)(ms|s|m|h|d|w)([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))*$" patternDescription:"a length of time above 0" doc:"What is not later than this is on time and runs as usual; default 60s. Twice the partition lease (10s) counts for anything shorter: a server that takes over from another one needs that long, and would miss what it can still run."`
	Window Duration `json:"window,omitempty" pattern:"^([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))*([0-9]*[1-9][0-9]*(\\.[0-9]{1,6})?|[0-9]{1,9}\\.[0-9]*[1-9][0-9]*)(ms|s|m|h|d|w)([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))*$" patternDescription:"a length of time above 0" doc:"What is later than this does not run, whatever the policy; default 24h."`
	Limit  int      `json:"limit,omitempty" minimum:"1" maximum:"1000" doc:"Of policy all; default 100."`
}

// AutoPauseSpec pauses the schedules of a job that fails again and again.
type AutoPauseSpec struct {
	AfterFailures int `json:"afterFailures" minimum:"1" maximum:"1000" doc:"So many executions in a row that ended failed, timed out or succeeded in part pause the job's schedules until a person resumes it; requests still run. Cancelled ones do not count. What comes due meanwhile is skipped."`
}

// AutoPaused tells that failures in a row have paused the schedules of a job.
type AutoPaused struct {
	Failures int    `json:"failures" doc:"In a row."`
	Text     string `json:"text" doc:"In words, with the way out."`
}

// ScheduleStatus is how far a schedule with maxRuns is.
type ScheduleStatus struct {
	Name    string `json:"name"`
	Runs    int64  `json:"runs" doc:"Executions that it made. Instants that became none do not count."`
	MaxRuns int64  `json:"maxRuns"`
	UsedUp  bool   `json:"usedUp,omitempty" doc:"It fires no more."`
}

// CatchingUp is what a job owes of the instants that were missed.
type CatchingUp struct {
	From time.Time `json:"from" doc:"The oldest that will run yet."`
	To   time.Time `json:"to"`
}
