package job

import "slices"

// ExecutionState is where an execution stands. It is computed from its shards and never set by hand.
type ExecutionState string

// ShardState is where a shard stands.
type ShardState string

// AttemptState is where one try of a shard stands.
type AttemptState string

// The states of DESIGN §6.
const (
	ExecutionScheduled          ExecutionState = "scheduled" // not to be given out yet; without a reason: its owner has not taken it in
	ExecutionQueued             ExecutionState = "queued"
	ExecutionRunning            ExecutionState = "running"
	ExecutionCancelling         ExecutionState = "cancelling"
	ExecutionSucceeded          ExecutionState = "succeeded"
	ExecutionPartiallySucceeded ExecutionState = "partially_succeeded"
	ExecutionFailed             ExecutionState = "failed"
	ExecutionTimedOut           ExecutionState = "timed_out"
	ExecutionCancelled          ExecutionState = "cancelled"

	ShardQueued    ShardState = "queued"
	ShardLeased    ShardState = "leased"
	ShardRunning   ShardState = "running"
	ShardRetryWait ShardState = "retry_wait"
	ShardStopping  ShardState = "stopping"
	ShardSucceeded ShardState = "succeeded"
	ShardFailed    ShardState = "failed"
	ShardTimedOut  ShardState = "timed_out"
	ShardCancelled ShardState = "cancelled"

	AttemptRunning     AttemptState = "running"
	AttemptSucceeded   AttemptState = "succeeded"
	AttemptFailed      AttemptState = "failed"
	AttemptTimedOut    AttemptState = "timed_out"
	AttemptCancelled   AttemptState = "cancelled"
	AttemptLost        AttemptState = "lost"
	AttemptReleased    AttemptState = "released"
	AttemptUndelivered AttemptState = "undelivered"
	AttemptAbandoned   AttemptState = "abandoned"
)

// The one table of edges. Everything else (guards in SQL, the picture in the docs, the property tests)
// is derived from it. "" is "not there yet". An edge out of a terminal state is an explicit rerun.
var (
	executionEdges = map[ExecutionState][]ExecutionState{
		"":                          {ExecutionScheduled, ExecutionQueued, ExecutionRunning},
		ExecutionScheduled:          {ExecutionQueued, ExecutionRunning, ExecutionCancelled, ExecutionFailed, ExecutionTimedOut},
		ExecutionQueued:             {ExecutionRunning, ExecutionCancelled, ExecutionFailed, ExecutionTimedOut},
		ExecutionRunning:            {ExecutionCancelling, ExecutionSucceeded, ExecutionPartiallySucceeded, ExecutionFailed, ExecutionTimedOut, ExecutionCancelled},
		ExecutionCancelling:         {ExecutionCancelled, ExecutionSucceeded, ExecutionPartiallySucceeded, ExecutionFailed, ExecutionTimedOut},
		ExecutionPartiallySucceeded: {ExecutionQueued, ExecutionScheduled},
		ExecutionFailed:             {ExecutionQueued, ExecutionScheduled},
		ExecutionTimedOut:           {ExecutionQueued, ExecutionScheduled},
		ExecutionCancelled:          {ExecutionQueued, ExecutionScheduled},
	}
	shardEdges = map[ShardState][]ShardState{
		"":             {ShardQueued, ShardLeased},
		ShardQueued:    {ShardLeased, ShardSucceeded, ShardFailed, ShardTimedOut, ShardCancelled},
		ShardLeased:    {ShardRunning, ShardSucceeded, ShardFailed, ShardTimedOut, ShardCancelled, ShardRetryWait, ShardQueued, ShardStopping},
		ShardRunning:   {ShardSucceeded, ShardFailed, ShardTimedOut, ShardCancelled, ShardRetryWait, ShardQueued, ShardStopping},
		ShardRetryWait: {ShardQueued, ShardSucceeded, ShardFailed, ShardTimedOut, ShardCancelled},
		ShardStopping:  {ShardCancelled, ShardTimedOut, ShardSucceeded, ShardFailed},
		ShardFailed:    {ShardQueued},
		ShardTimedOut:  {ShardQueued},
		ShardCancelled: {ShardQueued},
	}
	attemptEdges = map[AttemptState][]AttemptState{
		"": {AttemptRunning},
		AttemptRunning: {AttemptSucceeded, AttemptFailed, AttemptTimedOut, AttemptCancelled, AttemptLost,
			AttemptReleased, AttemptUndelivered, AttemptAbandoned},
		// A late report whose token is still the newest counts (R6), so it also tells how the attempt ended.
		AttemptLost:        {AttemptSucceeded, AttemptFailed},
		AttemptUndelivered: {AttemptSucceeded, AttemptFailed},
	}
)

// Known tells whether there is such a state.
func (s ExecutionState) Known() bool { return s != "" && len(executionEdges[s]) > 0 || s.Ended() }

// Known tells whether there is such a state.
func (s ShardState) Known() bool { return s != "" && len(shardEdges[s]) > 0 || s.Ended() }

// CanBecome tells whether the table has the edge s → to.
func (s ExecutionState) CanBecome(to ExecutionState) bool {
	return slices.Contains(executionEdges[s], to)
}

// CanBecome tells whether the table has the edge s → to.
func (s ShardState) CanBecome(to ShardState) bool { return slices.Contains(shardEdges[s], to) }

// CanBecome tells whether the table has the edge s → to.
func (s AttemptState) CanBecome(to AttemptState) bool { return slices.Contains(attemptEdges[s], to) }

// Ended tells whether s is an end: left only by an explicit rerun.
func (s ExecutionState) Ended() bool {
	switch s {
	case ExecutionSucceeded, ExecutionPartiallySucceeded, ExecutionFailed, ExecutionTimedOut, ExecutionCancelled:
		return true
	}
	return false
}

// Ended tells whether s is an end: left only by an explicit rerun.
func (s ShardState) Ended() bool {
	switch s {
	case ShardSucceeded, ShardFailed, ShardTimedOut, ShardCancelled:
		return true
	}
	return false
}

// Sources lists the states with an edge to s, "" left out; the stores build their guards from it.
func (s ExecutionState) Sources() []ExecutionState { return sources(executionEdges, s) }

// Sources lists the states with an edge to s, "" left out.
func (s ShardState) Sources() []ShardState { return sources(shardEdges, s) }

func sources[S ~string](edges map[S][]S, to S) []S {
	var from []S
	for f, tos := range edges {
		if f != "" && slices.Contains(tos, to) {
			from = append(from, f)
		}
	}
	slices.Sort(from)
	return from
}

// Aggregate computes the end of an execution from its shards' states; false while one has not ended.
// All succeeded wins; else a cancel accepted first; else some succeeded; else failed before timed_out
// before cancelled (DESIGN §6).
func Aggregate(shards []ShardState, cancelAccepted bool) (ExecutionState, bool) {
	count := map[ShardState]int{}
	for _, s := range shards {
		if !s.Ended() {
			return "", false
		}
		count[s]++
	}
	switch {
	case count[ShardSucceeded] == len(shards):
		return ExecutionSucceeded, true
	case cancelAccepted:
		return ExecutionCancelled, true
	case count[ShardSucceeded] > 0:
		return ExecutionPartiallySucceeded, true
	case count[ShardFailed] > 0:
		return ExecutionFailed, true
	case count[ShardTimedOut] > 0:
		return ExecutionTimedOut, true
	default:
		return ExecutionCancelled, true
	}
}
