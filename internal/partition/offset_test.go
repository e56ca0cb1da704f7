package partition_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// ticking is a door to a database with a clock of its own.
type ticking struct {
	*door
	ahead      atomic.Int64  // of the bubble's clock, in ns
	there      time.Duration // of the way to the database
	back       time.Duration
	away       atomic.Bool
	questioned atomic.Int64
}

func (d *ticking) DatabaseTime(ctx context.Context) (time.Time, error) {
	d.questioned.Add(1)
	if d.away.Load() {
		return time.Time{}, job.Errorf(job.KindUnavailable, "away", "the database is away")
	}
	time.Sleep(d.there)
	at := time.Now().Add(time.Duration(d.ahead.Load()))
	time.Sleep(d.back)
	return at, ctx.Err()
}

// withClock gives a server of a city a database with a clock.
func withClock(d *ticking, wall func() time.Time) func(*partition.Config) {
	return func(cfg *partition.Config) {
		d.door = cfg.Store.(*door)
		cfg.Store, cfg.Wall = d, wall
	}
}

// steps reads the clock steps of the journal.
func (c *city) steps() (notes []string) {
	c.t.Helper()
	rows, err := c.st.Journal(context.Background(), 0, 0, 10_000)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range rows {
		var facts []engine.Fact
		if err := json.Unmarshal(r.Facts, &facts); err != nil {
			c.t.Fatal(err)
		}
		for _, f := range facts {
			if f.Kind == engine.FactClockStepped {
				notes = append(notes, f.Note)
			}
		}
	}
	return notes
}

// A node plans by the database's clock, never early, whatever its own says; and tells how far that is off.
func TestDatabaseTime(t *testing.T) {
	tests := []struct {
		name        string
		own, db     time.Duration // ahead of the bubble's
		there, back time.Duration
		alarm       bool
	}{
		{"both right", 0, 0, time.Millisecond, time.Millisecond, false},
		{"the own an hour ahead", time.Hour, 0, time.Millisecond, time.Millisecond, true},
		{"the database an hour ahead", 0, time.Hour, time.Millisecond, time.Millisecond, true},
		{"a little apart, and a lopsided way", -2 * time.Second, time.Second, 100 * time.Millisecond, 0, false},
		{"lopsided the other way", 4 * time.Second, 0, 0, 100 * time.Millisecond, false},
		{"six seconds behind", -6 * time.Second, 0, 0, 0, true},
	}
	for _, tt := range tests {
		inCity(t, 1, func(c *city) {
			d := &ticking{there: tt.there, back: tt.back}
			d.ahead.Store(int64(tt.db))
			n := c.join("a", 1, withClock(d, func() time.Time { return time.Now().Add(tt.own) }))
			c.until(10*time.Second, wanted(1, "a"))
			for range 40 {
				time.Sleep(time.Second)
				late := time.Now().Add(tt.db).Sub(n.node.Now())
				if late < 0 || late > tt.there+tt.back {
					t.Errorf("%s: the node's time is %v behind the database's, want 0 to the round trip", tt.name, late)
				}
			}
			st := n.node.Clock()
			if off := (st.Ahead - (tt.own - tt.db)).Abs(); !st.Measured || st.Alarm != tt.alarm || off > (tt.there+tt.back)/2 || st.RoundTrip != tt.there+tt.back {
				t.Errorf("%s: %+v", tt.name, st)
			}
			if q := d.questioned.Load(); q > 5*6 {
				t.Errorf("%s: %d questions in forty seconds", tt.name, q)
			}
			if got := c.steps(); len(got) != 0 {
				t.Errorf("%s: recorded %q", tt.name, got)
			}
		})
	}
}

// A database that is slow to tell the time is asked less often, for the watcher waits meanwhile.
func TestDatabaseTimeIsSlow(t *testing.T) {
	inCity(t, 1, func(c *city) {
		d := &ticking{there: 300 * time.Millisecond, back: 300 * time.Millisecond}
		n := c.join("a", 1, withClock(d, time.Now))
		c.until(10*time.Second, wanted(1, "a"))
		time.Sleep(time.Minute)
		if q := d.questioned.Load(); q < 6 || q > 8 {
			t.Errorf("%d questions in a minute, want one each ten seconds", q)
		}
		if st := n.node.Clock(); !st.Measured || st.RoundTrip != 600*time.Millisecond {
			t.Errorf("%+v", st)
		}
	})
}

// Nobody owns before the time is known; afterwards a database that does not tell it changes nothing.
func TestDatabaseTimeAway(t *testing.T) {
	inCity(t, 1, func(c *city) {
		d := &ticking{}
		d.away.Store(true)
		n := c.join("a", 1, withClock(d, func() time.Time { return time.Now().Add(time.Hour) }))
		time.Sleep(10 * time.Second)
		if c.owners()[0] != "" {
			t.Error("a server owns a partition, and does not know what time it is")
		}
		d.away.Store(false)
		c.until(2*time.Second, wanted(1, "a"))
		d.away.Store(true)
		stop := c.track()
		time.Sleep(time.Minute)
		if _, gap := stop(); gap > 0 {
			t.Errorf("%v without an owner", gap)
		}
		if late := time.Since(n.node.Now()).Abs(); late > time.Millisecond {
			t.Errorf("the node's time is off by %v", late)
		}
	})
}

// A step of either clock is a fact of the journal. It moves no lease, and time never runs back for an engine.
func TestClockStepsAreRecorded(t *testing.T) {
	inCity(t, 1, func(c *city) {
		d := &ticking{there: time.Millisecond}
		var own atomic.Int64
		n := c.join("a", 1, withClock(d, func() time.Time { return time.Now().Add(time.Duration(own.Load())) }))
		c.until(10*time.Second, wanted(1, "a"))
		time.Sleep(30 * time.Second)
		begun := n.node.Stats()[0].Engines
		for i, step := range []struct {
			clock *atomic.Int64
			by    time.Duration
			want  string
		}{
			{&own, time.Hour, "server 1h0m0s"}, {&own, -2 * time.Hour, "server -2h0m0s"}, {&own, 500 * time.Millisecond, ""},
			{&d.ahead, time.Hour, "database 1h0m0s"}, {&d.ahead, -time.Hour, "database -1h0m0s"}, {&d.ahead, -800 * time.Millisecond, ""},
		} {
			before := len(c.steps())
			step.clock.Add(int64(step.by))
			time.Sleep(15 * time.Second)
			synctest.Wait()
			got := strings.Join(c.steps()[before:], ", ")
			clock, _, _ := strings.Cut(step.want, " ")
			if step.want == "" && got != "" || !strings.HasPrefix(got, clock) {
				t.Errorf("step %d: recorded %q, want %q", i, got, step.want)
				continue
			}
			if step.want != "" {
				_, by, _ := strings.Cut(got, " ")
				is, err := time.ParseDuration(by)
				if err != nil || (is-step.by).Abs() > 10*time.Millisecond {
					t.Errorf("step %d: recorded %q, want %q", i, got, step.want)
				}
			}
		}
		st := n.node.Stats()[0]
		if st.Engines != begun || st.ClockSteps != 4 {
			t.Errorf("%d engines, %d before; %d steps counted, want 4", st.Engines, begun, st.ClockSteps)
		}
	})
}

// A worker whose clock is wrong by more than five seconds is told of once, each time that it becomes so. One that seems slow may have sent
// a call that was long on its way: the next one decides.
func TestWorkerClockAlarm(t *testing.T) {
	inCity(t, 1, func(c *city) {
		n := c.join("a", 1, nil)
		c.until(10*time.Second, wanted(1, "a"))
		id := job.SessionIDOf(0, "default", "p", "w", "1")
		number := int64(0)
		say := func(ahead time.Duration, want int64) {
			t.Helper()
			number++
			var ev engine.Event = engine.Heartbeat{Session: id, Call: number, Clock: &ahead}
			if number == 1 {
				ev = engine.SessionOpen{Session: job.Session{ID: id, Namespace: "default", Pool: "p", Worker: "w", Incarnation: "1", Slots: 1}, Call: number, Clock: &ahead}
			}
			if _, err := n.node.Call(context.Background(), 0, 0, ev); err != nil {
				t.Fatal(err)
			}
			if got := n.node.Stats()[0].WorkerClocks; got != want {
				t.Errorf("ahead by %v: %d alarms, want %d", ahead, got, want)
			}
		}
		say(6*time.Second, 1)
		say(7*time.Second, 1)
		say(4*time.Second, 1)
		say(-30*time.Second, 1) // it may have lain somewhere
		say(0, 1)
		say(-6*time.Second, 1)
		say(-6*time.Second, 2)
		say(-7*time.Second, 2)
		say(0, 2)
	})
}
