package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
)

type (
	explainInput struct {
		JobPath
		At string `query:"at" required:"true" minLength:"1" maxLength:"64" doc:"RFC 3339, or 2026-03-08T02:30 on the clocks of the job's time zone, or 2026-03-08T02:30[Asia/Shanghai]."`
	}
	upcomingInput struct {
		NamespacePath
		Page
		Job string `query:"job" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Only of this job; then those that its pause would hold are listed too."`
		For string `query:"for" maxLength:"64" doc:"How far to look, such as 24h or 7d; default 24h, at most 366d."`
	}
	backfillInput struct {
		JobPath
		Body takt.BackfillRequest
	}
	// BackfillPath names a backfill.
	BackfillPath struct {
		NamespacePath
		ID string `path:"id" maxLength:"36" doc:"Id of the backfill."`
	}
	cancelBackfillInput struct {
		BackfillPath
		Body *takt.CancelBackfillRequest
	}
	listBackfillsInput struct {
		NamespacePath
		Page
		Job string `query:"job" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" doc:"Only of this job."`
	}
)

func (p BackfillPath) id() (job.ExecutionID, error) {
	id, err := job.ParseExecutionID(p.ID)
	if err != nil {
		return id, job.Errorf(job.KindInvalid, "bad_backfill_id", "this is no id of a backfill").WithField("path.id").
			WithHint("an id is 26 characters such as 06cw1bq0fr8j1x4cw6h3ybkq2c; `takt get backfills` lists them")
	}
	return id, nil
}

func (s *server) see() {
	people := intake{limit: s.limits.Body}
	register(s, huma.Operation{OperationID: "explainJob", Method: http.MethodGet, Path: pathPeople + "/jobs/{name}/explain", Tags: []string{"jobs"},
		Summary: "Tell what became, or becomes, of an instant of a job"}, people, s.explain)
	register(s, huma.Operation{OperationID: "listUpcoming", Method: http.MethodGet, Path: pathPeople + "/upcoming", Tags: []string{"jobs"},
		Summary: "List the planned instants to come, in their order"}, people, s.listUpcoming)
	tags := []string{"backfills"}
	register(s, huma.Operation{OperationID: "backfillJob", Method: http.MethodPost, Path: pathPeople + "/jobs/{name}/backfills", Tags: tags,
		Summary:     "Run a job for the planned instants of a range of the past",
		Description: "Each instant that has no succeeded execution: one that failed runs again, one that lives is waited for."}, people, s.backfillJob)
	register(s, huma.Operation{OperationID: "listBackfills", Method: http.MethodGet, Path: pathPeople + "/backfills", Tags: tags,
		Summary: "List backfills, newest first"}, people, s.listBackfills)
	register(s, huma.Operation{OperationID: "getBackfill", Method: http.MethodGet, Path: pathPeople + "/backfills/{id}", Tags: tags,
		Summary: "Read a backfill and how far it has come"}, people, s.getBackfill)
	register(s, huma.Operation{OperationID: "cancelBackfill", Method: http.MethodPost, Path: pathPeople + "/backfills/{id}/cancel", Tags: tags,
		Summary: "End a backfill: nothing more is started"}, people, s.cancelBackfill)
}

func (s *server) explain(ctx context.Context, in *explainInput) (*answer[takt.Explanation], error) {
	x, err := s.control.Explain(ctx, in.NS, in.Name, in.At)
	if e, ok := asError(err); ok && (e.Code == "bad_instant" || e.Code == "bad_time_zone") {
		return nil, e.WithField("query.at")
	}
	if err != nil {
		return nil, err
	}
	return &answer[takt.Explanation]{fromExplanation(in.Name, &x)}, nil
}

func fromExplanation(name string, x *control.Explanation) takt.Explanation {
	out := takt.Explanation{Job: name, At: x.At.Time().In(x.Zone), Verdict: string(x.Verdict), Text: x.Text, Reason: string(x.Reason),
		Revision: x.Revision, Schedule: x.Schedule, TimeZone: x.Zone.String(), Note: x.Note}
	e := x.Evidence.Execution
	if e == nil {
		e = x.Evidence.Earlier
	}
	if e != nil {
		shown := fromExecution(&e.Execution)
		shown.Waits, shown.WaitsText = string(e.Waits), e.Waits.Text()
		out.Execution = &shown
		if e.StartedAt != 0 {
			ms := x.Late.Milliseconds()
			out.LateMs = &ms
		}
	}
	if d := x.Evidence.Before; d != nil && e == nil {
		out.Decisions = append(out.Decisions, fromDecision(d))
	}
	for i := range x.Evidence.Decisions {
		out.Decisions = append(out.Decisions, fromDecision(&x.Evidence.Decisions[i]))
	}
	if id := x.Evidence.Backfill; !id.IsZero() {
		out.Backfill = id.String()
	}
	for _, t := range []struct {
		is time.Time
		to **time.Time
	}{{x.Previous, &out.Previous}, {x.Next, &out.Next}} {
		if !t.is.IsZero() {
			at := t.is.In(x.Zone)
			*t.to = &at
		}
	}
	return out
}

func (s *server) listUpcoming(ctx context.Context, in *upcomingInput) (*answer[takt.UpcomingList], error) {
	var within takt.Duration
	if in.For != "" {
		if err := within.UnmarshalText([]byte(in.For)); err != nil {
			return nil, job.Errorf(job.KindInvalid, "bad_duration", "this is no length of time").WithField("query.for").WithHint("such as 24h or 7d")
		}
		if within <= 0 {
			within = -1
		}
	}
	items, next, bound, err := s.control.Upcoming(ctx, control.UpcomingRequest{Namespace: in.NS, Job: in.Job, For: within.Std(), Page: in.of()})
	if err != nil {
		return nil, err
	}
	out := takt.UpcomingList{Items: make([]takt.Upcoming, len(items)), Next: next}
	for i := range items {
		out.Items[i] = takt.Upcoming{Fire: fromFires([]control.Fire{items[i].Fire})[0], Job: items[i].Job, Held: items[i].Held}
	}
	if !bound.IsZero() {
		out.Complete = &bound
	}
	if in.Job == "" && in.After == "" {
		paused, more, err := s.control.PausedJobs(ctx, in.NS)
		if err != nil {
			return nil, err
		}
		for _, p := range paused {
			out.Paused = append(out.Paused, takt.PausedJob{Job: p.Job, Held: p.Held})
		}
		out.PausedMore = more
	}
	return &answer[takt.UpcomingList]{out}, nil
}

func (s *server) backfillJob(ctx context.Context, in *backfillInput) (*answer[takt.Backfill], error) {
	b := &in.Body
	made, err := s.control.Backfill(ctx, control.BackfillRequest{Namespace: in.NS, Job: in.Name, From: b.From, To: b.To, Reverse: b.Reverse,
		MaxParallel: b.MaxParallel, DryRun: b.DryRun, Change: job.Change{By: b.Author, Reason: b.Reason}})
	if err != nil {
		return nil, err
	}
	return &answer[takt.Backfill]{fromBackfilled(&made)}, nil
}

func (s *server) cancelBackfill(ctx context.Context, in *cancelBackfillInput) (*answer[takt.Backfill], error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	r := control.CancelBackfillRequest{Namespace: in.NS, ID: id}
	if b := in.Body; b != nil {
		r.Running, r.Change = b.Running, job.Change{By: b.Author, Reason: b.Reason}
	}
	done, err := s.control.CancelBackfill(ctx, r)
	if err != nil {
		return nil, err
	}
	return &answer[takt.Backfill]{fromBackfilled(&done)}, nil
}

func (s *server) getBackfill(ctx context.Context, in *BackfillPath) (*answer[takt.Backfill], error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	b, err := s.control.BackfillByID(ctx, in.NS, id)
	if err != nil {
		return nil, err
	}
	return &answer[takt.Backfill]{fromBackfill(&b)}, nil
}

func (s *server) listBackfills(ctx context.Context, in *listBackfillsInput) (*answer[takt.BackfillList], error) {
	rows, next, err := s.control.Backfills(ctx, in.NS, in.Job, in.of())
	if err != nil {
		return nil, err
	}
	out := takt.BackfillList{Items: make([]takt.Backfill, len(rows)), Next: next}
	for i := range rows {
		out.Items[i] = fromBackfill(&rows[i])
	}
	return &answer[takt.BackfillList]{out}, nil
}

func fromBackfilled(b *control.Backfilled) takt.Backfill {
	out := fromBackfill(&b.Backfill)
	out.Effect, out.Note = string(b.Effect), b.Note
	for _, l := range b.Lines {
		out.Schedules = append(out.Schedules, takt.BackfillSchedule{Name: l.Schedule, Total: l.Count, First: l.First.Time(), Last: l.Last.Time()})
	}
	return out
}

func fromBackfill(b *job.Backfill) takt.Backfill {
	p := &b.Progress
	out := takt.Backfill{Job: b.Job, Revision: b.Revision, From: b.From.Time(), To: b.To.Time(), Reverse: b.Spec.Reverse, MaxParallel: b.Spec.Parallel(),
		State: string(p.State), Total: b.Spec.Total, Succeeded: p.Succeeded, Failed: p.Failed, Skipped: p.Skipped, Cursor: instant(p.Cursor),
		Author: b.Spec.By, Reason: b.Spec.Reason, StartedAt: instant(p.Started), EndedAt: instant(p.Ended), EndReason: p.Reason.Text()}
	if !b.ID.IsZero() {
		out.ID, out.At = b.ID.String(), instant(b.At)
	}
	for _, at := range p.Open {
		out.Running = append(out.Running, job.PlannedID(b.JobUID, at).String())
	}
	if c := b.Cancel; c != nil {
		out.Cancelled = strings.TrimSpace(strings.Join([]string{c.By, c.Note, c.Reason.Text()}, " "))
	}
	return out
}
