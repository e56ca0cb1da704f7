package app

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

// DefaultListen is the address of a server that was told none.
const DefaultListen = "127.0.0.1:7070"

// maxToken bounds a token file, in bytes.
const maxToken = 4 << 10

// Config is what a node is assembled from. Only DataDir (or Store) is required.
type Config struct {
	DataDir   string   // holds LOCK and takt.db; made with mode 0700 when missing
	Listen    string   // host:port; "": DefaultListen. Beyond loopback a token file is required
	TokenFile string   // its content is the bearer token of every call; "": none is asked for
	Hosts     []string // further values of the Host header that are answered without a token
	Version   string   // shown to clients

	LogLimit int64 // bytes of one attempt's log; 0: 10 MiB

	Lease  partition.Lease  // lengths of leases; zero fields are filled, contradictions refused
	Wall   func() time.Time // the node's one wall clock; nil: time.Now
	Logger *slog.Logger     // nil: discard

	// What follows is for virtual clusters and drills.
	Listener    net.Listener            // served in place of Listen; closed by Run
	Store       store.Store             // in place of the file in DataDir, which may then be empty; not closed
	Partitions  int                     // of a file that is made now; 0: 1
	NoSync      bool                    // do not wait for the disk
	Server      string                  // name; "": the host's
	Incarnation string                  // this life of the server; "": drawn
	Random      io.Reader               // for ids of executions and jobs; nil: crypto/rand
	Tune        func(*partition.Config) // last word on the node's settings; nil: none
}

// Validate refuses settings that contradict themselves. Errors are *job.Error of KindInvalid.
func (c Config) Validate() error {
	c = c.filled()
	if c.DataDir == "" && c.Store == nil {
		return job.Errorf(job.KindInvalid, "data_dir_required", "a server needs a data directory").WithField("data").
			WithHint("give --data DIR")
	}
	if c.Listener == nil {
		host, _, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return job.Errorf(job.KindInvalid, "bad_listen", "%q is no address to listen on", c.Listen).WithField("listen").
				WithHint("give host:port, such as %s", DefaultListen).WithCause(err)
		}
		if c.TokenFile == "" && !loopback(host) {
			return job.Errorf(job.KindInvalid, "token_required", "%s can be reached from other machines, and no token is asked for", c.Listen).
				WithField("listen").WithHint("give --token-file FILE, or listen on 127.0.0.1")
		}
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
	if c.Server == "" {
		c.Server, _ = os.Hostname() // only a name: an empty one places the server as well
	}
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

// readToken reads a token file: one line, spaces around it cut off.
func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	bad := func(format string, args ...any) *job.Error {
		return job.Errorf(job.KindInvalid, "bad_token_file", format, args...).WithField("tokenFile")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", bad("the token file cannot be read").WithCause(err)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", bad("the token file cannot be read").WithCause(err)
	}
	token := strings.TrimSpace(string(raw))
	switch {
	case len(raw) > maxToken:
		return "", bad("%s is larger than %d bytes: is it a token file?", path, maxToken)
	case token == "":
		return "", bad("%s is empty", path).WithHint("write a long random text into it, such as the output of `openssl rand -hex 32`")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", bad("the token in %s has spaces or characters that a header cannot carry", path)
	}
	return token, nil
}
