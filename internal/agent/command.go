//go:build unix

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/taktsched/takt"
)

const (
	leaseLook = 200 * time.Millisecond // between two looks at how far the lease goes
	hardStop  = 500 * time.Millisecond // before the server's end of the lease, at which nothing may run
	hung      = time.Second            // that a guard may be late before the agent takes over
	drainFor  = 2 * time.Second        // for pipes whose writers are all gone
	comeBack  = 10 * time.Second       // after what this machine lacked: room on its disk, processes, descriptors
)

// commandHandler runs one handler's command for attempts.
type commandHandler struct {
	agent *Agent
	spec  Handler
}

// run is the takt.Handler.
func (h *commandHandler) run(ctx context.Context, t *takt.Task) (err error) {
	parents, err := parentsOf(ctx, t, commandParents)
	if err != nil {
		return err
	}
	dir, err := h.agent.state.begin(t)
	if err != nil {
		return notNow(t, "the attempt cannot be noted in the state directory", err)
	}
	defer func() {
		if e := dir.remove(); e != nil {
			t.Log().Warn("the attempt's directory could not be removed; the agent's end removes it", "error", e)
		}
	}()
	spec, err := h.guardSpec(t, dir, parents)
	if cannot, ok := errors.AsType[*cannotStart](err); ok {
		return h.spec.Command.outcome(end{failed: cannot.why}, "")
	}
	if err != nil {
		return notNow(t, "the attempt's files cannot be written", err)
	}
	r := &attempt{handler: h, ctx: ctx, task: t, dir: dir}
	return r.run(spec)
}

// notNow is the outcome of an attempt for which this machine lacks something at the moment: that is no fault of the
// handler, so it burns no attempt.
func notNow(t *takt.Task, what string, err error) error {
	t.Log().Error("this machine cannot run the command now; the shard comes again", "because", what, "after", comeBack, "error", err)
	return takt.Snooze(comeBack)
}

// guardSpec says what to run. The error is a *cannotStart when the handler asks for what is not here.
func (h *commandHandler) guardSpec(t *takt.Task, dir *attemptDir, parents []Parent) (spec guardSpec, err error) {
	c := h.spec.Command
	spec.Deadline = deadline(t)
	if spec.Env, err = c.environment(t, dir, parents, os.LookupEnv); err != nil {
		return spec, err
	}
	if spec.Path, spec.Argv, err = c.program(spec.Env); err != nil {
		return spec, err
	}
	if spec.Dir = c.Dir; spec.Dir == "" {
		spec.Dir = dir.path
	} else if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return spec, &cannotStart{"dir " + c.Dir + " is no directory here"}
	}
	return spec, nil
}

// deadline is the instant on the machine's clock at which nothing of the attempt may run any more; 0 when
// the lease is lost. The clock is read first, so that what is computed is never later than the truth.
func deadline(t *takt.Task) time.Duration {
	now := bootNow()
	left := t.LeaseLeft()
	if left <= 0 {
		return 0
	}
	return now + left + t.LeaseMargin() - hardStop
}

// attempt is one run of a command.
type attempt struct {
	handler *commandHandler
	ctx     context.Context // the handler's
	task    *takt.Task
	dir     *attemptDir
	guard   *guard
	streams sync.WaitGroup // readers of what the command writes
	readers []*os.File     // the same
	told    time.Duration  // deadline that the guard has
	stopped bool           // the command was told to end before it had ended
}

func (r *attempt) run(spec guardSpec) error {
	if spec.Deadline == 0 {
		return takt.ErrLeaseLost
	}
	checkpoints, giveUp := context.WithCancel(context.WithoutCancel(r.ctx))
	defer giveUp()
	last := newTail()
	control := &control{ctx: checkpoints, task: r.task, log: r.task.Log()}
	out := r.handler.agent.cfg.Output
	stdout, stderr := out(r.task, "stdout"), out(r.task, "stderr")
	pipes, err := r.open(map[int]io.Writer{guardStdout: stdout, guardStderr: io.MultiWriter(last, stderr), guardControl: control.writer()})
	if err == nil {
		r.guard, err = startGuard(r.handler.agent.cfg.Guard, spec, pipes, r.dir, r.task.Log())
		r.told = spec.Deadline
		closeAll(pipes) // the guard has them
	}
	if err != nil {
		r.drain()
		return notNow(r.task, "the command's guard cannot be started", err)
	}
	r.supervise()
	if r.ctx.Err() != nil {
		defer time.AfterFunc(drainFor, giveUp).Stop()
	}
	r.drain()
	_ = last.Close() // a line without an end
	if cause := context.Cause(r.ctx); r.stopped && stopped(cause) {
		return fmt.Errorf("the command was stopped: %w", cause)
	}
	if r.guard.end.again {
		return notNow(r.task, "the command cannot be started", errors.New(r.guard.end.failed))
	}
	return r.handler.spec.Command.outcome(r.guard.end, last.last)
}

// open makes a pipe to each sink and returns the ends for the guard, by descriptor from guardStdout on.
func (r *attempt) open(sinks map[int]io.Writer) (ends []*os.File, err error) {
	for fd := guardStdout; fd <= guardControl; fd++ {
		in, out, err := os.Pipe()
		if err != nil {
			closeAll(ends)
			return nil, err
		}
		r.readers, ends = append(r.readers, in), append(ends, out)
		sink := sinks[fd]
		r.streams.Go(func() {
			if _, err := io.Copy(sink, in); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				r.task.Log().Warn("what the command writes is not taken any more; it is dropped", "error", err)
				_, _ = io.Copy(io.Discard, in) // or the command would wait for ever
			}
			if c, ok := sink.(*lines); ok {
				_ = c.Close() // it cannot fail
			}
		})
	}
	return ends, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // a pipe of ours to which nothing was written
	}
}

// drain waits for the readers. All writers are gone; if one got away nevertheless, it is not waited for.
func (r *attempt) drain() {
	timer := time.AfterFunc(drainFor, func() {
		for _, f := range r.readers {
			_ = f.SetReadDeadline(time.Now()) // ends a read that hangs, and only that
		}
	})
	r.streams.Wait()
	timer.Stop()
	closeAll(r.readers)
}

// supervise tells the guard how far the lease goes and when to stop, until nothing of the command is left.
func (r *attempt) supervise() {
	look := time.NewTicker(leaseLook)
	defer look.Stop()
	done := r.ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case <-r.guard.done:
			if !r.guard.gone {
				r.takeOver()
			}
			return
		case <-look.C:
			if d := deadline(r.task); d > r.told {
				r.told = d
				r.guard.tell(guardOrder{Deadline: d})
			}
		case <-done:
			done = nil
			grace := r.grace()
			r.stopped = true
			r.guard.tell(guardOrder{Stop: &grace})
			late = time.After(min(grace+hung, max(r.told-bootNow(), grace)))
		case <-late:
			r.task.Log().Error("the command's guard does not do its work; killing its tree from here")
			r.takeOver()
		}
	}
}

// grace is how long the command may take to end.
func (r *attempt) grace() time.Duration {
	grace := time.Duration(r.handler.spec.Grace)
	if grace == 0 {
		grace = defaultGrace
	}
	switch cause := context.Cause(r.ctx); {
	case errors.Is(cause, takt.ErrLeaseLost):
		// Someone else may have the shard as soon as the margin is over.
		return max(min(grace, r.task.LeaseMargin()-hardStop, r.told-bootNow()), 0)
	case errors.Is(cause, takt.ErrShuttingDown):
		return min(grace, stopGrace)
	}
	return grace
}

// takeOver ends a tree whose guard cannot: with its guard, the mark, and all that descends from it.
func (r *attempt) takeOver() {
	known := append(list().descendants(r.guard.id.PID), r.guard.command())
	r.guard.kill()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, left := sweep(ctx, r.dir.run.Mark, known...); len(left) > 0 {
		r.task.Log().Error("processes of the command cannot be killed", "processes", left)
	}
}
