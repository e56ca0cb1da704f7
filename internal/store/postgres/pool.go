package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pool is a set of connections for one purpose.
type pool struct {
	*pgxpool.Pool
	limit    time.Duration // of a statement, and of a pause within a transaction, by the database
	patience time.Duration // of a transaction, when the network is silent
	writes   time.Duration // of one that writes: no longer than writeMost, but in tests
	begins   time.Duration // of its begin: beginMost, but in tests
	idle     time.Duration // idleMost, but in tests
	fresh    time.Duration // freshMost, but in tests
	ping     time.Duration // how long one that was idle may take to say that it lives
	parting  sync.WaitGroup
}

// soon is how long a transaction may take to begin.
func (p *pool) soon() time.Duration { return min(p.patience, p.begins) }

// A connection that was idle for longer is asked whether it lives, before it is used. noteIdle tells Acquire for how long.
const (
	idleMost = time.Second
	idleTime = "takt: idle time"
)

// noteIdle stands where pgxpool asks by itself: what it finds dead it keeps in its place, see release.
func noteIdle(_ context.Context, is pgxpool.ShouldPingParams) bool {
	is.Conn.PgConn().CustomData()[idleTime] = is.IdleDuration
	return false
}

// Acquire takes a connection that lives, as far as can be told.
func (p *pool) Acquire(ctx context.Context) (*pgxpool.Conn, error) {
	for {
		c, err := p.Pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		if idle, _ := c.Conn().PgConn().CustomData()[idleTime].(time.Duration); idle <= p.idle {
			return c, nil
		}
		asked, cancel := context.WithTimeout(ctx, p.ping)
		err = c.Ping(asked)
		cancel()
		if err == nil {
			return c, nil
		}
		p.release(c)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if pgconn.Timeout(err) { // so would the others that are idle
			p.Reset()
		}
	}
}

// release gives a connection back. One that broke leaves the pool at once: pgx says goodbye to it for up to 15 s where the
// network carries nothing, and its place would be taken for as long. A server whose few connections for commits broke together
// could commit nothing then, although the network was back.
func (p *pool) release(c *pgxpool.Conn) {
	if !c.Conn().IsClosed() {
		c.Release()
		return
	}
	gone := c.Hijack().PgConn().CleanupDone()
	p.parting.Go(func() { <-gone })
}

// exec runs one statement on a connection of the pool.
func (p *pool) exec(ctx context.Context, text string, args ...any) error {
	c, err := p.Acquire(ctx)
	if err != nil {
		return err
	}
	defer p.release(c)
	_, err = c.Exec(ctx, text, args...)
	return err
}

// close waits for the connections in use, and for those that part.
func (p *pool) close() {
	p.Close()
	p.parting.Wait()
}
