package takt

// Retention says how long a namespace keeps what is over. Empty or 0: the server's default.
type Retention struct {
	Executions Duration `json:"executions,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"Ended executions, counted from their end; at least 1h."`
	Logs       Duration `json:"logs,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"Logs, counted from their last line; at least 1h. They end with their execution at the latest."`
}

// RetentionStatus is what holds in a namespace, and what of it the namespace itself says.
type RetentionStatus struct {
	Executions Duration  `json:"executions"`
	Logs       Duration  `json:"logs"`
	Own        Retention `json:"own" doc:"What was set; what is absent is the server's default."`
}
