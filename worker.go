package takt

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/taktsched/takt/internal/boottime"
)

// WorkerConfig says what a worker is and how it reaches the servers. Server (or Servers) and Pool must
// be set; the zero value of every other field is usable.
type WorkerConfig struct {
	Server    string            // address, such as http://127.0.0.1:7070, or several separated by commas; a bare host:port means http
	Servers   []string          // more addresses; the next one is tried when one does not answer
	Namespace string            // default "default"
	Pool      string            // group of workers that offer the same handlers
	Name      string            // shown to people; need not be unique. Default: host name and process id
	Slots     int               // handlers that run at once; default 1
	Token     string            // sent as a bearer token; empty: none
	CAFile    string            // PEM file of the certificates that vouch for https servers; empty: the system's
	Labels    map[string]string // shown to people
	Build     string            // version of the program; shown to people

	// Grace is how long handlers may go on after Run was told to stop, before their contexts end with
	// ErrShuttingDown. Default 10 s; negative: not at all.
	Grace time.Duration
	// HTTPClient makes all calls. Its Timeout must be zero or longer than a poll hangs (20 s). Default:
	// two clients of the worker's own, so that beats have a connection for themselves.
	HTTPClient *http.Client
	// Logger takes the worker's log and that of its tasks. Default slog.Default().
	Logger *slog.Logger
	// LogSpool and LogSpoolTotal bound the memory that log lines take until the server has them, in bytes:
	// of one attempt and of the worker. What does not fit is dropped, and counted where it is missing.
	// Default 4 MiB and 32 MiB.
	LogSpool, LogSpoolTotal int
	// Jitter draws from [0, upTo) for pauses between tries. Default: math/rand/v2.
	Jitter func(upTo time.Duration) time.Duration
	// Incarnation names this life of the worker and must never come again. Default: random. Tests that
	// replay a run set it.
	Incarnation string
}

// Worker takes shards of a pool from the servers and runs handlers. Make it with [NewWorker], name the
// handlers with [Worker.Handle], then call [Worker.Run] once.
type Worker struct {
	cfg       WorkerConfig
	x         *exchange
	transport *http.Transport // of the worker's own clients, which get a copy each
	calls     *http.Client
	beats     *http.Client // a connection of its own, so that a large report never delays a beat
	log       *slog.Logger
	handlers  map[string]Handler // written before Run only
	misuse    error              // of Handle; Run returns it
	now       func() time.Duration
	switches  switches
	spool     *spool // log lines on their way; with a lock of its own

	mu       sync.Mutex // guards all below and every session and attempt; never held while waiting
	ran      bool
	stopping bool       // take no more work
	epoch    int64      // highest one met
	life     int        // sessions begun
	session  *session   // newest that was opened
	sessions []*session // that may still have something to report

	reporting context.Context // of every report; outlives a session
	reporters sync.WaitGroup
	running   map[*attempt]struct{}
	changed   chan struct{} // closed and made anew when running or a queue of reports shrinks
}

var handlerName = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,128}$`)

// NewWorker makes a worker. It sends nothing yet; the error is about the configuration.
func NewWorker(cfg WorkerConfig) (*Worker, error) {
	x, err := newExchange(cfg.Server, cfg.Servers, cfg.Token, "takt-worker")
	switch {
	case err != nil:
		return nil, err
	case cfg.Pool == "":
		return nil, errors.New("takt: no pool: set Pool")
	case cfg.Slots < 0:
		return nil, fmt.Errorf("takt: %d slots: at least one is needed", cfg.Slots)
	case cfg.HTTPClient != nil && cfg.CAFile != "":
		return nil, errTwoTransports
	}
	transport, err := newTransport(cfg.CAFile)
	if err != nil {
		return nil, err
	}
	cfg.Slots = max(cfg.Slots, 1)
	if cfg.LogSpool <= 0 {
		cfg.LogSpool = 4 << 20
	}
	if cfg.LogSpoolTotal <= 0 {
		cfg.LogSpoolTotal = 32 << 20
	}
	cfg.Namespace = firstOf(cfg.Namespace, "default")
	cfg.Incarnation = firstOf(cfg.Incarnation, rand.Text())
	if cfg.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "worker" // the name only informs
		}
		cfg.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	if cfg.Grace == 0 {
		cfg.Grace = 10 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Jitter == nil {
		cfg.Jitter = randomJitter
	}
	w := &Worker{cfg: cfg, x: x, transport: transport, calls: cfg.HTTPClient, beats: cfg.HTTPClient,
		log:      cfg.Logger.With("worker", cfg.Name, "pool", cfg.Pool),
		handlers: map[string]Handler{}, running: map[*attempt]struct{}{}, spool: newSpool(cfg.LogSpool, cfg.LogSpoolTotal)}
	return w, nil
}

// Handle names the function that runs shards of jobs whose handler is name (at most 128 of
// A-Z a-z 0-9 _ . : / -). Call it before Run, later ones are not offered; a wrong or repeated name is
// an error that Run returns.
func (w *Worker) Handle(name string, h Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ran:
		w.log.Error("a handler was named after Run began; it is not offered", "handler", name)
	case !handlerName.MatchString(name):
		w.misuse = fmt.Errorf("takt: %.128q is no handler name", name)
	case h == nil:
		w.misuse = fmt.Errorf("takt: handler %q is nil", name)
	case w.handlers[name] != nil:
		w.misuse = fmt.Errorf("takt: handler %q is there already", name)
	default:
		w.handlers[name] = h
	}
}

// Run takes work until ctx ends, and then stops gracefully: it takes no more, lets handlers go on for
// Grace, ends their contexts with [ErrShuttingDown], waits until each has returned and its report is
// answered, and says goodbye to the server. What was not finished goes back at once. Then Run returns
// nil; the error tells which reports could not be delivered in a lease's time.
//
// A server that is away or replaced is waited for. Run returns early only when the first server that
// answers refuses the worker: a wrong token, an invalid pool. A second Run is an error.
//
// Run waits for handlers that ignore their context: nothing else can end them but the process's end.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.begin(); err != nil {
		return err
	}
	defer w.ownClients()()
	defer w.reporters.Wait()
	reporting, silence := context.WithCancel(context.WithoutCancel(ctx))
	defer silence()
	w.reporting = reporting
	w.reporters.Go(func() { w.shipLogs(reporting) })
	for {
		s, err := w.open(ctx)
		if err != nil {
			left := w.leave(nil)
			if ctx.Err() != nil {
				return left
			}
			return errors.Join(err, left)
		}
		if again, err := s.serve(ctx); !again {
			return err
		}
	}
}

func (w *Worker) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ran:
		return errors.New("takt: Run was called before: a worker runs once")
	case w.misuse != nil:
		return w.misuse
	case len(w.handlers) == 0:
		return errors.New("takt: the worker has no handler: call Handle first")
	}
	w.ran = true
	w.changed = make(chan struct{})
	if w.now == nil {
		w.now = boottime.Start().Now
	}
	return nil
}

// ownClients makes the worker's own clients, if it needs them, and returns what closes them.
func (w *Worker) ownClients() (closeThem func()) {
	if w.calls != nil {
		return func() {}
	}
	calls, beats := w.transport.Clone(), w.transport.Clone()
	calls.MaxIdleConnsPerHost = 4
	w.calls, w.beats = &http.Client{Transport: calls}, &http.Client{Transport: beats}
	return func() {
		calls.CloseIdleConnections()
		beats.CloseIdleConnections()
	}
}

// open opens a session, trying again until ctx ends or a server refuses for good.
func (w *Worker) open(ctx context.Context) (*session, error) {
	b := backoff{max: 2 * time.Second, jitter: w.cfg.Jitter}
	s := newSession(ctx, w)
	for {
		err := s.open(ctx)
		if err == nil {
			return s, nil
		}
		first := w.life == 1
		hopeless := errors.Is(err, ErrInvalid) || first && (errors.Is(err, ErrUnauthorized) ||
			errors.Is(err, ErrForbidden) || errors.Is(err, ErrNotFound))
		level, wait := b.level(), b.after(err)
		if ctx.Err() == nil && !hopeless {
			w.log.Log(ctx, level, "no session yet; trying again", "error", err, "after", wait)
		}
		if hopeless || !pause(ctx, wait) {
			s.end(err)
			return nil, err
		}
	}
}

// leave stops gracefully: handlers first, then their reports, then the session, if there is one.
func (w *Worker) leave(s *session) error {
	w.drain()
	limit, left := time.Duration(0), 0
	if w.session != nil {
		limit = w.session.terms.ttl // then nothing would count any more
	}
	delivered := w.await(limit, func() bool {
		left = 0
		for _, s := range w.sessions {
			left += len(s.queue)
		}
		return left == 0
	})
	w.drainLogs()
	if s != nil {
		s.close()
	}
	if !delivered {
		return fmt.Errorf("takt: stopped with %d reports unanswered for %v; their shards run again elsewhere", left, limit)
	}
	return nil
}

// drain waits until no handler runs: for Grace, then it ends their contexts and waits for the rest.
func (w *Worker) drain() {
	w.mu.Lock()
	w.stopping = true
	w.mu.Unlock()
	idle := func() bool { return len(w.running) == 0 }
	if w.cfg.Grace > 0 && w.await(w.cfg.Grace, idle) {
		return
	}
	w.mu.Lock()
	left := slices.SortedFunc(maps.Keys(w.running), func(a, b *attempt) int { return cmp.Compare(a.as.Token, b.as.Token) })
	for _, a := range left { // in order, so that a run can be replayed
		a.leave = true
		a.cancel(ErrShuttingDown)
	}
	w.mu.Unlock()
	if len(left) > 0 {
		w.log.Info("stopping: told the handlers to end; waiting for them to return", "handlers", len(left))
	}
	w.await(-1, idle)
}

// await waits until ok, which is called under the lock, says true; false when limit passed first. A
// negative limit is none.
func (w *Worker) await(limit time.Duration, ok func() bool) bool {
	var over <-chan time.Time
	if limit >= 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		over = t.C
	}
	for {
		w.mu.Lock()
		done, changed := ok(), w.changed
		w.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-over:
			return false
		}
	}
}

// notify wakes await. Under the lock.
func (w *Worker) notify() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// names lists the handlers in order.
func (w *Worker) names() []string {
	names := make([]string, 0, len(w.handlers))
	for name := range w.handlers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
