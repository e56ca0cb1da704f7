package bench

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

func TestRun(t *testing.T) {
	s, err := Serve(t.Context(), app.Config{DataDir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		name string
		cfg  Config
		want int64
	}{
		{"in bulk", Config{Executions: 250, Bulk: 100, Backlog: 200, Keys: true}, 250},
		{"one at a time, two workers", Config{Executions: 20, Bulk: 1, Workers: 2, Slots: 3}, 20},
		{"three pools", Config{Executions: 250, Bulk: 50, Backlog: 100, Pools: 3, Workers: 2}, 250},
		{"shards", Config{Executions: 7, Shards: 5}, 7},
		{"paced", Config{Executions: 30, Rate: 500}, 30},
		{"for a time", Config{For: 50 * time.Millisecond, Rate: 200}, 10},
	} {
		c.cfg.Server, c.cfg.Namespace, c.cfg.Meters = s.URL(), "n"+strings.ReplaceAll(strings.ReplaceAll(c.name, ",", ""), " ", "-"), []Meter{This{}}
		r, err := Run(t.Context(), c.cfg)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if r.Executions != c.want || r.PerSecond <= 0 || r.Start.P50 <= 0 || r.End.P50 < r.Start.P50 || r.End.Max < r.End.P99 {
			t.Errorf("%s: %+v", c.name, r)
		}
		if commits, ok := r.Each(Commits); !ok || commits <= 0 || commits > 10 {
			t.Errorf("%s: %v commits for one execution", c.name, commits)
		}
	}
	_, err = Run(t.Context(), Config{Server: s.URL(), Namespace: "npaced", Executions: 1})
	if !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a namespace that is in use: %v", err)
	}
	if r, err := Run(t.Context(), Config{Server: s.URL(), Namespace: "npaced", Executions: 1, Force: true}); err != nil || r.Executions != 1 {
		t.Errorf("by force: %+v, %v", r, err)
	}
}

func TestRunOnPostgres(t *testing.T) {
	dsn := pgtest.Start(t).Database(t)
	s, err := Serve(t.Context(), app.Config{Database: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	m, err := Database(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close(context.Background()) }()
	r, err := Run(t.Context(), Config{Server: s.URL(), Executions: 500, Bulk: 100, Backlog: 300, Meters: []Meter{m, This{}}})
	if err != nil || r.Executions != 500 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, name := range []string{Commits, WALBytes} {
		if v, ok := r.Each(name); !ok || v <= 0 {
			t.Errorf("%s: %v", name, v)
		}
	}
	if runtime.GOOS == "linux" {
		if v, ok := r.Rises[DatabaseCPU]; !ok || v < 0 {
			t.Errorf("CPU of the database: %v", r.Rises)
		}
	}
}

func TestRefusesNonsense(t *testing.T) {
	for field, cfg := range map[string]Config{
		"executions": {Executions: -1}, "for": {For: -1}, "workers": {Workers: -1}, "slots": {Slots: 10_001}, "shards": {Shards: -1},
		"rate": {Rate: -1}, "bulk": {Bulk: 1001}, "clients": {Clients: -1}, "backlog": {Backlog: 10}, "payload": {Payload: 1 << 20},
	} {
		_, err := Run(t.Context(), cfg)
		e, ok := errors.AsType[*job.Error](err)
		if !ok || e.Kind != job.KindInvalid || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// The check sees each way in which a run can go wrong.
func TestCheckSeesFaults(t *testing.T) {
	whole := func(t *tally) {
		for n := range int64(3) {
			t.ask(0)
			id := string(rune('a' + n))
			for range 2 {
				t.begun(n, id)
			}
			t.acknowledged([]string{id, id})
		}
	}
	for name, c := range map[string]struct {
		fault func(*tally)
		want  string
	}{
		"none":                 {func(*tally) {}, ""},
		"a shard never ran":    {func(t *tally) { t.at(1).runs.Add(-1) }, "1 did not run whole"},
		"a shard ran twice":    {func(t *tally) { t.begun(1, "b") }, "1 ran more than once"},
		"an end is missing":    {func(t *tally) { t.at(1).acks.Add(-1) }, "1 were not acknowledged whole"},
		"an end came twice":    {func(t *tally) { t.at(1).acks.Add(1) }, "1 more than once"},
		"a run of a stranger":  {func(t *tally) { t.begun(7, "x") }, "1 runs were of others"},
		"an end of a stranger": {func(t *tally) { t.acknowledged([]string{"x"}) }, "1 runs were of others"},
	} {
		tl := newTally(2)
		whole(tl)
		c.fault(tl)
		switch err := tl.ours(); {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDrainGivesUp(t *testing.T) {
	tl := newTally(1)
	tl.ask(0)
	if err := drain(t.Context(), tl, time.Millisecond); err == nil || !strings.Contains(err.Error(), "1 of 1 executions have not ended") {
		t.Error(err)
	}
}

// The SDK's own words are read rightly.
func TestEndsIn(t *testing.T) {
	text, err := json.Marshal(takt.ReportRequest{Session: "s", Items: []takt.ReportItem{
		{Execution: "a", Kind: "started"}, {Execution: "b", Shard: 3, Kind: "done", Outcome: "success", Result: []byte(`{"x":1}`)},
		{Execution: "c", Kind: "checkpoint", Checkpoint: []byte(`[1]`)}, {Execution: "a", Kind: "done", Outcome: "success"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := endsIn(string(text)); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("%q", got)
	}
}

func TestQuantiles(t *testing.T) {
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(100-i)*time.Millisecond)
	}
	if got, want := quantiles(all), (Quantiles{P50: 50, P90: 90, P99: 99, Max: 100}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := quantiles(nil); got != (Quantiles{}) {
		t.Errorf("of nothing %+v", got)
	}
}
