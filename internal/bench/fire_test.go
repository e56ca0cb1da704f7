package bench

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
)

// Each instant runs once and is counted; what does not run in time is lost, and said so.
func TestFire(t *testing.T) {
	t.Parallel()
	s, err := Serve(t.Context(), app.Config{DataDir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	base := FireConfig{Server: s.URL(), Schedules: 50, Rate: 20, For: 2 * time.Second, Lead: 6 * time.Second, Idle: time.Second,
		Slots: 50, Meters: []Meter{This{}}, near: time.Second}
	t.Run("cases", func(t *testing.T) {
		for name, change := range map[string]func(*FireConfig){
			"single": func(*FireConfig) {}, "several": func(c *FireConfig) { c.PerJob = 10 },
			"slow": func(c *FireConfig) { // one slot begins at most ten handlers until the benchmark gives up
				c.Slots, c.patience = 1, time.Second
				c.work = func(ctx context.Context, _ *takt.Task) {
					select {
					case <-ctx.Done():
					case <-time.After(300 * time.Millisecond):
					}
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				cfg := base
				cfg.Namespace = name
				change(&cfg)
				r, err := Fire(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				if r.Schedules != 50 || r.Expected != 40 || r.Repeated != 0 {
					t.Errorf("%+v", r)
				}
				switch {
				case name == "slow" && (r.Lost < 25 || r.Lost > 40):
					t.Errorf("one slot ran all but %d of 40 instants in three seconds", r.Lost)
				case name != "slow" && (r.Lost != 0 || r.Lateness.Max < r.Lateness.P50 || r.Lateness.P50 <= 0):
					t.Errorf("%+v", r)
				}
			})
		}
	})
}

// A second run of an instant is told from its first, and what is no instant of the load is not counted.
func TestFiringCounts(t *testing.T) {
	t.Parallel()
	cfg, err := FireConfig{Schedules: 50, Rate: 20, For: 2 * time.Second}.filled()
	if err != nil {
		t.Fatal(err)
	}
	f := newFiring(&cfg)
	one := slices.IndexFunc(f.first, func(at int64) bool { return at < f.until }) // some have no instant in so short a time
	all, at := f.left, time.UnixMilli(f.first[one])
	f.begun(one, at, at.Add(time.Second))
	f.begun(one, at, at.Add(2*time.Second))
	f.begun(one+1, at, at) // of another schedule
	f.begun(one, at.Add(-time.Duration(f.every)*time.Millisecond), at)
	if all < 39 || f.left != all-1 || f.again != 1 || len(f.late) != 1 || f.late[0] != time.Second {
		t.Errorf("left %d, again %d, late %v", f.left, f.again, f.late)
	}
}

func TestFireRefusesNonsense(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]FireConfig{
		"at least 1":              {Schedules: -1},
		"cannot come due":         {Schedules: 10, Rate: 20},
		"must lie behind loading": {Lead: 30 * time.Second},
	} {
		if _, err := Fire(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
