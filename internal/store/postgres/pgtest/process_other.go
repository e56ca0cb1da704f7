//go:build !unix

package pgtest

import "errors"

var errElsewhere = errors.New("a private PostgreSQL is only started on Unix; name a server in " + EnvServer)

type process struct{}

func privateDir() (string, error)                   { return "", errors.Join(errMissing, errElsewhere) }
func run(string, string, ...string) ([]byte, error) { return nil, errElsewhere }
func (*Cluster) start() error                       { return errElsewhere }
func (*Cluster) close()                             {}

// Mode is how a cluster is stopped; there is none to stop here.
type Mode int

// The modes.
const (
	Fast Mode = iota
	Immediate
	Kill
)

// Stop, Start, Reload, Pause, Resume, SetReadOnly and Promote say that there is no private cluster here.
func (*Cluster) Stop(Mode) error { return errElsewhere }

// Start says so too.
func (*Cluster) Start() error { return errElsewhere }

// Reload says so too.
func (*Cluster) Reload() error { return errElsewhere }

// Pause says so too.
func (*Cluster) Pause() error { return errElsewhere }

// Resume says so too.
func (*Cluster) Resume() error { return errElsewhere }

// SetReadOnly says so too.
func (*Cluster) SetReadOnly(bool) error { return errElsewhere }

// Standby says so too.
func (*Cluster) Standby() (*Cluster, error) { return nil, errElsewhere }

// Promote says so too.
func (*Cluster) Promote() error { return errElsewhere }

// Close does nothing.
func (*Cluster) Close() {}
