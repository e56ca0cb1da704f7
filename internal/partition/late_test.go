package partition_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// planner is a scripted core that says how far it has planned.
type planner struct {
	*scripted
	open *atomic.Int64
}

func (p *planner) Undecided() job.Instant { return job.Instant(p.open.Load()) }

// An owner whose steps go on and whose planning stands is seen: by its number at once, in the log after a while, and when it
// goes on again.
func TestPlanningThatStandsIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var open atomic.Int64
		r := newRigOf(t, &memory{}, func(c *partition.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) },
			func(c *scripted) partition.Core { return &planner{c, &open} })
		behind := func() time.Duration { return r.node.Stats()[0].PlanBehind.Truncate(10 * time.Second) }
		expect := func(when string, want time.Duration, lines, goesOn int) {
			t.Helper()
			synctest.Wait()
			text := log.String()
			if got := behind(); got != want || strings.Count(text, "planning stands") != lines || strings.Count(text, "planning goes on") != goesOn {
				t.Errorf("%s: %s behind, want %s; the log, with %d lines wanted:\n%s", when, got, want, lines, text)
			}
		}
		synctest.Wait()
		open.Store(int64(job.InstantOf(time.Now().Add(30 * time.Second))))
		time.Sleep(25 * time.Second)
		expect("planned ahead", 0, 0, 0)
		time.Sleep(36 * time.Second)
		expect("half a minute behind", 30*time.Second, 0, 0)
		time.Sleep(60 * time.Second)
		expect("behind the bound, not for long", 90*time.Second, 0, 0)
		time.Sleep(32 * time.Second)
		expect("behind the bound for a minute", 120*time.Second, 1, 0)
		time.Sleep(60 * time.Second)
		expect("a minute later", 180*time.Second, 3, 0)
		open.Store(int64(job.InstantOf(time.Now().Add(time.Hour))))
		time.Sleep(10 * time.Second)
		expect("it goes on", 0, 3, 1)
		r.end()
	})
}

// A core that has read nothing yet is as far as it was when it began.
func TestPlanningThatNeverBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int64
		r := newRigOf(t, &memory{}, nil, func(c *scripted) partition.Core { return &planner{c, &open} })
		time.Sleep(100 * time.Second)
		synctest.Wait()
		if got := r.node.Stats()[0].PlanBehind; got < 95*time.Second || got > 101*time.Second {
			t.Errorf("%s behind after 100 s", got)
		}
		r.end()
	})
}
