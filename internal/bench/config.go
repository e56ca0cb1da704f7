package bench

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// Config says what is loaded, and how. Zero fields mean the defaults; Server must be set.
type Config struct {
	Server    string // address of the server, such as http://127.0.0.1:7070
	Namespace string // "": bench
	Token     string // of people's and workers' calls; "": none
	Force     bool   // also when the namespace has jobs already

	Executions int           // to make; 0: as many as come in For
	For        time.Duration // how long requests are made; 0 without Executions: 10 s
	Pools      int           // pools, each with a job, in turn asked for; 0: 1. One pool is one partition: what it does is decided one after the other
	Workers    int           // SDK workers of each pool, in this process; 0: 1
	Slots      int           // handlers that each of them runs at once; 0: 1,000
	Shards     int           // of each execution; 0: 1
	Rate       float64       // requests per second, evenly spread and sent as they come due; 0: as many as the server takes
	Bulk       int           // executions asked for in one request, at most; 0: 1,000, or 1 with Rate
	Clients    int           // that make requests; 0: 2, or 64 with Rate: so many requests may be on their way before one waits for another
	Backlog    int           // executions asked for that have not ended, at most, without Rate; 0: 6,000
	Payload    int           // bytes of each execution's parameters, about; 0: 100
	Keys       bool          // each request has an idempotency key

	Logger *slog.Logger // of the workers; nil: discard
	// Meters count what else is wanted; each is read before and after the load.
	Meters []Meter
}

// limits of what one run may hold in memory.
const (
	maxExecutions = 20_000_000
	maxPayload    = 64 << 10
)

// filled returns c with defaults, or an error of KindInvalid that names the wrong field.
func (c Config) filled() (Config, error) {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	if c.Namespace == "" {
		c.Namespace = "bench"
	}
	if c.Executions == 0 && c.For == 0 {
		c.For = 10 * time.Second
	}
	def(&c.Pools, 1)
	def(&c.Workers, 1)
	def(&c.Slots, 1000)
	def(&c.Shards, 1)
	if c.Rate > 0 {
		def(&c.Bulk, 1)
		def(&c.Clients, 64)
	}
	def(&c.Bulk, 1000)
	def(&c.Clients, 2)
	def(&c.Backlog, 6000)
	def(&c.Payload, 100)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, c.check()
}

func (c Config) check() error {
	bad := func(field, format string, args ...any) error {
		return job.Errorf(job.KindInvalid, "bad_bench", format, args...).WithField(field)
	}
	switch {
	case c.Executions < 0 || c.Executions > maxExecutions:
		return bad("executions", "expected 1 to %d", maxExecutions)
	case c.For < 0:
		return bad("for", "expected a length of time")
	case c.Pools < 1 || c.Pools > 100:
		return bad("pools", "expected 1 to 100")
	case c.Workers < 1 || c.Workers > 1000:
		return bad("workers", "expected 1 to 1000")
	case c.Slots < 1 || c.Slots > 10_000:
		return bad("slots", "expected 1 to 10000")
	case c.Shards < 1 || c.Shards > 10_000:
		return bad("shards", "expected 1 to 10000")
	case c.Rate < 0 || c.Rate > 1e6:
		return bad("rate", "expected up to 1000000 in a second")
	case c.Bulk < 1 || c.Bulk > 1000:
		return bad("bulk", "expected 1 to 1000")
	case c.Clients < 1 || c.Clients > 1000:
		return bad("clients", "expected 1 to 1000")
	case c.Backlog < c.Bulk:
		return bad("backlog", "expected at least as many as one request asks for, %d", c.Bulk)
	case c.Payload < 1 || c.Payload > maxPayload:
		return bad("payload", "expected 1 to %d", maxPayload)
	}
	return nil
}

// transport is one connection pool of its own.
func transport(connections int) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own value
	t.MaxIdleConnsPerHost = connections
	return t
}
