package takt

import "time"

// RescheduleRequest moves an execution that waits for its instant to another one: as at or in says; without both, to now.
type RescheduleRequest struct {
	At   *time.Time `json:"at,omitempty" doc:"The new instant, at most 10 years ahead; one that has passed means now."`
	In   Duration   `json:"in,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"So much time from now, such as 30m; 0 is now."`
	Note string     `json:"note,omitempty" maxLength:"1024" doc:"Why."`
}

// Rescheduled is the answer to a RescheduleRequest.
type Rescheduled struct {
	Execution string    `json:"execution"`
	PlannedAt time.Time `json:"plannedAt" doc:"The new instant."`
	Past      bool      `json:"past,omitempty" doc:"The instant that was asked for has passed: it runs now."`
	Effect    string    `json:"effect" enum:"effective,pending"`
}
