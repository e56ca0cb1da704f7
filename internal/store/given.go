package store

import (
	"encoding/json"
	"errors"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// GivenAsk asks what an execution was given by the executions of its parents by which it was decided.
type GivenAsk struct {
	Execution job.ExecutionID
	Holder    *Holder // who asks; nil: the server itself, of what it has just granted
	Parent    string  // of this parent alone; "": of all
	From      int     // its shards from this index on
	Rows      int     // shards that are looked at, at most, of all parents together
	Bytes     int     // of results, at most
	Least     bool    // one shard at least, however large its result is
}

// Holder names a shard and the token under which somebody says to hold it.
type Holder struct {
	Shard int
	Token job.Token
}

// Given is the execution of a parent and what its shards gave when they succeeded. One that was deleted, or never was, gave
// nothing. What a rerun of it added since does not count: a child reads the same whenever it asks.
type Given struct {
	job.Parent
	Shards  int // of the execution; 0: it is not there
	Read    int // shards below this index, and from GivenAsk.From on, have been looked at
	Results []ShardResult
}

// ShardResult is what one shard gave.
type ShardResult struct {
	Shard  int
	Result json.RawMessage
}

// GivenReads is what an adapter reads, in one snapshot, to say what an execution was given.
type GivenReads interface {
	// Matched are the executions by which one was decided; nil when it was by none.
	Matched(id job.ExecutionID) ([]job.Parent, error)
	// Find looks into live rows, then into history, of whatever partition; nil when it is in neither.
	Find(id job.ExecutionID) (*engine.Row, error)
	// EachShard shows shards of what Find found, by index from one on, limit of them at most; ErrEnough ends it.
	EachShard(row *engine.Row, from, limit int, see func(*job.Shard) error) error
}

// SeeFrom shows shards by index from one on. For adapters.
func SeeFrom(shards []job.Shard, from int, see func(*job.Shard) error) error {
	for i := range shards {
		if shards[i].Index < from {
			continue
		}
		if err := see(&shards[i]); errors.Is(err, ErrEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// ReadGiven says what an execution was given.
func ReadGiven(r GivenReads, ask GivenAsk) ([]Given, error) {
	if err := checkHolder(r, ask); err != nil {
		return nil, err
	}
	parents, err := r.Matched(ask.Execution)
	if err != nil {
		return nil, err
	}
	var all []Given
	for _, p := range parents {
		if ask.Parent != "" && ask.Parent != p.Job {
			continue
		}
		g := Given{Parent: p, Read: ask.From}
		if err := readGiven(r, &g, &ask); err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// readGiven takes in what fits into what is left of the ask's bounds, and makes them smaller.
func readGiven(r GivenReads, g *Given, ask *GivenAsk) error {
	if g.Execution.IsZero() {
		return nil
	}
	row, err := r.Find(g.Execution)
	if err != nil || row == nil {
		return err
	}
	g.Shards = row.Execution.ShardTotal
	if ask.Rows <= 0 || g.Read >= g.Shards {
		return nil
	}
	rerun := !g.State.Ended() || row.Execution.Round != g.Round
	full := false
	err = r.EachShard(row, g.Read, ask.Rows, func(s *job.Shard) error {
		gave := s.State == job.ShardSucceeded && len(s.Result) > 0 && (!rerun || s.EndedAt <= g.EndedAt)
		if gave && len(s.Result) > ask.Bytes && !ask.Least {
			ask.Rows, full = 0, true // in their order: a smaller one of the next parent waits, too
			return ErrEnough
		}
		if gave {
			g.Results = append(g.Results, ShardResult{Shard: s.Index, Result: s.Result})
			ask.Bytes -= len(s.Result)
		}
		g.Read, ask.Rows, ask.Least = s.Index+1, ask.Rows-1, false
		return nil
	})
	if !full && ask.Rows > 0 {
		g.Read = g.Shards // no more are there
	}
	return err
}

// checkHolder refuses who does not hold the newest token of the shard.
func checkHolder(r GivenReads, ask GivenAsk) error {
	if ask.Holder == nil {
		return nil
	}
	row, err := r.Find(ask.Execution)
	if err != nil {
		return err
	}
	held := false
	if row != nil {
		err = r.EachShard(row, ask.Holder.Shard, 1, func(s *job.Shard) error {
			held = s.Index == ask.Holder.Shard && s.Token == ask.Holder.Token
			return nil
		})
	}
	if err == nil && !held {
		err = job.Errorf(job.KindConflict, "token_stale", "the token is not the newest one of shard %d of execution %s", ask.Holder.Shard, ask.Execution).
			WithField("token").WithHint("stop: the shard was given to somebody else, or its execution is not there")
	}
	return err
}
