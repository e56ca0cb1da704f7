package drill

import (
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// checkTotalSuccess looks at each execution's end when the whole commit has been read: facts of one
// commit have no order among themselves that matters here.
func checkTotalSuccess(ix *index, fail failFunc) {
	total := map[job.ExecutionID]int{}
	for _, x := range ix.Executions {
		total[x.ID] = x.ShardTotal
	}
	states := map[job.ExecutionID]map[int]string{}
	open := map[shardID]job.Token{}
	var ends []Event
	settle := func() {
		for _, e := range ends {
			for i, s := range states[e.Execution] {
				if e.To == string(job.ExecutionSucceeded) && s != string(job.ShardSucceeded) {
					fail(e.Seq, "execution %s succeeded, its shard %d is %s", e.Execution, i, s)
				}
				if t, live := open[shardID{e.Execution, i}]; live {
					fail(e.Seq, "execution %s ended %s, its shard %d holds token %d", e.Execution, e.To, i, t)
				}
			}
			if n, known := total[e.Execution]; known && len(states[e.Execution]) != n {
				fail(e.Seq, "execution %s has %d shards, %d were created", e.Execution, n, len(states[e.Execution]))
			}
		}
		ends = ends[:0]
	}
	for i, e := range ix.Events {
		if i > 0 && (e.Seq != ix.Events[i-1].Seq || e.Partition != ix.Events[i-1].Partition) {
			settle()
		}
		switch s := (shardID{e.Execution, e.Shard}); e.Kind {
		case engine.FactExecutionCreated:
			states[e.Execution] = map[int]string{}
			for shard := range int(e.Count) {
				states[e.Execution][shard] = string(job.ShardQueued)
			}
		case engine.FactShardCreated, engine.FactShardState:
			if states[e.Execution] == nil {
				states[e.Execution] = map[int]string{}
			}
			states[e.Execution][e.Shard] = e.To
		case engine.FactLeaseGranted:
			open[s] = e.Token
		case engine.FactLeaseEnded, engine.FactLeaseExpired:
			if open[s] == e.Token {
				delete(open, s)
			}
		case engine.FactExecutionState:
			if job.ExecutionState(e.To).Ended() {
				ends = append(ends, e)
			}
		}
	}
	settle()
}

func checkCheckpoints(ix *index, fail failFunc) {
	last := map[shardID]int64{}
	for _, e := range ix.Events {
		s := shardID{e.Execution, e.Shard}
		switch e.Kind {
		case engine.FactCheckpoint:
			if e.Checkpoint <= last[s] {
				fail(e.Seq, "checkpoint %d of shard %s after checkpoint %d", e.Checkpoint, s, last[s])
			}
			last[s] = max(last[s], e.Checkpoint)
		case engine.FactLeaseGranted:
			if e.Checkpoint != last[s] {
				fail(e.Seq, "token %d of shard %s was handed checkpoint %d, the last one taken in is %d", e.Token, s, e.Checkpoint, last[s])
			}
		}
	}
}

func checkStates(ix *index, fail failFunc) {
	executions := map[job.ExecutionID]string{}
	shards := map[shardID]string{}
	rerun := map[job.ExecutionID]int64{} // seq of the newest rerun
	for _, e := range ix.Events {
		s := shardID{e.Execution, e.Shard}
		switch e.Kind {
		case engine.FactRerun:
			rerun[e.Execution] = e.Seq
		case engine.FactExecutionCreated, engine.FactExecutionState:
			from, to := job.ExecutionState(e.From), job.ExecutionState(e.To)
			switch {
			case e.From != executions[e.Execution]:
				fail(e.Seq, "execution %s moves from %q, it was %q", e.Execution, e.From, executions[e.Execution])
			case !from.CanBecome(to):
				fail(e.Seq, "execution %s: the table has no edge %q → %q", e.Execution, from, to)
			case from.Ended() && rerun[e.Execution] != e.Seq:
				fail(e.Seq, "execution %s leaves its end %q without a rerun", e.Execution, from)
			}
			executions[e.Execution] = e.To
			if e.Kind == engine.FactExecutionCreated {
				for i := range int(e.Count) { // its shards are created with it, queued
					shards[shardID{e.Execution, i}] = string(job.ShardQueued)
				}
			}
		case engine.FactShardCreated, engine.FactShardState:
			from, to := job.ShardState(e.From), job.ShardState(e.To)
			switch {
			case e.From != shards[s]:
				fail(e.Seq, "shard %s moves from %q, it was %q", s, e.From, shards[s])
			case !from.CanBecome(to):
				fail(e.Seq, "shard %s: the table has no edge %q → %q", s, from, to)
			case from.Ended() && rerun[e.Execution] != e.Seq:
				fail(e.Seq, "shard %s leaves its end %q without a rerun", s, from)
			}
			shards[s] = e.To
		}
	}
}
