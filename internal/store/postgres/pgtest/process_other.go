//go:build !unix

package pgtest

import "errors"

var errElsewhere = errors.New("a private PostgreSQL is only started on Unix; name a server in " + EnvServer)

type process struct{}

func privateDir() (string, error)                   { return "", errors.Join(errMissing, errElsewhere) }
func run(string, string, ...string) ([]byte, error) { return nil, errElsewhere }
func (*Cluster) start() error                       { return errElsewhere }
func (*Cluster) close()                             {}
