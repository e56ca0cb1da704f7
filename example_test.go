package takt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/taktsched/takt"
)

// A worker offers handlers to the jobs of a pool. This one sends invoices, a batch at a time, and goes on
// after the last batch that was saved.
func Example_worker() {
	server := standIn(takt.Assignment{Job: "invoices", Handler: "send-invoices", Shard: 2, ShardTotal: 8, Attempt: 2, Token: 41,
		Params: json.RawMessage(`{"month":"2026-11"}`), Checkpoint: json.RawMessage(`100`), Key: "default/invoices@2026-12-01T00:00:00.000Z#2"})
	defer server.Close()

	w, err := takt.NewWorker(takt.WorkerConfig{Server: server.URL, Pool: "billing", Slots: 4, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background()) // in a program: signal.NotifyContext
	w.Handle("send-invoices", func(ctx context.Context, t *takt.Task) error {
		defer stop()
		var params struct{ Month string }
		if err := t.BindParams(&params); err != nil {
			return err
		}
		next := 0
		if _, err := t.LastCheckpoint(&next); err != nil {
			return takt.Fatal(err)
		}
		for ; next < 300; next += 100 {
			// Store t.Key() with the effects, uniquely: a batch may come again after a crash.
			fmt.Printf("shard %d of %d: invoices of %s from %d\n", t.Shard(), t.ShardTotal(), params.Month, next)
			if err := t.Checkpoint(ctx, next+100); err != nil {
				return err // takt.ErrLeaseLost, or why the attempt must stop
			}
		}
		return t.SetResult(map[string]int{"sent": 200})
	})
	if err := w.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// shard 2 of 8: invoices of 2026-11 from 100
	// shard 2 of 8: invoices of 2026-11 from 200
}

// A client creates a job, runs it now and waits for the end.
func Example_client() {
	server := standIn()
	defer server.Close()

	c, err := takt.NewClient(takt.ClientConfig{Server: server.URL, Token: os.Getenv("TAKT_TOKEN")})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	job := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: "invoices"},
		Spec: takt.JobSpec{Pool: "billing", Handler: "send-invoices", Shards: &takt.ShardsSpec{Count: 8},
			Schedule: &takt.ScheduleSpec{Cron: "0 3 1 * *", TimeZone: "Asia/Shanghai"}}}
	if job, err = c.PutJob(ctx, job, takt.PutOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	made, err := c.Trigger(ctx, "invoices", takt.TriggerOptions{
		Params: map[string]string{"month": "2026-11"}, IdempotencyKey: "invoices-2026-11"})
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := c.Wait(ctx, made.Execution)
	fmt.Println(job.Metadata.Revision, e.State, err)

	_, err = c.Execution(ctx, "gone")
	fmt.Println(errors.Is(err, takt.ErrNotFound))
	// Output:
	// 1 succeeded <nil>
	// true
}

// The value that a handler returns decides what becomes of the shard.
func ExampleHandler() {
	var busy, wrong, slow bool
	var handler takt.Handler = func(ctx context.Context, t *takt.Task) error {
		switch {
		case busy: // somebody else is at it: come back later, no attempt is burnt
			return takt.Snooze(10 * time.Minute)
		case wrong: // would be as wrong next time
			return takt.Fatal(errors.New("account 7 is closed"))
		case slow: // the other side said when to ask again
			return takt.RetryAfter(time.Minute, errors.New("429 too many requests"))
		}
		return ctx.Err() // may be retried, as the job's policy says; nil is success
	}
	wrong = true
	fmt.Println(handler(context.Background(), nil))
	// Output:
	// account 7 is closed
}

// standIn is a server that knows one job and hands out the given assignments.
func standIn(work ...takt.Assignment) *httptest.Server {
	mux := http.NewServeMux()
	say := func(w http.ResponseWriter, status int, v any) {
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(v); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	mux.HandleFunc("POST /api/v1/worker/open", func(w http.ResponseWriter, _ *http.Request) {
		say(w, 200, takt.OpenResponse{Session: "0.0123456789abcdef01234567", TTLMs: 15_000, BeatMs: 3_000, MarginMs: 1_500, CallTimeoutMs: 2_000, PollMs: 20_000})
	})
	var once sync.Once
	mux.HandleFunc("POST /api/v1/worker/poll", func(w http.ResponseWriter, r *http.Request) {
		var req takt.PollRequest
		_ = json.NewDecoder(r.Body).Decode(&req)
		sent := false
		once.Do(func() {
			for i := range work {
				work[i].LeaseCall = req.Call
			}
			say(w, 200, takt.PollResponse{Assignments: work})
			sent = true
		})
		if !sent {
			<-r.Context().Done()
		}
	})
	mux.HandleFunc("POST /api/v1/worker/report", func(w http.ResponseWriter, r *http.Request) {
		var req takt.ReportRequest
		_ = json.NewDecoder(r.Body).Decode(&req)
		fates := make([]string, len(req.Items))
		for i := range fates {
			fates[i] = "accepted"
		}
		say(w, 200, takt.ReportResponse{Items: fates})
	})
	mux.HandleFunc("POST /api/v1/worker/{call}", func(w http.ResponseWriter, _ *http.Request) { say(w, 200, struct{}{}) })
	mux.HandleFunc("PUT /api/v1/namespaces/default/jobs/{name}", func(w http.ResponseWriter, r *http.Request) {
		var j takt.Job
		_ = json.NewDecoder(r.Body).Decode(&j)
		j.Metadata.Revision = 1
		say(w, 200, j)
	})
	mux.HandleFunc("POST /api/v1/namespaces/default/jobs/{name}/trigger", func(w http.ResponseWriter, _ *http.Request) {
		say(w, 201, takt.Triggered{Execution: "06cw1bq0fr8j1x4cw6h3ybkq2c", Effect: "effective"})
	})
	mux.HandleFunc("GET /api/v1/namespaces/default/executions/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "gone" {
			say(w, 404, takt.Problem{Status: 404, Kind: "not_found", Code: "execution_not_found", Detail: "no such execution"})
			return
		}
		say(w, 200, takt.Execution{ID: r.PathValue("id"), State: "succeeded"})
	})
	return httptest.NewServer(mux)
}
