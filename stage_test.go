package takt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stage is a scripted server and the network to it, for use inside a synctest bubble. It keeps the
// judge's side of leases by the book: deadline = instant at which it took the named call in + TTL.
type stage struct {
	t     *testing.T
	began time.Time

	serving sync.WaitGroup

	mu      sync.Mutex
	epoch   int64
	work    []Assignment // offered by every poll until they are named
	cancels []Cancel     // sent with every beat and poll
	calls   []spokenCall
	faults  map[string][]fault      // by call name, used up in order
	taken   map[int64]time.Duration // when each call was taken in
	judged  map[int64]time.Duration // end of each lease, by token, as the judge sees it
	open    map[int64]bool          // tokens of the open leases
	slots   int
	kick    chan struct{} // closed when something changed that a hanging poll wants to know
	answer  map[string]func(body []byte) (any, *Problem)
}

// spokenCall is what the stage was asked.
type spokenCall struct {
	at   time.Duration
	name string
	body string
}

// fault spoils one call.
type fault struct {
	deaf    bool          // the request never arrives
	mute    bool          // the answer never arrives
	late    time.Duration // the request arrives late
	lag     time.Duration // the answer leaves late
	problem *Problem
	epoch   int64 // of the error answer
}

var stageTerms = OpenResponse{Session: "0.0123456789abcdef01234567", TTLMs: 15_000, BeatMs: 3_000, MarginMs: 1_500,
	CallTimeoutMs: 2_000, PollMs: 20_000, Limits: Limits{Params: 1 << 18, Checkpoint: 1 << 16, Result: 1 << 18, Items: 100}}

// play runs a test in a bubble with a worker against a stage. script tells the story; when it returns
// the worker is stopped and must end without an error.
func play(t *testing.T, cfg WorkerConfig, handlers map[string]Handler, script func(*stage, *Worker), prepare ...func(*Worker)) *stage {
	t.Helper()
	var s *stage
	synctest.Test(t, func(t *testing.T) {
		s = newStage(t)
		client, closeNet := s.listen()
		defer closeNet()
		cfg.Server, cfg.HTTPClient, cfg.Pool, cfg.Name = "http://stage", client, firstOf(cfg.Pool, "p"), "w"
		cfg.Incarnation = "life"
		cfg.Jitter = func(upTo time.Duration) time.Duration { return (upTo / 2).Truncate(time.Millisecond) }
		cfg.Logger = slog.New(slog.DiscardHandler)
		w, err := NewWorker(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for name, h := range handlers {
			w.Handle(name, h)
		}
		for _, p := range prepare {
			p(w)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		script(s, w)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
	return s
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{t: t, began: time.Now(), epoch: 7, faults: map[string][]fault{}, taken: map[int64]time.Duration{}, judged: map[int64]time.Duration{}, open: map[int64]bool{},
		kick: make(chan struct{}), answer: map[string]func([]byte) (any, *Problem){}}
}

// now is the time since the stage began.
func (s *stage) now() time.Duration { return time.Since(s.began) }

// until sleeps to an instant of the stage and lets everything settle.
func (s *stage) until(at time.Duration) {
	time.Sleep(at - s.now())
	synctest.Wait()
}

// listen serves over pipes, so that the bubble's clock can move.
func (s *stage) listen() (*http.Client, func()) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	tr := &http.Transport{DialContext: l.dial}
	return &http.Client{Transport: tr}, func() {
		tr.CloseIdleConnections()
		_ = srv.Close()
		<-done
		s.serving.Wait() // late answers nobody waits for
	}
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, errors.New("the stage is closed")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "stage", Net: "unix"} }

// ServeHTTP plays one call.
func (s *stage) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.serving.Add(1)
	defer s.serving.Done()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	var f fault
	s.mu.Lock()
	if list := s.faults[name]; len(list) > 0 {
		f, s.faults[name] = list[0], list[1:]
	}
	s.mu.Unlock()
	if f.deaf {
		panic(http.ErrAbortHandler)
	}
	time.Sleep(f.late)
	if f.problem != nil {
		s.note(name, body)
		s.refuse(rw, f)
		return
	}
	out, problem := s.respond(r.Context(), name, body)
	time.Sleep(f.lag)
	switch {
	case f.mute || r.Context().Err() != nil:
		panic(http.ErrAbortHandler)
	case problem != nil:
		s.refuse(rw, fault{problem: problem})
	default:
		if err := json.NewEncoder(rw).Encode(out); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

func (s *stage) refuse(rw http.ResponseWriter, f fault) {
	if f.epoch != 0 {
		rw.Header().Set(EpochHeader, fmt.Sprint(f.epoch))
	}
	if f.problem.Status == http.StatusServiceUnavailable {
		rw.Header().Set("Retry-After", "1")
	}
	rw.WriteHeader(f.problem.Status)
	_ = json.NewEncoder(rw).Encode(f.problem)
}

func (s *stage) note(name string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, spokenCall{s.now(), name, string(body)})
	s.taken[parse[struct{ Call int64 }](s.t, body).Call] = s.now()
}

func (s *stage) respond(ctx context.Context, name string, body []byte) (any, *Problem) {
	s.note(name, body)
	s.mu.Lock()
	own := s.answer[name]
	s.mu.Unlock()
	if own != nil {
		return own(body)
	}
	switch name {
	case "open":
		out := stageTerms
		req := parse[OpenRequest](s.t, body)
		s.mu.Lock()
		s.slots = req.Slots
		s.mu.Unlock()
		out.Epoch, out.Call = s.epoch, req.Call
		return out, nil
	case "poll":
		return s.poll(ctx, parse[PollRequest](s.t, body)), nil
	case "heartbeat":
		return s.beat(parse[HeartbeatRequest](s.t, body)), nil
	case "report":
		out := ReportResponse{Epoch: s.epoch}
		for _, it := range parse[ReportRequest](s.t, body).Items {
			out.Items = append(out.Items, "accepted")
			if it.Kind == "done" {
				s.ended(it.Token)
			}
		}
		return out, nil
	default:
		return CloseResponse{Epoch: s.epoch}, nil
	}
}

func (s *stage) poll(ctx context.Context, req PollRequest) PollResponse {
	over := time.After(time.Duration(req.WaitMs) * time.Millisecond)
	s.mu.Lock()
	unknown := max(0, s.slots-len(s.open)-req.Free) // slots that the worker calls busy and no lease explains
	s.mu.Unlock()
	for {
		s.mu.Lock()
		out := PollResponse{Epoch: s.epoch}
		var left []Assignment
		for _, as := range s.work {
			switch {
			case contains(req.Held, as.Token): // has arrived
			case s.open[as.Token] || s.slots-len(s.open)-unknown > 0:
				s.open[as.Token] = true
				if as.LeaseCall == 0 {
					as.LeaseCall = req.Call
				}
				s.judged[as.Token] = s.taken[as.LeaseCall] + 15*time.Second
				out.Assignments = append(out.Assignments, as)
				left = append(left, as)
			default:
				left = append(left, as)
			}
		}
		s.work = left
		kick := s.kick
		s.mu.Unlock()
		if len(out.Assignments) > 0 {
			return out
		}
		select {
		case <-kick:
		case <-over:
			return out
		case <-ctx.Done():
			return out
		}
	}
}

func (s *stage) beat(req HeartbeatRequest) HeartbeatResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := HeartbeatResponse{Epoch: s.epoch, Call: req.Call, Cancels: s.cancels}
	for _, h := range req.Held {
		out.Renewed = append(out.Renewed, h.Token)
		s.judged[h.Token] = s.taken[req.Call] + 15*time.Second
	}
	return out
}

// offer gives shard work to do; token is its token and its shard number is the token too.
func (s *stage) offer(tokens ...int64) {
	s.mu.Lock()
	for _, token := range tokens {
		s.work = append(s.work, Assignment{Namespace: "default", Job: "j", Revision: 1, Execution: "e", Handler: "h",
			PlannedAt: s.began, Shard: int(token), ShardTotal: 8, Attempt: 1, Token: token, Key: fmt.Sprintf("default/j!e#%d", token)})
	}
	s.mu.Unlock()
	s.kicked()
	synctest.Wait()
}

// ended frees the slot of a lease.
func (s *stage) ended(token int64) {
	s.mu.Lock()
	delete(s.open, token)
	s.mu.Unlock()
	s.kicked()
}

// kicked lets hanging polls look again.
func (s *stage) kicked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.kick)
	s.kick = make(chan struct{})
}

// spoil makes the next calls of that name go wrong, in order.
func (s *stage) spoil(name string, faults ...fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[name] = append(s.faults[name], faults...)
}

// on sets an answer of the test's own.
func (s *stage) on(name string, f func(body []byte) (any, *Problem)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer[name] = f
}

// spoken lists the calls of a name that arrived.
func (s *stage) spoken(name string) []spokenCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []spokenCall
	for _, c := range s.calls {
		if c.name == name {
			list = append(list, c)
		}
	}
	return list
}

// items lists the report items that arrived, repeats too.
func (s *stage) items() []ReportItem {
	var list []ReportItem
	for _, c := range s.spoken("report") {
		list = append(list, parse[ReportRequest](s.t, []byte(c.body)).Items...)
	}
	return list
}

// ends lists the done items that arrived.
func (s *stage) ends() []ReportItem {
	var list []ReportItem
	for _, it := range s.items() {
		if it.Kind == "done" {
			list = append(list, it)
		}
	}
	return list
}

func parse[T any](t *testing.T, body []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(body, &v); err != nil {
		t.Errorf("a call can not be read: %v", err)
	}
	return v
}

func contains(list []int64, n int64) bool {
	for _, m := range list {
		if m == n {
			return true
		}
	}
	return false
}
