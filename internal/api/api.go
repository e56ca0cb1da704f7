package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/peer"
)

// Pinger tells whether the store answers.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Readier tells whether every partition is answered for; the error says which is not. *partition.Node is
// one.
type Readier interface{ Ready() error }

// Limits are the sizes that the server takes. A zero field means the default.
type Limits struct {
	Body        int64         // bytes of a body of people's calls; 1 MiB
	ReportBody  int64         // bytes of a report; 64 MiB. A report at the edge of it should be split
	Params      int           // bytes, as told to workers; 256 KiB
	Checkpoint  int           // bytes of a checkpoint; 64 KiB
	Result      int           // bytes of a result; 256 KiB
	Items       int           // items of one report; 1,000
	PollMax     time.Duration // how long a poll may hang; 20 s
	CallTimeout time.Duration // what workers are told to wait for an answer; 2 s
}

// Config is what the handler is built with.
type Config struct {
	Control *control.Control
	Owners  partition.Owners
	Node    Readier
	Store   Pinger
	Version string // of the server
	Token   string // bearer token of all calls but health; "": none is asked for
	// WorkerToken is the bearer token of workers' calls, when it is another one: then Token is people's alone.
	// "": Token is for both. Without a Token it has no effect.
	WorkerToken string
	// LoopbackOnly refuses Host headers that are not loopback names or in Hosts. Set it when there is
	// no token.
	LoopbackOnly bool
	Hosts        []string // further Host values, with or without port
	Logger       *slog.Logger
	Now          func() time.Time // the node's wall clock; nil: time.Now
	Stopping     func() bool      // whether the server is going down (for /readyz); nil: never
	// Backup makes a copy of the database and tells its size; closing removes it. nil: there is no file to copy.
	Backup func(ctx context.Context) (io.ReadCloser, int64, error)
	Limits Limits

	// Peers are the other servers, and PeerKey is what they show here. nil: this server is alone.
	Peers   *peer.Peers
	PeerKey string
	// Cluster knows all servers. ServerName and Incarnation are this one's. nil: there is no other.
	Cluster     Cluster
	ServerName  string
	Incarnation string
}

type server struct {
	control      *control.Control
	owners       partition.Owners
	node         Readier
	pulse        *pulse
	version      string
	tokens       tokens
	loopbackOnly bool
	hosts        []string
	logger       *slog.Logger
	now          func() time.Time
	stopping     func() bool
	backup       func(ctx context.Context) (io.ReadCloser, int64, error)
	limits       Limits
	peers        *peer.Peers
	peerKey      []byte
	cluster      Cluster
	name         string
	incarnation  string
	started      time.Time

	mux      *http.ServeMux
	api      huma.API
	document []byte
}

const (
	pathHealth  = "/healthz"
	pathReady   = "/readyz"
	pathOpenAPI = "/api/v1/openapi.json"
	pathPeople  = "/api/v1/namespaces/{ns}"
	pathWorker  = "/api/v1/worker/"
)

// New makes the handler of everything under one port. It may be served by any http.Server; the handler
// bounds bodies, hanging polls, reads and the writing of answers by itself. A missing part is a wiring
// mistake and panics.
func New(c Config) http.Handler {
	s := build(c)
	s.people()
	s.jobs()
	s.calendars()
	s.executions()
	s.scheduled()
	s.see()
	s.logs()
	s.retention()
	s.backups()
	s.live()
	s.servers()
	s.worker()
	s.given()
	s.between()
	s.health()
	s.metrics()
	s.describe()
	return http.HandlerFunc(s.serve)
}

func build(c Config) *server {
	if c.Control == nil || c.Owners == nil || c.Node == nil || c.Store == nil || c.Logger == nil {
		panic("api: Control, Owners, Node, Store and Logger are required")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Cluster == nil {
		c.Cluster = alone{c.Owners}
	}
	if c.Stopping == nil {
		c.Stopping = func() bool { return false }
	}
	s := &server{control: c.Control, owners: c.Owners, node: c.Node, pulse: newPulse(c.Store), version: c.Version,
		tokens: newTokens(c.Token, c.WorkerToken), loopbackOnly: c.LoopbackOnly, hosts: c.Hosts, logger: c.Logger, now: c.Now,
		stopping: c.Stopping, backup: c.Backup, limits: c.Limits.withDefaults(),
		peers: c.Peers, peerKey: []byte(c.PeerKey), cluster: c.Cluster, name: c.ServerName,
		incarnation: c.Incarnation, started: c.Now(), mux: http.NewServeMux()}
	config := huma.DefaultConfig("Takt", c.Version)
	config.CreateHooks = nil                     // no $schema in bodies
	config.OpenAPIPath, config.DocsPath = "", "" // the document is served by us; huma's page loads from a CDN
	config.SchemasPath = ""
	config.RejectUnknownQueryParameters = true
	s.api = humago.New(s.mux, config)
	return s
}

func (l Limits) withDefaults() Limits {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	if l.Body == 0 {
		l.Body = 1 << 20
	}
	if l.ReportBody == 0 {
		l.ReportBody = 64 << 20
	}
	set(&l.Params, control.MaxParams)
	set(&l.Checkpoint, 64<<10)
	set(&l.Result, 256<<10)
	set(&l.Items, 1000)
	if l.PollMax == 0 {
		l.PollMax = 20 * time.Second
	}
	if l.CallTimeout == 0 {
		l.CallTimeout = 2 * time.Second
	}
	return l
}

// register adds an operation whose use case returns plain errors. A body is checked against the type
// of I's field Body; worker operations are lenient and skip huma's own checks of it.
func register[I, O any](s *server, op huma.Operation, in intake, use func(context.Context, *I) (*O, error)) {
	if f, ok := reflect.TypeFor[I]().FieldByName("Body"); ok {
		in.shape, in.required = shapeOf(f.Type), f.Type.Kind() != reflect.Pointer
	}
	op.SkipValidateBody = in.lenient
	op.MaxBodyBytes, op.BodyReadTimeout = -1, -1 // both are intake's business
	op.Middlewares = huma.Middlewares{s.middleware(in)}
	huma.Register(s.api, op, func(ctx context.Context, i *I) (*O, error) {
		out, err := guarded(ctx, s, in, i, use)
		if err != nil {
			return nil, s.fail(ctx, err)
		}
		return out, nil
	})
}

// guarded bounds a call of people's, and asks for the database first when that has let somebody down.
func guarded[I, O any](ctx context.Context, s *server, in intake, i *I, use func(context.Context, *I) (*O, error)) (*O, error) {
	if in.alone || in.lenient {
		return use(ctx, i)
	}
	if err := s.pulse.usable(ctx); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, cmp.Or(in.patience, peopleTimeout))
	defer cancel()
	out, err := use(bounded, i)
	if err == nil || ctx.Err() != nil {
		return out, err
	}
	s.pulse.doubted(err)
	if bounded.Err() != nil && job.KindOf(err) != job.KindUnknown { // it may have happened: that is another answer
		err = storeAway(err)
	}
	return nil, err
}

type requestKey struct{}

// requestID is the id of the request that ctx belongs to; "" outside of one.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// serve is the way of every request: guard, target, then the operation.
func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	var random [9]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	id := hex.EncodeToString(random[:])
	hop, isHop := s.hopOf(r)
	if hop.trusted && hop.request != "" {
		id = hop.request
	}
	r = r.WithContext(context.WithValue(r.Context(), requestKey{}, id))
	if isHop {
		r = r.WithContext(context.WithValue(r.Context(), hopKey{}, hop))
	}
	h := w.Header()
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	begun, seen := s.now(), &watched{ResponseWriter: w, conn: bound(w, r)}
	defer func() {
		if v := recover(); v != nil {
			s.panicked(seen, r, v)
		}
		s.logger.LogAttrs(r.Context(), slog.LevelDebug, "request answered", slog.String("request", id), slog.String("method", r.Method),
			slog.String("route", r.Pattern), slog.Int("status", seen.status), slog.Duration("took", s.now().Sub(begun)))
	}()
	if hop.trusted {
		h.Set(peer.HeaderServed, "1")
	} else if e := s.guard(r); e != nil {
		s.refuse(seen, r, e)
		return
	}
	if e := target(r); e != nil {
		s.refuse(seen, r, e)
		return
	}
	if h, pattern := s.mux.Handler(r); pattern == "" {
		s.refuse(seen, r, unrouted(seen, r, h))
		return
	}
	s.mux.ServeHTTP(seen, r)
}

// panicked ends a request whose handler panicked. http.ErrAbortHandler goes on to net/http.
func (s *server) panicked(w *watched, r *http.Request, v any) {
	if v == http.ErrAbortHandler { //nolint:errorlint // a sentinel passed by panic, never wrapped
		panic(v)
	}
	s.logger.LogAttrs(r.Context(), slog.LevelError, "request panicked; the caller was answered 500, the server goes on",
		slog.String("request", requestID(r.Context())), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
	if w.status == 0 {
		s.refuse(w, r, panicError())
	}
}
