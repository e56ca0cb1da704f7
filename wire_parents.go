package takt

import "encoding/json"

// AssignedParent is an execution that the assigned one ran after, with what its shards gave as far as that is small: the results
// of shards below Read. Those from Read to Shards − 1 are asked for with the call parents.
type AssignedParent struct {
	ParentExecution
	Shards  int            `json:"shards,omitempty" doc:"Of the execution; 0: it was deleted, or there was none."`
	Read    int            `json:"read,omitempty" doc:"Results of shards below this one are here."`
	Results []ParentResult `json:"results,omitempty" doc:"Of shards that succeeded and gave one, by shard."`
}

// ParentResult is what one shard of a parent's execution gave with [Task.SetResult].
type ParentResult struct {
	Shard  int             `json:"shard"`
	Result json.RawMessage `json:"result"`
}

// ParentsRequest asks for more of what a parent gave: POST /api/v1/worker/parents. Like log it needs no session: the token must be
// the newest one of the shard. It changes no state.
type ParentsRequest struct {
	Execution string `json:"execution" doc:"The child's."`
	Shard     int    `json:"shard"`
	Token     int64  `json:"token"`
	Job       string `json:"job" doc:"The parent's, as the assignment names it."`
	From      int    `json:"from" doc:"The first of its shards that is wanted."`
}

// ParentsResponse is a page of results. Ask again from Read until that is Shards.
type ParentsResponse struct {
	Shards  int            `json:"shards"`
	Read    int            `json:"read"`
	Results []ParentResult `json:"results,omitempty"`
}
