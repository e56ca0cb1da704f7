package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/taktsched/takt"
)

// FireConfig says how many schedules to load, and how fast they come due.
type FireConfig struct {
	Server    string
	Namespace string
	Token     string
	Schedules int           // 0: 100,000
	PerJob    int           // schedules of one job; 0: 1
	Rate      int           // instants in a second, over all; 0: 1,000
	For       time.Duration // 0: 1 min
	Lead      time.Duration // between the begin of loading and the first instant; 0: as Schedules suggest
	Idle      time.Duration // with all schedules loaded and nothing due; 0: 10 s
	Workers   int
	Slots     int
	Force     bool
	Meters    []Meter
	Logger    *slog.Logger

	near     time.Duration                              // 0: nearing; tests need not wait for it
	patience time.Duration                              // for instants behind the last; 0: as everywhere
	work     func(ctx context.Context, task *takt.Task) // what a handler does when its begin is noted; nil: nothing
}

// Fired is what became of the instants.
type Fired struct {
	Schedules int       `json:"schedules"`
	Load      float64   `json:"loadSeconds"`
	Expected  int       `json:"expected"`
	Lost      int       `json:"lost"`
	Repeated  int       `json:"repeated"` // runs of an instant beyond the first
	Seconds   float64   `json:"seconds"`
	Lateness  Quantiles `json:"lateness"`  // from planned instant to the begin of the handler
	IdleCPU   float64   `json:"idleCores"` // of this process, with all schedules loaded and nothing due
	BusyCPU   float64   `json:"busyCores"`
	RSS       float64   `json:"residentBytes"` // of this process, at its end
}

// nearing is how long before the first instant nothing is idle any more: what is due within a minute is read ahead.
const nearing = 65 * time.Second

func (c FireConfig) filled() (FireConfig, error) {
	orElse(&c.Schedules, 100_000)
	orElse(&c.PerJob, 1)
	orElse(&c.Rate, 1_000)
	orElse(&c.Workers, 1)
	orElse(&c.Slots, 1_000)
	if c.For == 0 {
		c.For = time.Minute
	}
	if c.Idle == 0 {
		c.Idle = 10 * time.Second
	}
	c.near, c.patience = cmp.Or(c.near, nearing), cmp.Or(c.patience, patience)
	if c.Lead == 0 {
		c.Lead = 20*time.Second + time.Duration(c.Schedules)*time.Second/500 + c.Idle + c.near
	}
	if c.Namespace == "" {
		c.Namespace = "bench"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Schedules < 1 || c.Rate < 1 || c.PerJob < 1 || c.PerJob > 30 || c.Workers < 1 || c.Slots < 1 || c.For < time.Second || c.Idle < time.Second:
		return c, errors.New("schedules, rate, workers and slots are at least 1, schedules of one job at most 30, times at least 1 s")
	case c.Schedules < c.Rate:
		return c, fmt.Errorf("%d schedules cannot come due %d times in a second: one fires once in a second at most", c.Schedules, c.Rate)
	case c.Lead <= c.Idle+c.near:
		return c, fmt.Errorf("the first instant must lie behind loading, the idle time and another %v", c.near)
	}
	return c, nil
}

func orElse(v *int, usual int) {
	if *v == 0 {
		*v = usual
	}
}

// Fire loads schedules of a fixed rate, lets them come due for a while and looks that each instant ran. The clock of the
// handlers must be that of the server: both on one machine.
func Fire(ctx context.Context, cfg FireConfig) (*Fired, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	client, err := takt.NewClient(takt.ClientConfig{Server: cfg.Server, Namespace: cfg.Namespace, Token: cfg.Token, HTTPClient: &http.Client{Transport: transport(8)}})
	if err != nil {
		return nil, err
	}
	if list, err := client.Jobs(ctx, takt.Page{Limit: 1}); err != nil {
		return nil, err
	} else if len(list.Items) > 0 && !cfg.Force {
		return nil, fmt.Errorf("namespace %s: %w", cfg.Namespace, ErrNotEmpty)
	}
	f := newFiring(&cfg)
	crew, err := hire(ctx, &Config{Server: cfg.Server, Namespace: cfg.Namespace, Token: cfg.Token, Pools: 1, Workers: cfg.Workers, Slots: cfg.Slots, Logger: cfg.Logger},
		client, newTally(1), f.run)
	if err != nil {
		return nil, err
	}
	out, err := f.measure(ctx, client)
	return out, errors.Join(err, crew.dismiss())
}

// firing counts the runs of each instant.
type firing struct {
	cfg    *FireConfig
	every  int64 // ms
	from   int64 // ms, first that may be due
	until  int64 // ms, behind the last
	first  []int64
	offset []int // of a schedule's instants in seen
	mu     sync.Mutex
	seen   []uint8
	left   int
	again  int
	late   []time.Duration
	done   chan struct{}
}

func newFiring(cfg *FireConfig) *firing {
	f := &firing{cfg: cfg, every: int64(cfg.Schedules) * 1000 / int64(cfg.Rate), done: make(chan struct{})}
	f.from = time.Now().Add(cfg.Lead).UnixMilli()
	f.until = f.from + cfg.For.Milliseconds()
	for i := range cfg.Schedules {
		first := f.from + ((f.phase(i)-f.from)%f.every+f.every)%f.every
		f.first, f.offset = append(f.first, first), append(f.offset, f.left)
		if first < f.until {
			f.left += int((f.until-1-first)/f.every) + 1
		}
	}
	f.seen = make([]uint8, f.left)
	return f
}

// phase spreads the schedules evenly over their period. It is above 0: then instants are counted from 1970.
func (f *firing) phase(i int) int64 { return 1 + int64(i)*(f.every-1)/int64(f.cfg.Schedules) }

// run notes the begin of a handler.
func (f *firing) run(ctx context.Context, task *takt.Task) error {
	now := time.Now()
	var firstOfJob int
	if err := json.Unmarshal(task.Params(), &firstOfJob); err != nil {
		return takt.Fatal(err)
	}
	f.begun(firstOfJob, task.PlannedAt(), now)
	if f.cfg.work != nil {
		f.cfg.work(ctx, task)
	}
	return nil
}

func (f *firing) begun(firstOfJob int, at, now time.Time) {
	planned := at.UnixMilli()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := firstOfJob; i < min(firstOfJob+f.cfg.PerJob, f.cfg.Schedules); i++ {
		if since := planned - f.first[i]; since >= 0 && since%f.every == 0 && planned < f.until {
			f.note(f.offset[i]+int(since/f.every), now.Sub(at))
		}
	}
}

func (f *firing) note(n int, late time.Duration) {
	if f.seen[n]++; f.seen[n] > 1 {
		f.again++
		return
	}
	f.late = append(f.late, late)
	if f.left--; f.left == 0 {
		close(f.done)
	}
}

// load puts the jobs in.
func (f *firing) load(ctx context.Context, client *takt.Client) error {
	start, end := time.UnixMilli(f.from), time.UnixMilli(f.until-1)
	const most = 500
	var set []takt.ApplyDocument
	for i := 0; i < f.cfg.Schedules; i += f.cfg.PerJob {
		j := takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: fmt.Sprintf("fire-%08d", i)},
			Spec: takt.JobSpec{Pool: poolName(0), Handler: handler, Params: json.RawMessage(strconv.Itoa(i))}}
		if f.cfg.PerJob > 1 { // its instants lie close together, and none shall wait for another
			j.Spec.Overlap = &takt.OverlapSpec{Policy: "allow"}
		}
		for n := i; n < min(i+f.cfg.PerJob, f.cfg.Schedules); n++ {
			s := takt.NamedSchedule{Name: fmt.Sprintf("s%d", n-i), Every: takt.Duration(time.Duration(f.every) * time.Millisecond),
				Phase: new(takt.Duration(time.Duration(f.phase(n)) * time.Millisecond)), StartAt: &start, EndAt: &end}
			if f.first[n] >= f.until { // it is not due in the while
				s.EndAt = nil
			}
			j.Spec.Schedules = append(j.Spec.Schedules, s)
		}
		set = append(set, takt.ApplyDocument{Job: j})
		if len(set) < most && i+f.cfg.PerJob < f.cfg.Schedules {
			continue
		}
		if _, err := client.Apply(ctx, takt.ApplyRequest{Documents: set}); err != nil {
			return err
		}
		set = set[:0]
	}
	return nil
}

func (f *firing) measure(ctx context.Context, client *takt.Client) (*Fired, error) {
	begun := time.Now()
	if err := f.load(ctx, client); err != nil {
		return nil, err
	}
	out := &Fired{Schedules: f.cfg.Schedules, Load: time.Since(begun).Round(time.Millisecond).Seconds(), Expected: len(f.seen)}
	first := time.UnixMilli(f.from)
	if left := time.Until(first) - f.cfg.near; left < f.cfg.Idle+2*time.Second {
		return nil, fmt.Errorf("loading took %v, and the first instant comes %v after its begin: give more lead", time.Since(begun).Round(time.Second), f.cfg.Lead)
	}
	idle, err := f.cores(ctx, time.Until(first)-f.cfg.near-f.cfg.Idle, f.cfg.Idle, nil)
	if err != nil {
		return nil, err
	}
	out.IdleCPU = idle
	if out.BusyCPU, err = f.cores(ctx, time.Until(first), f.cfg.For+f.cfg.patience, f.done); err != nil {
		return nil, err
	}
	out.Seconds = time.Since(first).Round(time.Millisecond).Seconds()
	f.mu.Lock()
	defer f.mu.Unlock()
	out.Lost, out.Repeated, out.Lateness = f.left, f.again, quantiles(f.late)
	counts, err := read(ctx, f.cfg.Meters)
	out.RSS = counts[Resident]
	return out, err
}

// cores is how many processors the process takes in a while, which ends early when done is closed.
func (f *firing) cores(ctx context.Context, after, during time.Duration, done <-chan struct{}) (float64, error) {
	wait := func(d time.Duration, done <-chan struct{}) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		case <-done:
		}
		return nil
	}
	if err := wait(after, nil); err != nil {
		return 0, err
	}
	begun := time.Now()
	before, err := read(ctx, f.cfg.Meters)
	if err != nil {
		return 0, err
	}
	if err := wait(during, done); err != nil {
		return 0, err
	}
	counts, err := read(ctx, f.cfg.Meters)
	return (counts[ProcessCPU] - before[ProcessCPU]) / time.Since(begun).Seconds(), err
}
