package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// callTimeout bounds a worker's call on our side, beyond what a poll hangs; the worker gives up sooner.
const callTimeout = 10 * time.Second

// body is a request that is a body alone.
type body[T any] struct{ Body T }

func (s *server) worker() {
	op := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodPost, Path: pathWorker + path, Summary: summary, Tags: []string{"worker"}}
	}
	small := intake{lenient: true, limit: s.limits.Body, passes: true}
	hanging := small
	hanging.hangs = true
	register(s, op("workerOpen", "open", "Begin a session"), small, s.open)
	registerDirect(s, op("workerPoll", "poll", "Ask for work; hangs while there is none"), hanging, s.poll, fillPoll)
	registerDirect(s, op("workerHeartbeat", "heartbeat", "Renew the named leases"), intake{lenient: true, limit: 8 * s.limits.Body, passes: true}, s.heartbeat, fillBeat)
	registerDirect(s, op("workerReport", "report", "Report what happened; send again until answered"),
		intake{lenient: true, limit: s.limits.ReportBody, passes: true}, s.report, fillReport)
	register(s, op("workerClose", "close", "End a session; what it holds goes back at once"), small, s.closing)
}

func (s *server) open(ctx context.Context, in *body[takt.OpenRequest]) (*answer[takt.OpenResponse], error) {
	r := &in.Body
	if err := checkOpen(r); err != nil {
		return nil, err
	}
	p := partition.Of(r.Namespace, r.Pool, s.owners.Count())
	session := job.Session{ID: job.SessionIDOf(p, r.Namespace, r.Pool, r.Worker, r.Incarnation), Partition: p, Namespace: r.Namespace,
		Pool: r.Pool, Worker: r.Worker, Incarnation: r.Incarnation, Handlers: r.Handlers, Slots: r.Slots, Labels: r.Labels, Build: r.Build}
	opened, epoch, err := call[*engine.Opened](ctx, s, p, r.Epoch, engine.SessionOpen{Session: session, Call: r.Call, Clock: s.ahead(r.LocalTime)}, 0)
	if err != nil {
		return nil, err
	}
	out := fromOpened(opened, epoch, s.limits)
	out.ServerTime = s.now().UTC()
	return &answer[takt.OpenResponse]{out}, nil
}

func (s *server) poll(ctx context.Context, in *body[takt.PollRequest]) (*answer[takt.PollResponse], error) {
	r := &in.Body
	if err := checkPoll(r); err != nil {
		return nil, err
	}
	p, err := s.partitionOf(r.Session)
	if err != nil {
		return nil, err
	}
	wait := min(time.Duration(min(r.WaitMs, s.limits.PollMax.Milliseconds()))*time.Millisecond, s.limits.PollMax)
	polled, epoch, err := call[*engine.Polled](ctx, s, p, r.Epoch, engine.Poll{Session: job.SessionID(r.Session), Call: r.Call, Number: r.Number,
		Free: r.Free, Held: toTokens(r.Held), Wait: wait}, wait)
	if err != nil {
		return nil, err
	}
	out := fromPolled(polled, epoch)
	if err := s.tellParents(ctx, polled.Assignments, &out); err != nil {
		return nil, &decided{err: err, epoch: epoch}
	}
	return &answer[takt.PollResponse]{out}, nil
}

func (s *server) heartbeat(ctx context.Context, in *body[takt.HeartbeatRequest]) (*answer[takt.HeartbeatResponse], error) {
	r := &in.Body
	if err := checkBeat(r); err != nil {
		return nil, err
	}
	p, err := s.partitionOf(r.Session)
	if err != nil {
		return nil, err
	}
	held := make([]engine.Held, len(r.Held))
	for i, h := range r.Held {
		held[i] = engine.Held{Token: job.Token(h.Token), Progress: toProgress(h.Progress)}
	}
	beaten, epoch, err := call[*engine.Beaten](ctx, s, p, r.Epoch, engine.Heartbeat{Session: job.SessionID(r.Session), Call: r.Call, Held: held,
		Clock: s.ahead(r.LocalTime)}, 0)
	if err != nil {
		return nil, err
	}
	return &answer[takt.HeartbeatResponse]{fromBeaten(beaten, epoch)}, nil
}

func (s *server) report(ctx context.Context, in *body[takt.ReportRequest]) (*answer[takt.ReportResponse], error) {
	r := &in.Body
	if err := checkNumbers(r.Call, r.Epoch); err != nil {
		return nil, err
	}
	items, err := s.limits.toItems(r.Items)
	if err != nil {
		return nil, err
	}
	p, err := s.partitionOf(r.Session)
	if err != nil {
		return nil, err
	}
	s.announceLogs(ctx, r.Items)
	reported, epoch, err := call[*engine.Reported](ctx, s, p, r.Epoch, engine.Report{Session: job.SessionID(r.Session), Call: r.Call, Items: items}, 0)
	if err != nil {
		return nil, err
	}
	return &answer[takt.ReportResponse]{fromReported(reported, epoch)}, nil
}

func (s *server) closing(ctx context.Context, in *body[takt.CloseRequest]) (*answer[takt.CloseResponse], error) {
	r := &in.Body
	if err := checkNumbers(r.Call, r.Epoch); err != nil {
		return nil, err
	}
	p, err := s.partitionOf(r.Session)
	if err != nil {
		return nil, err
	}
	_, epoch, err := call[*engine.Closed](ctx, s, p, r.Epoch, engine.SessionClose{Session: job.SessionID(r.Session), Call: r.Call}, 0)
	if err != nil {
		return nil, err
	}
	return &answer[takt.CloseResponse]{takt.CloseResponse{Epoch: int64(epoch)}}, nil
}

// ahead is how far a worker's clock is ahead of this one; nil when it did not say the time.
func (s *server) ahead(local time.Time) *time.Duration {
	if local.IsZero() {
		return nil
	}
	d := local.Sub(s.now())
	return &d
}

func checkNumbers(call, epoch int64) error {
	var c checks
	c.number(call, "call")
	c.number(epoch, "epoch")
	return c.done()
}

// partitionOf finds the partition of a session. One that is not of a session's form, or of a partition
// that is not there, is a session that nobody knows: the worker opens a new one.
func (s *server) partitionOf(session string) (int, error) {
	p, ok := job.SessionID(session).Partition()
	if !ok || p >= s.owners.Count() {
		return 0, job.Errorf(job.KindNotFound, "session_unknown", "no such session").WithField("session").WithHint("open a new session")
	}
	return p, nil
}

// call hands an event to the partition's owner and waits for the answer of type A, at most wait and
// callTimeout. It ends with ctx, that is, when the client is gone.
func call[A any](ctx context.Context, s *server, p int, seen int64, ev engine.Event, wait time.Duration) (answer A, epoch job.Epoch, err error) {
	if err := s.plausible(p, seen); err != nil {
		return answer, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait+callTimeout)
	defer cancel()
	reply, err := s.owners.Call(ctx, p, max(job.Epoch(seen), hopEpoch(ctx)), ev)
	if err != nil {
		return answer, 0, &decided{err: err, epoch: reply.Epoch}
	}
	answer, ok := reply.Value.(A)
	if !ok {
		return answer, 0, job.Errorf(job.KindInternal, "bad_answer", "the owner of partition %d answered %T to %T", p, reply.Value, ev)
	}
	return answer, reply.Epoch, nil
}

// decided is an error with the epoch of the owner that decided it (0: none did): a worker ignores a
// refusal of an owner that is not the newest, too.
type decided struct {
	err   error
	epoch job.Epoch
}

// Error and Unwrap are those of the error.
func (d *decided) Error() string { return d.err.Error() }
func (d *decided) Unwrap() error { return d.err }

// plausible refuses an epoch that no owner can have reached: an owner that meets a higher epoch drops
// its engine, so an invented one would drop it with each call. Epochs follow the clock in µs.
func (s *server) plausible(p int, seen int64) error {
	lead := maxEpochLead.Microseconds()
	if seen <= s.now().UnixMicro()+lead {
		return nil
	}
	for _, st := range s.owners.Stats() {
		if st.Partition == p && seen <= int64(st.Epoch)+lead {
			return nil
		}
	}
	return job.Errorf(job.KindInvalid, "implausible_epoch", "no server has reached this epoch").WithField("epoch").
		WithHint("send the highest epoch that a server has answered")
}

func toTokens(in []int64) []job.Token {
	out := make([]job.Token, len(in))
	for i, t := range in {
		out[i] = job.Token(t)
	}
	return out
}
