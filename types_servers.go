package takt

import "context"

// ServerStatus is one server of the scheduling centre, as the server that answers sees it.
type ServerStatus struct {
	Name        string   `json:"name"`
	Incarnation string   `json:"incarnation" doc:"This life of the server."`
	Address     string   `json:"address,omitempty" doc:"Where the other servers call it."`
	Build       string   `json:"build,omitempty"`
	Self        bool     `json:"self,omitempty" doc:"The one that answers."`
	Live        bool     `json:"live" doc:"It beats."`
	LastBeatMs  int64    `json:"lastBeatMs" doc:"Since its newest beat was first seen."`
	SitsOut     bool     `json:"sitsOut,omitempty" doc:"It stops, or no other server can reach it: it owns nothing."`
	Unreachable []string `json:"unreachable,omitempty" doc:"Names of the servers that it cannot reach."`
	Partitions  []int    `json:"partitions" nullable:"false" doc:"What it owns."`
	UptimeMs    *int64   `json:"uptimeMs,omitempty" doc:"As it says itself; missing when it does not answer."`

	ClockAheadMs *int64 `json:"clockAheadMs,omitempty" doc:"How far its clock is ahead of the database's, as it says itself; negative: behind. Missing when it does not answer, or the database has no clock of its own. More than 5 s is alarmed about; jobs are planned by the database's clock."`
}

// ServerList lists the servers on a database.
type ServerList struct {
	Items      []ServerStatus `json:"items" nullable:"false"`
	Partitions int            `json:"partitions" doc:"How many there are."`
	Unowned    []int          `json:"unowned" nullable:"false" doc:"Partitions that nobody owns as far as this server has seen: their pools wait."`
}

// Servers lists the servers, as the one that answers sees them. A server on a data directory is the only one.
func (c *Client) Servers(ctx context.Context) (ServerList, error) {
	return fetch[ServerList](ctx, c, "list servers", "/api/v1/servers", nil)
}
