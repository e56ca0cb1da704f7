package app

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taktsched/takt/internal/api"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/peer"
	"github.com/taktsched/takt/internal/store"
)

const (
	databaseName  = "takt.db"
	headerBytes   = 64 << 10
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 2 * time.Second // for answers on their way at a graceful stop
	closeTimeout  = time.Second     // for connections to the database
)

// App is an assembled node.
type App struct {
	cfg         Config
	lock        *dirLock // nil without a data directory
	store       store.Store
	owned       bool // the store was opened here
	node        *partition.Node
	peers       *peer.Peers // nil: this server is alone
	peerKey     string      // what other servers show here
	advertised  string
	incarnation string
	handler     http.Handler
	listener    net.Listener
	tls         *tls.Config // nil: plain HTTP
	stopping    atomic.Bool
	copying     sync.Mutex // held while a copy for a download is there
	closed      sync.Once
}

// New assembles a node: it takes the data directory, opens the database, and listens, but starts nothing.
// Errors are *job.Error where a person can act: KindInvalid for settings, KindConflict with code
// "data_dir_locked" when another server has the directory. Call Run, or Close when Run is never called.
func New(ctx context.Context, cfg Config) (*App, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	a := &App{cfg: cfg.filled(), listener: cfg.Listener}
	if err := a.assemble(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// assemble builds one part after the other; what was built is closed by Close.
func (a *App) assemble(ctx context.Context) error {
	cfg := &a.cfg
	token, workerToken, err := cfg.readTokens()
	if err != nil {
		return err
	}
	if a.tls, err = cfg.tlsConfig(); err != nil {
		return err
	}
	if cfg.DataDir != "" {
		if a.lock, err = lockDir(cfg.DataDir, cfg.Wall(), cfg.Listen); err != nil {
			return err
		}
	}
	if cfg.DataDir != "" {
		clearCopies(cfg.DataDir)
	}
	if a.listener == nil {
		if a.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen); err != nil {
			return job.Errorf(job.KindConflict, "listen_failed", "the server cannot listen on %s", cfg.Listen).WithField("listen").
				WithHint("give --listen an address of this machine with a port that no other program has; port 0 takes a free one").WithCause(err)
		}
	}
	a.nameServer()
	if a.lock != nil {
		if err := a.lock.name(a.Addr()); err != nil {
			return err
		}
	}
	if err := a.openStore(ctx); err != nil {
		return err
	}
	if a.node, err = a.newNode(ctx); err != nil {
		return err
	}
	a.noteZones(ctx)
	people := control.New(control.Config{Control: a.store, Reader: a.store, Logs: a.store, Sweeper: a.store, Keep: cfg.Keep,
		LogLimit: cfg.LogLimit, Owners: a.everywhere(), Now: a.node.Now, Random: cfg.Random, Level: a.node.LevelOfAll})
	a.handler = api.New(api.Config{
		Control: people, Owners: a.node, Node: a.node, Store: a.store, Version: cfg.Version, Token: token, WorkerToken: workerToken,
		LoopbackOnly: token == "" && cfg.Listener == nil, Hosts: cfg.Hosts, Logger: cfg.Logger, Now: a.node.Now,
		Stopping: a.stopping.Load,
		Backup:   a.backsUp(),
		Limits:   api.Limits{CallTimeout: cfg.Lease.CallTimeout},
		Peers:    a.peers,
		PeerKey:  a.peerKey,

		Cluster: a.node, ServerName: cfg.Server, Incarnation: a.incarnation,
	})
	return nil
}

func (a *App) newNode(ctx context.Context) (*partition.Node, error) {
	cfg := &a.cfg
	incarnation := cfg.Incarnation
	if incarnation == "" {
		var b [12]byte
		if _, err := rand.Read(b[:]); err != nil {
			return nil, fmt.Errorf("draw incarnation: %w", err)
		}
		incarnation = cfg.Server + "-" + hex.EncodeToString(b[:])
	}
	pc := partition.Config{
		Store: a.store, Server: cfg.Server, Incarnation: incarnation, Sole: cfg.sole(), NoLoss: cfg.DatabaseLoss == "none", Lease: cfg.Lease,
		Wall: cfg.Wall, Seed: uint64(cfg.Wall().UnixNano()), Logger: cfg.Logger,
	}
	if err := a.join(ctx, &pc); err != nil {
		return nil, err
	}
	if cfg.Tune != nil {
		cfg.Tune(&pc)
	}
	a.peerKey, a.advertised, a.incarnation = pc.Self.Key, pc.Self.Address, pc.Incarnation
	return partition.NewNode(ctx, pc)
}

// Addr is the address that is listened on.
func (a *App) Addr() string { return a.listener.Addr().String() }

// Handler answers everything under the address.
func (a *App) Handler() http.Handler { return a.handler }

// Node is the partition node, for drills and statistics.
func (a *App) Node() *partition.Node { return a.node }

// Run serves until ctx ends, then stops gracefully within five seconds: not ready, hanging polls end,
// partitions are released, answers on their way are sent, everything is closed. It returns an error when
// serving failed, and partition.ErrCrashed when a drill let the node die. Call it once.
func (a *App) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var unused fresh
	srv := &http.Server{
		Handler: a.handler, ConnState: unused.note, MaxHeaderBytes: headerBytes, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(a.cfg.Logger.Handler(), slog.LevelWarn),
	}
	var wg sync.WaitGroup
	var nodeErr, serveErr error
	nodeDone := make(chan struct{})
	wg.Go(func() {
		defer cancel()
		defer close(nodeDone)
		nodeErr = a.node.Run(ctx)
	})
	wg.Go(func() { defer cancel(); serveErr = srv.Serve(a.entrance()) })
	wg.Go(func() { a.sweep(ctx) })
	a.announce()
	<-ctx.Done()
	a.stopping.Store(true)
	if a.peers != nil {
		a.peers.Stop()
	}
	<-nodeDone // hanging polls have ended, partitions are free
	if nodeErr == nil {
		unused.end()
		dctx, stop := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		if err := srv.Shutdown(dctx); err != nil {
			a.cfg.Logger.Warn("some calls did not end in time; their connections are cut", "err", err)
		}
		stop()
	}
	_ = srv.Close() // what Shutdown left
	wg.Wait()
	if errors.Is(serveErr, http.ErrServerClosed) {
		serveErr = nil
	}
	return errors.Join(nodeErr, serveErr, a.Close())
}

// announce says in the log where the server is.
func (a *App) announce() {
	where, err := a.cfg.where()
	if err != nil || a.cfg.Store != nil {
		where = "given"
	}
	args := []any{"address", a.Addr(), "data", where, "tls", a.tls != nil}
	if a.peers != nil {
		args = append(args, "server", a.cfg.Server, "advertised", a.advertised)
	}
	a.cfg.Logger.Info("serving", args...)
	if host, _, err := net.SplitHostPort(a.Addr()); err == nil && a.tls == nil && a.cfg.Listener == nil && !loopback(host) {
		a.cfg.Logger.Warn("tokens and data travel readable for the network; --tls-cert and --tls-key encrypt them")
	}
}

// entrance is the listener with its limit, and TLS when that was asked for.
func (a *App) entrance() net.Listener {
	var l net.Listener = &crowd{Listener: a.listener, most: a.cfg.Connections, logger: a.cfg.Logger, now: a.cfg.Wall}
	if a.tls != nil {
		l = tls.NewListener(l, a.tls)
	}
	return l
}

// Close frees what New took. Run calls it; calling it again does nothing.
func (a *App) Close() (err error) {
	a.closed.Do(func() {
		var errs []error
		if a.listener != nil {
			if e := a.listener.Close(); e != nil && !errors.Is(e, net.ErrClosed) {
				errs = append(errs, e)
			}
		}
		if a.peers != nil {
			a.peers.Close()
		}
		if a.owned {
			errs = append(errs, a.closeStore())
		}
		if a.lock != nil {
			errs = append(errs, a.lock.release())
		}
		err = errors.Join(errs...)
	})
	return err
}

// closeStore closes the database. One that hangs does not let go of its connections for long; they end with the process.
func (a *App) closeStore() error {
	if a.cfg.Database == "" {
		return a.store.Close()
	}
	done := make(chan error, 1)
	go func() { done <- a.store.Close() }()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		a.cfg.Logger.Warn("the database does not let go of this server's connections; they end with the process")
		return nil
	}
}
