package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/taktsched/takt"
)

// Config says how to run the demo.
type Config struct {
	Dir     string        // to index
	Rate    float64       // files per second and shard; 0: chosen so that the whole takes about 75 s
	Workers int           // processes, 3 … 26: one is killed, one is frozen, one must remain
	Shards  int           // 4 … 64
	TTL     time.Duration // of a shard's lease
	Beat    time.Duration
	Margin  time.Duration
	Data    string // directory of the server's data and of the effects; "": a temporary one

	Command  []string // starts a worker process; its flags are appended
	Build    string
	Progress io.Writer // events, and bars when Terminal
	Terminal bool
}

// Demo is a running demo: server, sink and workers.
type Demo struct {
	cfg       Config
	view      *view
	data      string
	temporary bool
	effects   *os.File
	sink      *Sink
	sinkSrv   *http.Server
	sinkAddr  string
	server    *server
	client    *takt.Client
	procs     *processes
	pace      pace
	stamp     string // of the directory when the demo began

	execution   string
	shards      []takt.ShardStatus // at the last look
	takeovers   []float64
	staleServer int64
}

// Start checks the plan and starts server, sink and workers. The error is a *BadPlan when the files or
// the lengths do not fit. Close ends everything, also after an error of Drive.
func Start(ctx context.Context, cfg Config) (*Demo, error) {
	d := &Demo{cfg: cfg, view: &view{out: cfg.Progress, terminal: cfg.Terminal, began: time.Now()}}
	if err := d.start(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Demo) start(ctx context.Context) error {
	dir, err := filepath.Abs(d.cfg.Dir)
	if err != nil {
		return fmt.Errorf("find %s: %w", d.cfg.Dir, err)
	}
	d.cfg.Dir = dir
	paths, err := Walk(ctx, dir)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return &BadPlan{Message: err.Error(), Hint: "--dir names the directory to index"}
	}
	if d.stamp, err = Stamp(ctx, dir); err != nil {
		return err
	}
	if d.pace, err = paceFor(paths, d.cfg.Shards, d.cfg.Rate); err != nil {
		return err
	}
	if err := d.openData(); err != nil {
		return err
	}
	if d.server, err = startServer(ctx, d.cfg, d.data); err != nil {
		return err
	}
	if err := d.openSink(ctx); err != nil {
		return err
	}
	if d.client, err = takt.NewClient(takt.ClientConfig{Server: d.server.url}); err != nil {
		return err
	}
	d.view.say("server at %s", d.server.url)
	d.view.say("%d files below %s in %d shards, about %v each", len(paths), dir, d.cfg.Shards, d.pace.takes.Round(time.Second))
	return d.startWorkers(ctx)
}

// openData finds a directory for the server's data.
func (d *Demo) openData() (err error) {
	d.data = d.cfg.Data
	if d.data == "" {
		if d.data, err = os.MkdirTemp("", "takt-demo-"); err != nil {
			return fmt.Errorf("make a directory for the data: %w", err)
		}
		d.temporary = true
	} else if err = os.MkdirAll(d.data, 0o700); err != nil {
		return fmt.Errorf("make the directory for the data: %w", err)
	}
	return nil
}

// openSink makes the file of effects and starts the sink.
func (d *Demo) openSink(ctx context.Context) (err error) {
	if d.effects, err = os.CreateTemp(d.data, "effects-*.jsonl"); err != nil {
		return fmt.Errorf("make the file of effects: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the sink: %w", err)
	}
	d.sink = NewSink(d.effects)
	d.sinkAddr = "http://" + l.Addr().String() + "/"
	d.sinkSrv = &http.Server{Handler: d.sink, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second}
	go func() { _ = d.sinkSrv.Serve(l) }() // ends by Close; handlers notice when it ends before
	return nil
}

// startWorkers starts the processes and waits until the server knows them all. Each has a slot for every
// shard, so that the last one alive can take all.
func (d *Demo) startWorkers(ctx context.Context) error {
	d.procs = newProcesses(d.cfg.Command, d.data)
	for i := range d.cfg.Workers {
		name := string(rune('A' + i))
		if err := d.procs.start(name, "--server", d.server.url, "--name", name, "--slots", strconv.Itoa(d.cfg.Shards)); err != nil {
			return err
		}
	}
	return d.poll(ctx, 30*time.Second, "the workers to open their sessions", func() (bool, error) {
		list, err := d.client.Workers(ctx, Pool)
		return len(list.Items) >= d.cfg.Workers, err
	})
}

// Drive runs the job, hits two workers in the middle, waits for the end and audits the effects. ctx ends
// it early.
func (d *Demo) Drive(ctx context.Context) (*Result, error) {
	for _, step := range []func(context.Context) error{d.trigger, d.killOne, d.freezeOne, d.finish} {
		if err := step(ctx); err != nil {
			d.view.close()
			if ctx.Err() == nil {
				err = d.withLogs(err)
			}
			return nil, err
		}
	}
	d.view.close()
	r := &Result{TakeoverSeconds: append([]float64{}, d.takeovers...)}
	r.countShards(d.shards)
	st := d.sink.Stats()
	r.RepeatsSwallowed, r.StaleSink, r.StaleServer = st.Repeats, st.Stale, d.staleServer
	d.view.say("audit: the effects against a plain walk of this process")
	effects, err := os.Open(d.effects.Name())
	if err != nil {
		return nil, fmt.Errorf("open the effects: %w", err)
	}
	audited, err := Audit(ctx, d.cfg.Dir, effects)
	if err := errors.Join(err, effects.Close()); err != nil {
		return nil, err
	}
	r.countAudit(audited)
	switch now, err := Stamp(ctx, d.cfg.Dir); {
	case err != nil:
		return nil, err
	case now != d.stamp:
		r.findings = append([]string{"somebody changed " + d.cfg.Dir + " while the demo ran, so there is nothing fixed to compare with: take a directory at rest (--dir)"}, r.findings...)
	}
	r.Seconds = seconds(time.Since(d.view.began))
	return r, nil
}

// trigger puts the job and asks for one execution.
func (d *Demo) trigger(ctx context.Context) error {
	params, err := json.Marshal(Params{Dir: d.cfg.Dir, Sink: d.sinkAddr, Batch: d.pace.batch, PauseMs: d.pace.pause.Milliseconds()})
	if err != nil {
		return fmt.Errorf("write the parameters: %w", err)
	}
	job := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: JobName},
		Spec: takt.JobSpec{Pool: Pool, Handler: Handler, Params: params, Shards: &takt.ShardsSpec{Count: d.cfg.Shards},
			Retry: &takt.RetrySpec{MaxAttempts: 5, Backoff: &takt.BackoffSpec{Initial: takt.Duration(time.Second)}}}}
	if _, err := d.client.PutJob(ctx, job, takt.PutOptions{}); err != nil {
		return err
	}
	made, err := d.client.Trigger(ctx, JobName, takt.TriggerOptions{})
	if err != nil {
		return err
	}
	d.execution = made.Execution
	d.view.say("execution %s", d.execution)
	return nil
}

// finish waits for the end of the execution and reads the counters once more.
func (d *Demo) finish(ctx context.Context) error {
	if err := d.awaitEnd(ctx, d.pace.takes+2*d.cfg.TTL+time.Minute); err != nil {
		return err
	}
	return d.countStale(ctx)
}

// URL is the server's address.
func (d *Demo) URL() string { return d.server.url }

// Execution is the id of the execution.
func (d *Demo) Execution() string { return d.execution }

// Close ends the workers, the sink and the server and removes what the demo made.
func (d *Demo) Close() error {
	var errs []error
	if d.procs != nil {
		errs = append(errs, d.procs.stop())
	}
	if d.sinkSrv != nil {
		errs = append(errs, d.sinkSrv.Close())
	}
	if d.server != nil {
		errs = append(errs, d.server.stop())
	}
	if d.effects != nil {
		errs = append(errs, d.effects.Close())
	}
	if d.temporary {
		errs = append(errs, os.RemoveAll(d.data))
	}
	return errors.Join(errs...)
}
