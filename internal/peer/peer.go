package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

// Headers of calls between servers.
const (
	HeaderKey     = "Takt-Peer-Key"     // of the receiver's row
	HeaderRole    = "Takt-Peer-Role"    // for whom the sender vouches: RoleWorker or RoleServer
	HeaderEpoch   = "Takt-Peer-Epoch"   // of the owner, as the sender knows it; marks the one hop
	HeaderRequest = "Takt-Peer-Request" // id of the request that it is about, for the logs
	HeaderServed  = "Takt-Peer-Served"  // in the answer: the receiver is who was meant
)

// The roles that a server may vouch for.
const (
	RoleWorker = "worker" // the caller was checked as a worker; its call goes on
	RoleServer = "server" // the server asks for itself
)

// Paths that only servers may ask.
const (
	Path        = "/api/v1/peer/"
	PathInspect = Path + "inspect"
	PathStats   = Path + "stats"
	PathPing    = Path + "ping"
)

const (
	connectTimeout = time.Second
	lookTimeout    = 2 * time.Second
	lookGap        = 100 * time.Millisecond
	maxAnswer      = 64 << 20 // bytes of an answer that are read
	idleTimeout    = 90 * time.Second
	// Connections to one server. Polls have their own, so that those who hang never keep a beat waiting; so has the question
	// whether it is there: a server that is slow with calls must not be taken for one that cannot be reached.
	callConns, callIdle = 256, 32
	pollConns, pollIdle = 4096, 128
	pingConns, pingIdle = 2, 1
)

// Directory tells who owns what. *partition.Node is one.
type Directory interface {
	// Owner is who answers for a partition; false when none is known.
	Owner(partition int) (partition.Holder, bool)
	// Coming tells of a partition without an Owner whether one is about to answer, here or anywhere.
	Coming(partition int) (here, anywhere bool)
	// Look makes the directory look at once: an owner was asked that is none any more.
	Look()
}

// Config is what a Peers is built with.
type Config struct {
	Directory Directory
	CA        *x509.CertPool                                                       // vouches for https addresses; nil: the system's
	Dial      func(ctx context.Context, network, address string) (net.Conn, error) // nil: over the network. It has 1 s
	Look      time.Duration                                                        // how often hanging calls look whether their owner is still the owner; 0: 0.5 s

	CallTimeout time.Duration // after which workers give a call up that does not hang; 0: 2 s

	Logger *slog.Logger // nil: discard
}

// Peers are the other servers, as far as this one calls them. Close it when no call is under way.
type Peers struct {
	directory           Directory
	calls, polls, pings *http.Transport
	lanes               lanes
	patience            time.Duration // with a partition that changes hands
	logger              *slog.Logger
	looked              atomic.Int64 // when the directory was last asked to look, Unix ms
}

// New makes a Peers. It starts nothing.
func New(c Config) *Peers {
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		return c.Dial(ctx, network, address)
	}
	if c.Look == 0 {
		c.Look = 500 * time.Millisecond
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = 2 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	transport := func(conns, idle int) *http.Transport {
		return &http.Transport{ // no proxy: the key is for the server alone
			DialContext: dial, TLSHandshakeTimeout: connectTimeout, IdleConnTimeout: idleTimeout, MaxConnsPerHost: conns,
			MaxIdleConnsPerHost: idle, DisableCompression: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.CA},
		}
	}
	return &Peers{directory: c.Directory, calls: transport(callConns, callIdle), polls: transport(pollConns, pollIdle), pings: transport(pingConns, pingIdle),
		lanes: lanes{directory: c.Directory, look: c.Look, open: map[int]*lane{}}, patience: c.CallTimeout / 2, logger: c.Logger}
}

// Close frees the connections that are not in use.
func (p *Peers) Close() {
	p.calls.CloseIdleConnections()
	p.polls.CloseIdleConnections()
	p.pings.CloseIdleConnections()
}

// Stop ends the calls that hang at other servers, because this one stops: whoever waits asks another one.
func (p *Peers) Stop() { p.lanes.stop() }

// Elsewhere tells whether a partition is owned by another server, and by which.
func (p *Peers) Elsewhere(number int) (Target, bool) {
	h, ok := p.directory.Owner(number)
	return Target{Server: h.Server, Epoch: h.Epoch, Partition: number}, ok && !h.Local
}

// Target is an owner that is another server.
type Target struct {
	Server    store.Server
	Epoch     job.Epoch
	Partition int
}

// Call is a call to pass on, undecoded.
type Call struct {
	Path    string
	Body    []byte
	Header  http.Header   // of the answer's form only: Content-Type, Accept, Traceparent
	Request string        // id of the caller's request
	Wait    time.Duration // how long the answer may take
	Hangs   bool          // ends when the target is no longer the owner
}

// Answer is what the owner said, undecoded.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Forward passes a worker's call to the owner. Errors have KindNoOwner: whatever became of the call, the caller may
// send it again.
func (p *Peers) Forward(ctx context.Context, to Target, c Call) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	transport := p.calls
	if c.Hangs {
		transport = p.polls
		var leave func()
		ctx, leave = p.lanes.enter(ctx, to)
		defer leave()
	}
	a, err := p.send(ctx, transport, RoleWorker, to, c)
	if err != nil || a.Status == http.StatusServiceUnavailable {
		p.lookAgain()
	}
	if err != nil {
		p.logger.Debug("a call did not reach the owner; its caller sends it again", "server", to.Server.Name, "address", to.Server.Address,
			"partition", to.Partition, "request", c.Request, "err", err)
		return Answer{}, away(to, err)
	}
	return a, nil
}

// lookAgain makes the directory look, for many failing calls together.
func (p *Peers) lookAgain() {
	now, last := time.Now().UnixMilli(), p.looked.Load()
	if (now-last >= lookGap.Milliseconds() || now < last) && p.looked.CompareAndSwap(last, now) {
		p.directory.Look()
	}
}

// Reach is nil when the server answers at its address, and is the one that wrote its row.
func (p *Peers) Reach(ctx context.Context, s store.Server) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	a, err := p.send(ctx, p.pings, RoleServer, Target{Server: s}, Call{Path: PathPing})
	if err == nil && a.Status/100 != 2 {
		err = fmt.Errorf("answered %d", a.Status)
	}
	return err
}

// send makes one request. net/http repeats it only on a connection on which nothing could be written any more: a POST
// without an Idempotency-Key is not repeatable for it, and none is ever passed on.
func (p *Peers) send(ctx context.Context, transport *http.Transport, role string, to Target, c Call) (Answer, error) {
	if to.Server.Address == "" {
		return Answer{}, errors.New("the server has no address for others")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Server.Address+c.Path, bytes.NewReader(c.Body))
	if err != nil {
		return Answer{}, err
	}
	for _, name := range []string{"Content-Type", "Accept", "Traceparent"} {
		if v := c.Header.Get(name); v != "" {
			r.Header.Set(name, v)
		}
	}
	r.Header.Set("User-Agent", "takt-server")
	r.Header.Set(HeaderKey, to.Server.Key)
	r.Header.Set(HeaderRole, role)
	r.Header.Set(HeaderEpoch, strconv.FormatInt(int64(to.Epoch), 10))
	if c.Request != "" {
		r.Header.Set(HeaderRequest, c.Request)
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return Answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return Answer{}, err
	case len(body) > maxAnswer:
		return Answer{}, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	case resp.Header.Get(HeaderServed) == "": // another life of the server, or something else at its address
		return Answer{}, errors.New("who answers there is not the server that wrote the row")
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// away is the refusal of a call whose owner could not answer.
func away(to Target, cause error) *job.Error {
	text := "the server that owns partition %d did not answer"
	switch {
	case errors.Is(cause, errMoved):
		text = "partition %d is getting another owner"
	case errors.Is(cause, errStopping):
		text = "this server stops, another one knows who owns partition %d"
	}
	return job.Errorf(job.KindNoOwner, "no_owner", text, to.Partition).WithHint("ask again in a second").WithCause(cause)
}
