package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/taktsched/takt"
)

// A Meter counts something that only rises.
type Meter interface {
	// Read gives the counts by name, such as commits.
	Read(ctx context.Context) (map[string]float64, error)
}

// Result is what one run found.
type Result struct {
	Executions int64   `json:"executions"`
	Shards     int     `json:"shardsEach"`
	Requests   int64   `json:"requests"`
	Seconds    float64 `json:"seconds"`    // from the first request to the last acknowledged end
	PerSecond  float64 `json:"perSecond"`  // executions
	RunsPerSec float64 `json:"runsPerSec"` // shards

	Start Quantiles `json:"requestToStart"`
	End   Quantiles `json:"requestToEnd"`

	// Rises of the meters, such as commits, walBytes, serverCpuSeconds.
	Rises map[string]float64 `json:"rises"`
}

// Each is a meter's rise for one execution; false when it was not counted.
func (r *Result) Each(name string) (float64, bool) {
	v, ok := r.Rises[name]
	if !ok || r.Executions == 0 {
		return 0, false
	}
	return v / float64(r.Executions), true
}

// Run loads the server of cfg and returns its figures. It fails, without figures, when not every execution
// succeeded exactly once. Errors of the configuration are *job.Error of KindInvalid; ErrNotEmpty when the namespace
// is in use.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	client, err := takt.NewClient(takt.ClientConfig{Server: cfg.Server, Namespace: cfg.Namespace, Token: cfg.Token,
		HTTPClient: &http.Client{Transport: transport(cfg.Clients + 2)}})
	if err != nil {
		return nil, err
	}
	jobs, err := prepare(ctx, &cfg, client)
	if err != nil {
		return nil, err
	}
	t := newTally(cfg.Shards)
	crew, err := hire(ctx, &cfg, client, t, t.run)
	if err != nil {
		return nil, err
	}
	result, err := measure(ctx, &cfg, client, t, jobs)
	if err = errors.Join(err, crew.dismiss()); err != nil {
		return nil, err
	}
	if err := errors.Join(t.ours(), theirs(ctx, client, jobs, result.Executions)); err != nil {
		return nil, fmt.Errorf("the check does not hold: %w", err)
	}
	return result, nil
}

// prepare puts the jobs in, one for each pool.
func prepare(ctx context.Context, cfg *Config, client *takt.Client) (names []string, err error) {
	jobs, err := client.Jobs(ctx, takt.Page{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(jobs.Items) > 0 && !cfg.Force {
		return nil, fmt.Errorf("namespace %s: %w", cfg.Namespace, ErrNotEmpty)
	}
	run := strings.ToLower(rand.Text()[:8]) // names of this run alone
	for i := range cfg.Pools {
		j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: fmt.Sprintf("noop-%s-%d", run, i+1)}, Spec: takt.JobSpec{Pool: poolName(i), Handler: handler}}
		if cfg.Shards > 1 {
			j.Spec.Shards = &takt.ShardsSpec{Count: cfg.Shards}
		}
		if _, err := client.PutJob(ctx, j, takt.PutOptions{}); err != nil {
			return nil, err
		}
		names = append(names, j.Metadata.Name)
	}
	return names, nil
}

// measure is the load itself between two readings of the meters.
func measure(ctx context.Context, cfg *Config, client *takt.Client, t *tally, jobs []string) (*Result, error) {
	meters := append([]Meter{servers{client}}, cfg.Meters...)
	before, err := read(ctx, meters)
	if err != nil {
		return nil, err
	}
	l, from := newLoad(cfg, client, t, jobs), t.clock()
	if err := l.run(ctx); err != nil {
		return nil, err
	}
	if err := drain(ctx, t, patience); err != nil {
		return nil, err
	}
	took := t.clock() - from
	after, err := read(ctx, meters)
	if err != nil {
		return nil, err
	}
	for name, v := range before {
		after[name] -= v
	}
	if _, counted := after[Commits]; !counted {
		after[Commits] = after[OwnerCommits] + float64(l.requests)
	}
	n := t.asked.Load()
	start, end := t.times()
	return &Result{Executions: n, Shards: cfg.Shards, Requests: l.requests, Seconds: took.Round(time.Millisecond).Seconds(),
		PerSecond: float64(n) / took.Seconds(), RunsPerSec: float64(n*int64(cfg.Shards)) / took.Seconds(),
		Start: quantiles(start), End: quantiles(end), Rises: after}, nil
}

func read(ctx context.Context, meters []Meter) (map[string]float64, error) {
	all := map[string]float64{}
	for _, m := range meters {
		counts, err := m.Read(ctx)
		if err != nil {
			return nil, err
		}
		for name, v := range counts {
			all[name] += v
		}
	}
	return all, nil
}
