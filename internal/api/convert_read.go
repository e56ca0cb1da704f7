package api

import (
	"fmt"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

func fromExecution(e *job.Execution) takt.Execution {
	return takt.Execution{ID: e.ID.String(), Namespace: e.Namespace, Job: e.Job, Revision: e.Revision, Pool: e.Pool, Handler: e.Handler,
		Trigger: string(e.Trigger), PlannedAt: e.PlannedAt.Time(), RequestKey: e.RequestKey, Params: job.Mask(e.Params), Shards: e.ShardTotal,
		State: string(e.State), Reason: string(e.Reason), ReasonText: e.Reason.Text(), Round: e.Round,
		CreatedAt: instant(e.CreatedAt), StartedAt: instant(e.StartedAt), EndedAt: instant(e.EndedAt)}
}

func fromShard(v *control.ShardView) takt.ShardStatus {
	s := takt.ShardStatus{Index: v.Index, State: string(v.State), Reason: string(v.Reason), ReasonText: v.Reason.Text(), Worker: v.Worker,
		Attempt: v.Attempt, Token: int64(v.Token), Faults: v.Faults, Losses: v.Losses, Key: v.Key, LeaseLeftMs: v.Left.Milliseconds(),
		RetryAt: instant(v.RetryAt), StartedAt: instant(v.StartedAt), EndedAt: instant(v.EndedAt),
		Checkpoint: job.Mask(v.Checkpoint), CheckpointSeq: v.CheckpointSeq, Result: job.Mask(v.Result), Error: fromFailure(v.Error),
		Waits: string(v.Waits), WaitsText: v.Waits.Text()}
	if v.Progress != (job.Progress{}) {
		s.Progress = &takt.Progress{Done: v.Progress.Done, Total: v.Progress.Total, Note: job.MaskText(v.Progress.Note)}
	}
	for _, a := range v.Attempts {
		s.Attempts = append(s.Attempts, takt.Attempt{Number: a.Number, Token: int64(a.Token), Worker: a.Worker, State: string(a.State),
			Reason: string(a.Reason), ResumedFrom: a.ResumedFrom, StartedAt: instant(a.StartedAt), EndedAt: instant(a.EndedAt),
			Error: fromFailure(a.Error)})
	}
	return s
}

func fromFailure(f *job.Failure) *takt.Failure {
	if f == nil {
		return nil
	}
	return &takt.Failure{Class: f.Class, Message: job.MaskText(f.Message)}
}

func fromDecision(d *job.Decision) takt.Decision {
	return takt.Decision{Job: d.Name, Schedule: d.Schedule, Kind: string(d.Kind), Reason: string(d.Reason), ReasonText: d.Reason.Text(),
		From: d.From.Time(), To: d.To.Time(), Count: d.Count, At: d.At.Time()}
}

func fromSession(v *engine.SessionView) takt.WorkerStatus {
	x := &v.Session
	w := takt.WorkerStatus{Name: x.Worker, Session: string(x.ID), Pool: x.Pool, Handlers: append([]string{}, x.Handlers...), Slots: x.Slots,
		Busy: len(v.Held), Labels: x.Labels, Build: x.Build, OpenedAt: instant(x.OpenedAt), LastBeatMs: v.LastBeat.Milliseconds(),
		LeaseTTLMs: x.TTL.Milliseconds()}
	if v.Clock != nil {
		ms := v.Clock.Milliseconds()
		w.SkewMs = &ms
	}
	var first time.Duration
	for i, h := range v.Held {
		if i == 0 || h.Left < first {
			first = h.Left
		}
	}
	w.LeaseLeftMs = max(first, 0).Milliseconds()
	return w
}

func fromStats(p *partition.Stats) takt.PartitionStats {
	return takt.PartitionStats{Partition: p.Partition, Owned: p.Owned, Epoch: int64(p.Epoch), Seq: p.Seq, Steps: p.Steps, Events: p.Events,
		Commits: p.Commits, CommitErr: p.CommitErr, Engines: p.Engines, Poisoned: p.Poisoned, CommitP99Us: p.CommitP99.Microseconds(),
		Stale: p.Stale, Granted: p.Granted, Renewed: p.Renewed, Expired: p.Expired, Undelivered: p.Undelivered, TimedOut: p.TimedOut, Unexplained: p.Unexplained}
}

// fromTurn also says why what runs is not known; "" when it is.
func fromTurn(seen control.Seen[*engine.TurnView]) (live *takt.JobLive, unknown string) {
	switch {
	case len(seen.Items) == 0 && seen.Away == 0:
		return nil, ""
	case len(seen.Items) == 0 && seen.Asked == 1:
		return nil, "the partition of its pool has no owner that answers now"
	case len(seen.Items) == 0:
		return nil, fmt.Sprintf("the job may be on its way from another pool, and %d of %d partitions have no owner that answers now", seen.Away, seen.Asked)
	}
	t := seen.Items[0]
	live = &takt.JobLive{Running: make([]string, len(t.Running)), Waiting: t.Waiting, WaitingSince: instant(t.Since), Moving: t.Moves}
	for i, id := range t.Running {
		live.Running[i] = id.String()
	}
	return live, ""
}

func fromParents(all []job.Parent) (out []takt.ParentExecution) {
	for i := range all {
		out = append(out, fromParent(&all[i]))
	}
	return out
}

func fromParent(p *job.Parent) takt.ParentExecution {
	one := takt.ParentExecution{Job: p.Job, State: string(p.State), PlannedAt: instant(p.PlannedAt), EndedAt: instant(p.EndedAt)}
	if !p.Execution.IsZero() {
		one.Execution = p.Execution.String()
	}
	return one
}
