package app

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

// DefaultListen is the address of a server that was told none.
const DefaultListen = "127.0.0.1:7070"

// Config is what a node is assembled from. Only DataDir (or Store) is required.
type Config struct {
	DataDir  string // holds LOCK and takt.db; made with mode 0700 when missing
	Database string // address of a PostgreSQL database, in place of DataDir: a URL or key=value pairs. May hold a secret
	// DatabaseLoss is what a failover of the database may forget: "tail" (also ""): the newest commits; "none": nothing,
	// because replication is synchronous. After a failover with "none" nothing is waited for (R7).
	DatabaseLoss string

	Listen    string // host:port; "": DefaultListen. Beyond loopback a token file is required
	TokenFile string // its content is the bearer token of every call; "": none is asked for
	// WorkerTokenFile holds a token of its own for workers' calls; then TokenFile is people's alone, and required.
	WorkerTokenFile string
	// TLSCert and TLSKey are PEM files; both or neither. TLS 1.2 is the least.
	TLSCert, TLSKey string
	Connections     int      // open at once, at most; what comes beyond is closed. 0: 10,000
	Hosts           []string // further values of the Host header that are answered without a token
	Version         string   // shown to clients

	LogLimit int64        // bytes of one attempt's log; 0: 10 MiB
	Keep     control.Keep // how long what is over is kept; zero fields mean the defaults

	Lease  partition.Lease  // lengths of leases; zero fields are filled, contradictions refused
	Wall   func() time.Time // the node's one wall clock; nil: time.Now
	Logger *slog.Logger     // nil: discard

	Server    string // name among several servers; "": the host's, with a Database the port, too
	Advertise string // URL at which the other servers reach this one; "": by what is listened on
	PeerCA    string // PEM file of the certificates that vouch for the other servers' https addresses; "": the system's
	NoMigrate bool   // refuse a database whose form is not the newest, instead of changing it

	// What follows is for virtual clusters and drills.
	Listener    net.Listener                                                         // served in place of Listen; closed by Run
	Store       store.Store                                                          // in place of the file in DataDir, which may then be empty; not closed
	Partitions  int                                                                  // of a file that is made now; 0: 1
	NoSync      bool                                                                 // do not wait for the disk
	Incarnation string                                                               // this life of the server; "": drawn
	Random      io.Reader                                                            // for ids of executions and jobs; nil: crypto/rand
	PeerDial    func(ctx context.Context, network, address string) (net.Conn, error) // to other servers; nil: over the network
	Tune        func(*partition.Config)                                              // last word on the node's settings; nil: none
}

// Validate refuses settings that contradict themselves. Errors are *job.Error of KindInvalid.
func (c Config) Validate() error {
	c = c.filled()
	switch {
	case c.DataDir == "" && c.Store == nil && c.Database == "":
		return job.Errorf(job.KindInvalid, "data_dir_required", "a server needs a data directory or a database").WithField("data").
			WithHint("give --data DIR for a server alone, or --db postgres://… for one of several")
	case c.DataDir != "" && c.Database != "":
		return job.Errorf(job.KindInvalid, "two_databases", "a data directory and a database exclude each other").WithField("db").
			WithHint("give --data DIR or --db URL (or TAKT_DATA or TAKT_DB), not both")
	}
	if c.LogLimit < 0 {
		return job.Errorf(job.KindInvalid, "bad_log_limit", "%d bytes is no limit of a log", c.LogLimit).WithField("logLimit").
			WithHint("give at least 1, or 0 for the default")
	}
	if c.Listener == nil {
		host, port, err := net.SplitHostPort(c.Listen)
		if err == nil {
			_, err = net.DefaultResolver.LookupPort(context.Background(), "tcp", port) // of this machine's own list
		}
		if err != nil {
			return job.Errorf(job.KindInvalid, "bad_listen", "%q is no address to listen on", c.Listen).WithField("listen").
				WithHint("give host:port, such as %s", DefaultListen).WithCause(err)
		}
		if c.TokenFile == "" && !loopback(host) {
			return job.Errorf(job.KindInvalid, "token_required", "%s can be reached from other machines, and no token is asked for", c.Listen).
				WithField("listen").WithHint("give --token-file FILE for people and --worker-token-file FILE for workers (--token-file alone is for both), or listen on 127.0.0.1")
		}
	}
	if err := c.checkGuards(); err != nil {
		return err
	}
	if err := c.checkCluster(); err != nil {
		return err
	}
	if err := c.Keep.Check(); err != nil {
		return err
	}
	return c.Lease.Check(c.sole())
}

func (c Config) filled() Config {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Server == "" && c.sole() {
		c.Server, _ = os.Hostname() // only a name: an empty one places the server as well
	}
	if c.Connections == 0 {
		c.Connections = maxConnections
	}
	c.Keep = c.Keep.Filled()
	c.Lease = c.Lease.Filled()
	return c
}

// sole: a data directory has one server at a time, by its lock.
func (c Config) sole() bool { return c.DataDir != "" }

// loopback tells whether a host can be reached from this machine only. Names other than localhost are
// not looked up: what they mean may change.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
