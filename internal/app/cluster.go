package app

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/peer"
	"github.com/taktsched/takt/internal/store"
)

const (
	maxCA   = 1 << 20 // bytes of a file with certificates
	maxName = 128     // bytes
)

// checkCluster refuses settings of several servers that contradict themselves or the rest.
func (c Config) checkCluster() error {
	switch {
	case c.DatabaseLoss != "" && c.DatabaseLoss != "tail" && c.DatabaseLoss != "none":
		return job.Errorf(job.KindInvalid, "bad_db_loss", "%q says nothing about a failover of the database", c.DatabaseLoss).WithField("dbLoss").
			WithHint("give none when replication is synchronous, else tail")
	case c.sole() && c.DatabaseLoss == "none":
		return job.Errorf(job.KindInvalid, "bad_db_loss", "a data directory has no standby").WithField("dbLoss").WithHint("leave --db-loss out")
	}
	if c.sole() && (c.Advertise != "" || c.PeerCA != "") {
		return job.Errorf(job.KindInvalid, "one_server_only", "a data directory has one server, which no other calls").WithField("advertise").
			WithHint("leave --advertise and --peer-ca out, or give --db in place of --data")
	}
	if len(c.Server) > maxName || strings.ContainsFunc(c.Server, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return job.Errorf(job.KindInvalid, "bad_server_name", "%q is no name of a server", c.Server).WithField("serverName").
			WithHint("give at most %d bytes without spaces", maxName)
	}
	if c.Advertise == "" {
		return nil
	}
	u, err := url.Parse(c.Advertise)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return job.Errorf(job.KindInvalid, "bad_advertise", "%q is no address at which other servers could call this one", c.Advertise).WithField("advertise").
			WithHint("write http://host:port or https://host:port")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return job.Errorf(job.KindInvalid, "bad_advertise", "%s is no port: it must be 1 to 65535", port).WithField("advertise").
				WithHint("give the port at which the other servers reach this one")
		}
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
		return job.Errorf(job.KindInvalid, "bad_advertise", "%s is no address of one machine", u.Host).WithField("advertise").
			WithHint("give the address of this machine as the other servers see it")
	}
	return nil
}

// peerPool reads the certificates that vouch for other servers; nil: the system's do.
func (c Config) peerPool() (*x509.CertPool, error) {
	if c.PeerCA == "" {
		return nil, nil
	}
	bad := func(format string, args ...any) *job.Error {
		return job.Errorf(job.KindInvalid, "bad_peer_ca", format, args...).WithField("peerCa").
			WithHint("give --peer-ca a PEM file that this user may read, with the certificates that vouch for the other servers; without it the system's do")
	}
	f, err := os.Open(c.PeerCA)
	if err != nil {
		return nil, bad("the file with the servers' CA cannot be read").WithCause(err)
	}
	defer func() { _ = f.Close() }() // only read
	pem, err := io.ReadAll(io.LimitReader(f, maxCA))
	if err != nil {
		return nil, bad("the file with the servers' CA cannot be read").WithCause(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, bad("%s holds no certificate in PEM form", c.PeerCA)
	}
	return pool, nil
}

// address is the URL at which the other servers reach this one: what was advertised, or what is listened on. Who
// listens on every address of the machine takes the one by which the machine reaches out.
func (a *App) address(ctx context.Context) (string, error) {
	if a.cfg.Advertise != "" {
		return strings.TrimRight(a.cfg.Advertise, "/"), nil
	}
	scheme := "http://"
	if a.tls != nil {
		scheme = "https://"
	}
	at, err := netip.ParseAddrPort(a.Addr())
	if err != nil || !at.Addr().IsUnspecified() { // one address, or a listener of a test
		return scheme + a.Addr(), nil //nolint:nilerr // see above
	}
	host, err := outgoing(ctx)
	if err != nil {
		return "", job.Errorf(job.KindInvalid, "advertise_required", "this server listens on every address, and it is not clear by which one other servers reach it").
			WithField("advertise").WithHint("give --advertise http://host:port").WithCause(err)
	}
	return scheme + net.JoinHostPort(host, strconv.Itoa(int(at.Port()))), nil
}

// outgoing is the address from which this machine would call another network. Nothing is sent.
func outgoing(ctx context.Context) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", "192.0.2.1:9") // an address for documentation: never there
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // nothing was sent
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}

// nameServer gives a server among several a name of its own, also beside others on one machine.
func (a *App) nameServer() {
	if a.cfg.Server != "" {
		return
	}
	a.cfg.Server, _ = os.Hostname() // only a name: an empty one places the server as well
	if _, port, err := net.SplitHostPort(a.Addr()); err == nil {
		a.cfg.Server += ":" + port
	}
}

// self is what other servers read of this one. Its key is new in each life.
func (a *App) self(ctx context.Context) (store.Server, error) {
	address, err := a.address(ctx)
	if err != nil {
		return store.Server{}, err
	}
	var key [24]byte
	if _, err := rand.Read(key[:]); err != nil {
		return store.Server{}, fmt.Errorf("draw the server's key: %w", err)
	}
	return store.Server{Address: address, Key: hex.EncodeToString(key[:]), Build: a.cfg.Version}, nil
}

// join prepares the node's part in a set of servers.
func (a *App) join(ctx context.Context, pc *partition.Config) error {
	if a.cfg.sole() {
		return nil
	}
	self, err := a.self(ctx)
	if err != nil {
		return err
	}
	if err := a.reachable(ctx, self); err != nil {
		return err
	}
	pool, err := a.cfg.peerPool()
	if err != nil {
		return err
	}
	pc.Self = self
	pc.Reach = func(ctx context.Context, s store.Server) error { return a.peers.Reach(ctx, s) }
	a.peers = peer.New(peer.Config{Directory: later{a}, CA: pool, Dial: a.cfg.PeerDial, Look: a.cfg.Lease.Look, CallTimeout: a.cfg.Lease.CallTimeout, Logger: a.cfg.Logger})
	return nil
}

// later is the node as a directory, which is made after what asks it.
type later struct{ a *App }

// Owner, Coming and Look implement peer.Directory.
func (l later) Owner(p int) (partition.Holder, bool) { return l.a.node.Owner(p) }
func (l later) Coming(p int) (here, anywhere bool)   { return l.a.node.Coming(p) }
func (l later) Look()                                { l.a.node.Look() }

// everywhere are the partitions of all servers, for looks into their memories.
func (a *App) everywhere() partition.Owners {
	if a.peers == nil {
		return a.node
	}
	return peer.Everywhere(a.node, a.peers)
}
