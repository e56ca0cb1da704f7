package api

import (
	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

func fromOpened(o *engine.Opened, epoch job.Epoch, l Limits) takt.OpenResponse {
	x := &o.Session
	return takt.OpenResponse{Session: string(x.ID), Epoch: int64(epoch), Call: o.Call, TTLMs: x.TTL.Milliseconds(), BeatMs: x.Beat.Milliseconds(),
		MarginMs: x.Margin.Milliseconds(), CallTimeoutMs: l.CallTimeout.Milliseconds(), PollMs: l.PollMax.Milliseconds(),
		Limits: takt.Limits{Params: l.Params, Checkpoint: l.Checkpoint, Result: l.Result, Items: l.Items}}
}

func fromPolled(p *engine.Polled, epoch job.Epoch) takt.PollResponse {
	out := takt.PollResponse{Epoch: int64(epoch), Superseded: p.Superseded, Cancels: fromCancels(p.Cancels)}
	for i := range p.Assignments {
		out.Assignments = append(out.Assignments, fromAssignment(&p.Assignments[i]))
	}
	return out
}

func fromAssignment(a *engine.Assignment) takt.Assignment {
	e := &a.Execution
	out := takt.Assignment{Namespace: e.Namespace, Job: e.Job, Revision: e.Revision, Execution: e.ID.String(), Handler: e.Handler,
		PlannedAt: e.PlannedAt.Time(), Shard: a.Shard, ShardTotal: e.ShardTotal, Attempt: a.Attempt, Token: int64(a.Token),
		LeaseCall: a.LeaseCall, Params: e.Params, Checkpoint: a.Checkpoint, CheckpointSeq: a.CheckpointSeq, Key: a.Key}
	if a.TimeoutIn > 0 {
		out.TimeoutMs = max(a.TimeoutIn.Milliseconds(), 1) // 0 would say that there is none
	}
	return out
}

func fromCancels(in []engine.Cancel) []takt.Cancel {
	var out []takt.Cancel
	for _, c := range in {
		out = append(out, takt.Cancel{Execution: c.Execution.String(), Shard: c.Shard, Token: int64(c.Token), Reason: string(c.Reason),
			GraceMs: c.Grace.Milliseconds()})
	}
	return out
}

func fromBeaten(b *engine.Beaten, epoch job.Epoch) takt.HeartbeatResponse {
	return takt.HeartbeatResponse{Epoch: int64(epoch), Call: b.Call, Renewed: fromTokens(b.Renewed), Lost: fromTokens(b.Lost),
		Cancels: fromCancels(b.Cancels)}
}

func fromTokens(in []job.Token) []int64 {
	var out []int64
	for _, t := range in {
		out = append(out, int64(t))
	}
	return out
}

func fromReported(r *engine.Reported, epoch job.Epoch) takt.ReportResponse {
	out := takt.ReportResponse{Epoch: int64(epoch), Items: make([]string, len(r.Items))}
	for i, s := range r.Items {
		out.Items[i] = string(s)
	}
	return out
}

func toProgress(p *takt.Progress) *job.Progress {
	if p == nil {
		return nil
	}
	return &job.Progress{Done: p.Done, Total: p.Total, Note: cut(p.Note, maxNote)}
}
