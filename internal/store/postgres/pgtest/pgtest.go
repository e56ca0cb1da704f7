// Package pgtest runs a private PostgreSQL for tests, from the binaries that are installed.
//
//	dsn := pgtest.Start(t).Database(t)  // a database of its own with Takt's tables, dropped after the test
//	c := pgtest.New(t, pgtest.Options{}) // a cluster of its own, to be stopped, paused, promoted
//
// The tests' user is no superuser. Where TAKT_TEST_PG names a server (a user who may create databases), Start takes that one.
// Without binaries tests are skipped, or fail when TAKT_TEST_PG_REQUIRED is set, as `make test` does.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Environment.
const (
	EnvServer   = "TAKT_TEST_PG"          // address of a server to take instead of a private one
	EnvRequired = "TAKT_TEST_PG_REQUIRED" // a missing PostgreSQL fails tests
)

const (
	superuser = "postgres"
	user      = "takt"
	template  = "takt_template"
	patience  = 60 * time.Second // for a start or an end, on a loaded machine
)

// Options of a cluster.
type Options struct {
	Fsync    bool              // wait for the disk, as in production
	Settings map[string]string // of postgresql.conf
}

// Cluster is a running PostgreSQL.
type Cluster struct {
	admin    string // address of a superuser
	dir      string // "": not ours
	port     int
	process  *process
	migrated sync.Once
	failure  error
	count    atomic.Int64
}

var shared struct {
	sync.Once
	*Cluster
	err error
}

// Start gives the cluster that all tests of this binary share; it ends with the binary, also when that is killed.
func Start(tb testing.TB) *Cluster {
	tb.Helper()
	shared.Do(func() {
		if admin := os.Getenv(EnvServer); admin != "" {
			shared.Cluster = &Cluster{admin: admin}
			return
		}
		shared.Cluster, shared.err = launch(Options{})
	})
	if shared.err != nil {
		missing(tb, shared.err)
	}
	return shared.Cluster
}

// New makes a cluster of the test's own, which ends with the test.
func New(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	c, err := launch(o)
	if err != nil {
		missing(tb, err)
	}
	tb.Cleanup(c.close)
	return c
}

var errMissing = errors.New("PostgreSQL is not installed: no initdb in PATH or /usr/lib/postgresql/*/bin")

func missing(tb testing.TB, err error) {
	tb.Helper()
	if errors.Is(err, errMissing) && os.Getenv(EnvRequired) == "" {
		tb.Skipf("%v; install it (make postgres) or name a server in %s", err, EnvServer)
	}
	tb.Fatalf("PostgreSQL for tests: %v", err)
}

// binaries finds the directory of initdb and postgres.
func binaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.Join(errMissing, err)
	}
	slices.SortFunc(found, func(a, b string) int { return len(a) - len(b) })
	return filepath.Dir(found[len(found)-1]), nil
}

func launch(o Options) (*Cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, err := privateDir()
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir}
	if out, err := run(dir, filepath.Join(bin, "initdb"), "-D", c.data(), "-U", superuser, "-A", "trust", "-E", "UTF8",
		"--locale=C", "--no-sync", "--no-instructions"); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(dir))
	}
	if err = c.configure(o); err == nil {
		err = c.start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	_, err = c.Exec(`CREATE ROLE ` + user + ` LOGIN`)
	return c, err
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) configure(o Options) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	c.port = port
	c.admin = c.address(superuser, "postgres")
	all := map[string]string{"listen_addresses": "127.0.0.1", "port": strconv.Itoa(port), "unix_socket_directories": "", "max_connections": "300",
		"shared_buffers": "64MB", "max_wal_size": "1GB", "log_checkpoints": "off", "timezone": "UTC", "wal_level": "replica", "hot_standby": "on"}
	if !o.Fsync {
		all["fsync"], all["full_page_writes"] = "off", "off"
	}
	for name, value := range o.Settings {
		all[name] = value
	}
	return c.Configure(all)
}

// Configure adds settings to postgresql.conf; they hold from the next start or Reload.
func (c *Cluster) Configure(settings map[string]string) error {
	f, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for name, value := range settings {
		if _, err := fmt.Fprintf(f, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''")); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

func freePort() (int, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	_, text, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return 0, errors.Join(err, l.Close())
	}
	port, err := strconv.Atoi(text)
	return port, errors.Join(err, l.Close())
}

// address of a database for a user.
func (c *Cluster) address(user, database string) string {
	if c.dir != "" {
		return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", user, c.port, database)
	}
	u, err := url.Parse(c.admin)
	if err != nil || u.Scheme == "" {
		return c.admin + " dbname=" + database // key=value pairs: the last one wins
	}
	u.Path = "/" + database
	return u.String()
}

// DSN is the address of a database for the tests' user, who is no superuser.
func (c *Cluster) DSN(database string) string { return c.address(user, database) }

// AdminDSN is the address of a database for a superuser.
func (c *Cluster) AdminDSN(database string) string { return c.address(superuser, database) }

// Dir is the cluster's directory; "" for one that is not ours.
func (c *Cluster) Dir() string { return c.dir }

// HostPort is where the cluster listens: "127.0.0.1:port".
func (c *Cluster) HostPort() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)) }

// Exec runs a statement as a superuser, outside of a transaction.
func (c *Cluster) Exec(text string, args ...any) (int64, error) { return c.ExecIn("", text, args...) }

// ExecIn is Exec in a database; "": the superuser's own.
func (c *Cluster) ExecIn(database, text string, args ...any) (n int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	address := c.admin
	if database != "" {
		address = c.address(superuser, database)
	}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	tag, err := conn.Exec(ctx, text, args...)
	return tag.RowsAffected(), err
}
