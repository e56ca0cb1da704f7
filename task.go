package takt

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// Handler runs one shard of an execution. ctx ends when the handler must stop; context.Cause(ctx) says
// why: [ErrCancelled], [ErrTimedOut], [ErrLeaseLost] or [ErrShuttingDown]. A handler that ignores its
// ctx keeps its slot until it returns.
//
// What it returns decides: nil is success; [Fatal] fails the shard at once; [Snooze] runs it again
// later; any other error may be retried as the job's policy says, [RetryAfter] not before a time. A
// panic is a failed attempt of class "panic". An error with a method FailureClass() string names its
// own class.
//
// The same shard may be run again after a worker was lost, also when an earlier attempt did its work:
// make effects single with [Task.Key].
type Handler func(ctx context.Context, t *Task) error

// Task is one attempt at one shard, as its handler sees it. Its methods may be called from any
// goroutine of the handler, until the handler returns.
type Task struct {
	a       *attempt
	outputs [len(streams)]output
	logOnce sync.Once
	log     *slog.Logger
}

// Namespace is the namespace of the job.
func (t *Task) Namespace() string { return t.a.as.Namespace }

// Job is the name of the job.
func (t *Task) Job() string { return t.a.as.Job }

// Revision is the revision of the job that the execution started with: the version of its parameters.
func (t *Task) Revision() int64 { return t.a.as.Revision }

// Execution is the id of the execution.
func (t *Task) Execution() string { return t.a.as.Execution }

// PlannedAt is the planned instant, or the instant of the request. It informs; it is no deadline.
func (t *Task) PlannedAt() time.Time { return t.a.as.PlannedAt }

// Shard is the number of this part, from 0 to ShardTotal − 1.
func (t *Task) Shard() int { return t.a.as.Shard }

// ShardTotal is the number of parts of the execution.
func (t *Task) ShardTotal() int { return t.a.as.ShardTotal }

// Attempt counts the tries of this shard, from 1.
func (t *Task) Attempt() int { return t.a.as.Attempt }

// Key is the idempotency key of this shard: the same on every attempt, never that of another piece of
// work. Store it with the effect, uniquely, and a repeat is found out.
func (t *Task) Key() string { return t.a.as.Key }

// Token is the fencing token: it rises with every attempt. A system that remembers the highest one it
// has met for a shard and refuses lower ones can not be written by an old attempt.
func (t *Task) Token() int64 { return t.a.as.Token }

// LeaseLeft is how long the shard is this attempt's without another word of the server: at zero ctx
// ends with [ErrLeaseLost]. Each answered beat makes it longer. It is zero once the lease is lost.
//
// Whoever has the work done by something else, such as a process, tells it this end each time it moves,
// so that the work ends in time also when this process is stopped or dead.
func (t *Task) LeaseLeft() time.Duration {
	w := t.a.s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.now(); !t.a.lost && !t.a.lease.over(now) {
		return t.a.lease.end - now
	}
	return 0
}

// LeaseMargin is the time that follows the end that LeaseLeft counts to, in which the shard is given to
// nobody else yet. Whatever still runs must be stopped in it.
func (t *Task) LeaseMargin() time.Duration { return t.a.s.terms.margin }

// Params is the JSON value of the parameters; nil when there are none. Do not change it.
func (t *Task) Params() json.RawMessage { return t.a.as.Params }

// BindParams decodes the parameters into v; without parameters v stays as it is. The error is fatal:
// another attempt would read the same.
func (t *Task) BindParams(v any) error {
	if len(t.a.as.Params) == 0 {
		return nil
	}
	if err := json.Unmarshal(t.a.as.Params, v); err != nil {
		return Fatal(fmt.Errorf("takt: parameters of job %s: %w", t.a.as.Job, err))
	}
	return nil
}

// LastCheckpoint decodes the newest checkpoint that an earlier attempt saved into v. false: there is
// none, begin at the start.
func (t *Task) LastCheckpoint(v any) (bool, error) {
	if len(t.a.as.Checkpoint) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(t.a.as.Checkpoint, v); err != nil {
		return false, fmt.Errorf("takt: read the last checkpoint: %w", err)
	}
	return true, nil
}

// Checkpoint saves v (anything that encoding/json writes, at most the server's limit, 64 KiB by
// default) and returns nil when it is durable: the next attempt, if there is one, goes on from it.
//
// [ErrLeaseLost] says that the shard is not this attempt's any more and nothing was saved by this call.
// When the attempt was told to stop the error is that cause. When ctx ends first the error is its
// cause, and v may or may not have been saved. While the worker shuts down, the handler's own ctx has
// ended: pass context.WithoutCancel(ctx) to save a last checkpoint.
func (t *Task) Checkpoint(ctx context.Context, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("takt: write the checkpoint: %w", err)
	}
	if limit := t.a.s.limits.Checkpoint; limit > 0 && len(b) > limit {
		return tooLarge("checkpoint", len(b), limit)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	it, err := t.a.add(ReportItem{Kind: "checkpoint", Checkpoint: b})
	if err != nil {
		return err
	}
	select {
	case err := <-it.answer:
		return err
	case <-ctx.Done():
		select {
		case err := <-it.answer: // both came: what is known beats what is not
			return err
		default:
			return context.Cause(ctx)
		}
	}
}

// Progress tells how far the work is: done of total (0: unknown), with a note of at most 256 bytes.
// It returns at once; the newest goes out with the next beat. Stalls are found by its absence.
// [ErrLeaseLost] or the cause of a stop tells that the attempt should end.
func (t *Task) Progress(done, total int64, note string) error {
	return t.a.progressed(Progress{Done: max(done, 0), Total: max(total, 0), Note: clean(note, maxNote)})
}

// SetResult keeps v (anything that encoding/json writes, at most the server's limit, 256 KiB by
// default) as the shard's result, which is stored when the handler returns nil. The last call counts. Jobs that run after this one
// read it with [Task.ParentResults].
func (t *Task) SetResult(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("takt: write the result: %w", err)
	}
	if limit := t.a.s.limits.Result; limit > 0 && len(b) > limit {
		return tooLarge("result", len(b), limit)
	}
	return t.a.setResult(b)
}

// Log writes to the execution's log, where people read it, and to the worker's logger, with the job,
// execution, shard and attempt. Records below slog.LevelInfo go to neither unless the worker's logger
// takes them. Lines are shipped in the background, a quarter of a second after they were written or
// sooner, and all of them before the end of the attempt is reported, if the server takes them.
func (t *Task) Log() *slog.Logger {
	t.logOnce.Do(func() { t.log = t.logger() })
	return t.log
}

// Output takes bytes for the execution's log as they are, such as the output of a program; stream is
// "stdout", "stderr" or "log". Lines end at newlines; the last one may lack it. Write never fails while
// the handler runs; it may wait a moment for room, and what the bounds of [WorkerConfig] and of the
// server do not allow is dropped and counted. The writer may be used by several goroutines.
func (t *Task) Output(stream string) io.Writer {
	if o := t.output(stream); o != nil {
		return o
	}
	return badOutput(stream)
}

func tooLarge(what string, size, limit int) error {
	return &Error{Op: "write the " + what, Problem: Problem{Kind: "too_large", Code: what + "_too_large",
		Detail: fmt.Sprintf("it has %d bytes, the limit is %d", size, limit),
		Hint:   "keep it small: store the data elsewhere and keep a reference"}}
}
