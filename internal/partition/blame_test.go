package partition_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// faulty is a core with one bad row: without any event it panics at it, or writes what the store refuses,
// until it is told to do without.
type faulty struct {
	*scripted
	about  engine.About
	first  bool     // at the load already
	writes bool     // does not panic
	kind   job.Kind // of the refusal
	done   bool
}

const sessionGuarded = job.SessionID("guarded")

func (c *faulty) About() engine.About { return c.about }

func (c *faulty) Step(now engine.Now, events []engine.Event) engine.Result {
	loaded, load := events[0].(engine.Loaded)
	if load && slices.Contains(loaded.LeftOut, c.about) {
		c.done = true
	}
	bad := !c.done && load == c.first
	if bad && !c.writes {
		panic("a bad row")
	}
	res := c.scripted.Step(now, events)
	if bad && c.writes {
		c.done = true
		if res.Batch.Empty() {
			c.seq++
			res.Batch.Seq = c.seq
		}
		res.Batch.Sessions = append(res.Batch.Sessions, job.Session{ID: sessionGuarded})
	}
	return res
}

// A fault that no event brings, at the load, at a timer, or as a commit that a row's state refuses, stops a
// partition for a moment: then it goes on without the row, and says so once.
func TestFaultOutsideOfEvents(t *testing.T) {
	about := engine.About{Execution: job.RequestedID(1, [10]byte{1})}
	for what, bad := range map[string]faulty{
		"load": {about: about, first: true}, "timer": {about: about}, "schedule": {about: engine.About{Job: job.UID{1}, Schedule: "s", Revision: 2}},
		"commit": {about: about, writes: true, kind: job.KindFenced}, "data": {about: about, writes: true, kind: job.KindRejected},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &memory{onCommit: func(_ context.Context, _ int, b *engine.Batch) error {
					if slices.ContainsFunc(b.Sessions, func(s job.Session) bool { return s.ID == sessionGuarded }) {
						return job.Errorf(bad.kind, "state_guard", "it is not as it should be").WithField(about.Execution.String())
					}
					return nil
				}}
				var log bytes.Buffer
				r := newRigOf(t, st, func(c *partition.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) },
					func(c *scripted) partition.Core { f := bad; f.scripted = c; return &f })
				time.Sleep(20 * time.Second)
				if res := <-r.report("a"); res.err != nil {
					t.Errorf("a report afterwards: %v", res.err)
				}
				before := r.node.Stats()[0].Engines
				time.Sleep(time.Minute)
				if after := r.node.Stats()[0].Engines; after != before {
					t.Errorf("%d more engines in a minute: the fault comes again and again", after-before)
				}
				r.end()
				if n := strings.Count(log.String(), "left out until"); n != 1 || !strings.Contains(log.String(), bad.about.String()) {
					t.Errorf("%d lines say what is left out, want 1 that names %s:\n%s", n, bad.about, log.String())
				}
			})
		})
	}
}

// A fault that names nothing is told as one that stays, and tried again; it ends when its cause does.
func TestFaultThatNamesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mended atomic.Bool
		var log bytes.Buffer
		r := newRigOf(t, &memory{}, func(c *partition.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) },
			func(c *scripted) partition.Core { return &faulty{scripted: c, first: true, done: mended.Load()} })
		time.Sleep(20 * time.Second)
		synctest.Wait()
		mended.Store(true)
		time.Sleep(3 * time.Second)
		if res := <-r.report("a"); res.err != nil {
			t.Errorf("a report afterwards: %v", res.err)
		}
		r.end()
		if n := strings.Count(log.String(), "nothing names what to leave out"); n != 1 {
			t.Errorf("%d lines say that the fault stays, want 1", n)
		}
	})
}

// setting is a core that sets something aside with every report.
type setting struct {
	*scripted
	why job.Reason
}

func (c *setting) Step(now engine.Now, events []engine.Event) engine.Result {
	res := c.scripted.Step(now, events)
	if _, is := events[0].(engine.Report); is {
		res.Batch.Facts = append(res.Batch.Facts, engine.Fact{Kind: engine.FactSetAside, Reason: c.why, Note: "what it was"})
	}
	return res
}

// What a person asked for too late is no fault of the server: the log has it at its level, under the code of the caller's answer.
func TestWhatIsSetAsideIsLoggedAsWhatItIs(t *testing.T) {
	for why, want := range map[job.Reason]string{
		job.ReasonNone:         "level=ERROR msg=\"set aside\"",
		job.WaitOverlap:        "level=INFO msg=\"a job's change waits\"",
		job.ReasonNotScheduled: "level=INFO msg=\"a request came too late, nothing changes\"",
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			r := newRigOf(t, &memory{}, func(c *partition.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) },
				func(c *scripted) partition.Core { return &setting{scripted: c, why: why} })
			time.Sleep(20 * time.Second) // until the partition is owned
			if res := <-r.report("a"); res.err != nil {
				t.Error(res.err)
			}
			r.end()
			if n := strings.Count(log.String(), "what=\"what it was\""); n != 1 || !strings.Contains(log.String(), want) {
				t.Errorf("%s: %d lines, want 1 with %s\n%s", why, n, want, log.String())
			}
		})
	}
}
