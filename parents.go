package takt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"
)

const (
	parentsTimeout = 4 * time.Second // of one call for more results
	olderServer    = 20              // tries in a row that a server may not know the call, while servers are upgraded
)

// Parents are the executions by which this one was decided, of a job that runs after others: one for each that its document names
// under after, in that order, as they were then. They are the same on every attempt, on every shard and after a rerun, whatever
// became of the parents since. It makes no call.
//
// One without an Execution was missing when this one was decided, which can be when a person runs it again. There are none for a job
// that runs after no others, for an execution that somebody asked for (it waits for no parent), and, without a sign, from a server
// that is older than this method.
func (t *Task) Parents() []ParentExecution {
	var all []ParentExecution
	for i := range t.a.as.Parents {
		all = append(all, t.a.as.Parents[i].ParentExecution)
	}
	return all
}

// ParentResults goes over what the shards of a parent's execution gave with [Task.SetResult], by shard; those that did not succeed,
// or gave nothing, are not there, and neither is what a rerun of the parent added after this execution was decided. It yields
// nothing when the parent's execution was deleted or there was none. Small results came with the assignment; for more it calls the
// server, again until ctx ends if that cannot answer. An error is the last that it yields: [ErrLeaseLost] or the cause of a stop
// when the shard is not this attempt's any more.
//
//	for r, err := range t.ParentResults(ctx, "extract") { … }
func (t *Task) ParentResults(ctx context.Context, job string) iter.Seq2[ParentResult, error] {
	return func(yield func(ParentResult, error) bool) {
		p, err := t.parent(job)
		if err != nil {
			yield(ParentResult{}, err)
			return
		}
		page := ParentsResponse{Shards: p.Shards, Read: p.Read, Results: p.Results}
		for {
			for _, r := range page.Results {
				if !yield(r, nil) {
					return
				}
			}
			if page.Read >= page.Shards {
				return
			}
			if page, err = t.readOn(ctx, job, page.Read); err != nil {
				yield(ParentResult{}, err)
				return
			}
		}
	}
}

// BindParentResult decodes the result of a parent whose execution has one shard into v; false: it gave none. Range over
// [Task.ParentResults] for one with more shards.
func (t *Task) BindParentResult(ctx context.Context, job string, v any) (bool, error) {
	if p, err := t.parent(job); err == nil && p.Shards > 1 {
		return false, fmt.Errorf("takt: the execution of %s has %d shards, each with a result of its own: range over ParentResults", job, p.Shards)
	}
	for r, err := range t.ParentResults(ctx, job) {
		if err != nil {
			return false, err
		}
		if err := json.Unmarshal(r.Result, v); err != nil {
			return false, fmt.Errorf("takt: read the result of %s: %w", job, err)
		}
		return true, nil
	}
	return false, nil
}

func (t *Task) parent(job string) (*AssignedParent, error) {
	for i := range t.a.as.Parents {
		if t.a.as.Parents[i].Job == job {
			return &t.a.as.Parents[i], nil
		}
	}
	return nil, fmt.Errorf("takt: this execution of %s was not decided by one of %q: Parents lists those that decided it", t.Job(), job)
}

// readOn asks for results from a shard on until it is answered.
func (t *Task) readOn(ctx context.Context, job string, from int) (ParentsResponse, error) {
	w, op := t.a.s.w, "worker call parents"
	ask := request{op: op, method: http.MethodPost, path: "/api/v1/worker/parents",
		body: ParentsRequest{Execution: t.a.as.Execution, Shard: t.a.as.Shard, Token: t.a.as.Token, Job: job, From: from}}
	b := backoff{max: t.a.s.callTimeout, jitter: w.cfg.Jitter}
	for older := 0; ; {
		answer, err := t.askOnce(ctx, ask)
		switch {
		case err == nil && answer.Read <= from && answer.Read < answer.Shards:
			return answer, unreachable(op, fmt.Errorf("the answer goes no further than shard %d", from))
		case err == nil:
			return answer, nil
		case ctx.Err() != nil:
			return answer, context.Cause(ctx)
		case codeOf(err) == "token_stale":
			return answer, ErrLeaseLost
		case codeOf(err) == "unknown_path" && older < olderServer:
			older++
			w.x.current.Add(1) // another one has sent the assignment
		case !errors.Is(err, ErrUnavailable) && !errors.Is(err, errCallTimeout):
			return answer, err
		}
		level, wait := b.level(), b.after(err)
		w.log.Log(ctx, level, "the results of a parent could not be read; asking again", "job", job, "error", err, "after", wait)
		pause(ctx, wait)
	}
}

// askOnce asks if the shard is still this attempt's.
func (t *Task) askOnce(ctx context.Context, ask request) (answer ParentsResponse, err error) {
	w := t.a.s.w
	w.mu.Lock()
	err = t.a.refusal()
	w.mu.Unlock()
	if err != nil {
		return answer, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, parentsTimeout, errCallTimeout)
	defer cancel()
	err = w.x.do(limited, w.calls, ask, &answer)
	return answer, err
}
