package control_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// shelf is a store of logs of one execution.
type shelf struct {
	store.Reader
	store.Logs
	execution job.Execution
	shards    []job.Shard
	heads     []store.LogHead
	more      bool

	mu      sync.Mutex
	appends [][]store.LogChunk
	hold    chan struct{} // closed: appends go on
}

func (s *shelf) Execution(context.Context, string, job.ExecutionID) (job.Execution, error) {
	return s.execution, nil
}

func (s *shelf) Shards(context.Context, string, job.ExecutionID, store.Page) ([]job.Shard, string, error) {
	return s.shards, "", nil
}

func (s *shelf) LogHeads(context.Context, job.ExecutionID, int) ([]store.LogHead, error) {
	return s.heads, nil
}

func (s *shelf) ReadLogs(context.Context, store.LogFilter) (store.LogPage, error) {
	return store.LogPage{More: s.more}, nil
}

// AppendLogs refuses everything that comes with a chunk of shard 13.
func (s *shelf) AppendLogs(_ context.Context, a store.AppendLogs) ([]store.LogAppended, error) {
	<-s.hold
	s.mu.Lock()
	defer s.mu.Unlock()
	s.appends = append(s.appends, a.Chunks)
	var out []store.LogAppended
	for _, c := range a.Chunks {
		if c.Shard == 13 {
			return nil, job.Errorf(job.KindRejected, "bad", "bad")
		}
		out = append(out, store.LogAppended{Fate: store.LogTaken, Next: int64(c.Shard)})
	}
	return out, nil
}

func newLogControl(s *shelf, now time.Time) *control.Control {
	type people struct{ store.Control }
	return control.New(control.Config{Control: people{}, Reader: s, Logs: s, Owners: &owner{}, Now: func() time.Time { return now }})
}

// The end is told only when nothing more can come.
func TestLogEnds(t *testing.T) {
	at := job.InstantOf(wall)
	minute := store.LogKept
	attempt := func(n int, state job.AttemptState, ago time.Duration) job.Attempt {
		a := job.Attempt{Number: n, Token: job.Token(n), State: state, StartedAt: at.Add(-time.Hour)}
		if state != job.AttemptRunning {
			a.EndedAt = at.Add(-ago)
		}
		return a
	}
	shard := func(state job.ShardState, attempts ...job.Attempt) []job.Shard {
		return []job.Shard{{Index: 0, State: state, Attempt: len(attempts), Attempts: attempts}}
	}
	open := []store.LogHead{{Token: 1}}
	closed := []store.LogHead{{Token: 1, Closed: true}}
	for name, c := range map[string]struct {
		state   job.ExecutionState
		shards  []job.Shard
		heads   []store.LogHead
		attempt int
		more    bool
		want    bool
	}{
		"waits for its owner":                   {state: job.ExecutionScheduled},
		"queued":                                {state: job.ExecutionQueued, shards: shard(job.ShardQueued)},
		"running":                               {state: job.ExecutionRunning, shards: shard(job.ShardRunning, attempt(1, job.AttemptRunning, 0)), heads: closed},
		"ended, wrote nothing":                  {state: job.ExecutionSucceeded, shards: shard(job.ShardSucceeded, attempt(1, job.AttemptSucceeded, 0)), want: true},
		"ended, log complete":                   {state: job.ExecutionSucceeded, shards: shard(job.ShardSucceeded, attempt(1, job.AttemptSucceeded, 0)), heads: closed, want: true},
		"ended, more to read":                   {state: job.ExecutionSucceeded, shards: shard(job.ShardSucceeded, attempt(1, job.AttemptSucceeded, 0)), heads: closed, more: true},
		"ended, log to come":                    {state: job.ExecutionSucceeded, shards: shard(job.ShardSucceeded, attempt(1, job.AttemptSucceeded, 0)), heads: open},
		"lost, its worker may still ship":       {state: job.ExecutionFailed, shards: shard(job.ShardFailed, attempt(1, job.AttemptLost, 30*time.Second))},
		"lost, and its log ended":               {state: job.ExecutionFailed, shards: shard(job.ShardFailed, attempt(1, job.AttemptLost, 30*time.Second)), heads: closed, want: true},
		"lost long ago":                         {state: job.ExecutionFailed, shards: shard(job.ShardFailed, attempt(1, job.AttemptLost, 2*minute)), want: true},
		"timed out, the handler may still talk": {state: job.ExecutionTimedOut, shards: shard(job.ShardTimedOut, attempt(1, job.AttemptTimedOut, time.Second)), heads: open},
		"cancelled before it began":             {state: job.ExecutionCancelled, shards: shard(job.ShardCancelled), want: true},
		"first attempt of two":                  {attempt: 1, state: job.ExecutionRunning, shards: shard(job.ShardRunning, attempt(1, job.AttemptFailed, 0), attempt(2, job.AttemptRunning, 0)), want: true},
		"second attempt of two":                 {attempt: 2, state: job.ExecutionRunning, shards: shard(job.ShardRunning, attempt(1, job.AttemptFailed, 0), attempt(2, job.AttemptRunning, 0))},
		"third attempt may come":                {attempt: 3, state: job.ExecutionRunning, shards: shard(job.ShardRetryWait, attempt(1, job.AttemptFailed, 0), attempt(2, job.AttemptFailed, 0))},
		"lost one before, not long ago":         {state: job.ExecutionSucceeded, shards: shard(job.ShardSucceeded, attempt(1, job.AttemptLost, time.Second), attempt(2, job.AttemptSucceeded, 0))},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{execution: job.Execution{State: c.state, EndedAt: at}, shards: c.shards, heads: c.heads, more: c.more}
			v, err := newLogControl(s, wall).Logs(t.Context(), "ns", store.LogFilter{Shard: -1, Attempt: c.attempt})
			if err != nil || v.End != c.want {
				t.Errorf("end %v, %v", v.End, err)
			}
		})
	}
	s := &shelf{execution: job.Execution{State: job.ExecutionFailed, EndedAt: at.Add(-2 * minute)}}
	if v, err := newLogControl(s, wall).Logs(t.Context(), "ns", store.LogFilter{Shard: -1}); err != nil || !v.End {
		t.Errorf("ended long ago: end %v, %v", v.End, err)
	}
}

// Calls that come while one is written are one transaction; each gets its own answers, one that the
// store refuses takes nobody with it, and one whose caller left is not written.
func TestLogCallsAreGrouped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{hold: make(chan struct{})}
		c := newLogControl(s, wall)
		ctx, leave := context.WithCancel(t.Context())
		results := make(chan string, 20)
		ask := func(ctx context.Context, shards ...int) {
			var chunks []store.LogChunk
			for _, n := range shards {
				chunks = append(chunks, store.LogChunk{Shard: n})
			}
			out, err := c.AppendLogs(ctx, chunks)
			results <- fmt.Sprintf("%v %v %s", shards, out, job.KindOf(err))
		}
		go ask(t.Context(), 1)
		synctest.Wait()
		go ask(t.Context(), 2, 3)
		synctest.Wait()
		go ask(ctx, 4)
		synctest.Wait()
		go ask(t.Context(), 13)
		synctest.Wait()
		go ask(t.Context(), 5)
		synctest.Wait()
		leave()
		synctest.Wait()
		close(s.hold)
		got := map[string]bool{}
		for range 5 {
			got[<-results] = true
		}
		for _, want := range []string{"[1] [{taken 1}] ", "[2 3] [{taken 2} {taken 3}] ", "[4] [] unavailable", "[13] [] rejected", "[5] [{taken 5}] "} {
			if !got[want] {
				t.Errorf("no answer %q in %v", want, got)
			}
		}
		sizes := ""
		for _, a := range s.appends {
			sizes += fmt.Sprint(len(a), " ")
		}
		if sizes != "1 4 2 2 1 1 " { // one; all that waited; then the halves, and those of the one that was refused
			t.Errorf("transactions of %s chunks", sizes)
		}
	})
}
