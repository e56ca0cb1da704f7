package takt

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Backup writes the server's whole database, as it is at one instant, to w: a SQLite file that `takt restore` takes. It
// returns the number of bytes. After an error what was written is worth nothing.
func (c *Client) Backup(ctx context.Context, w io.Writer) (int64, error) {
	const op = "back up the server"
	base := c.x.servers[int(c.x.current.Load())%len(c.x.servers)]
	req, err := c.x.build(ctx, base, request{op: op, method: http.MethodGet, path: "/api/v1/backup"})
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "application/vnd.sqlite3, application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return 0, fmt.Errorf("takt: %s: %w", op, context.Cause(ctx))
		}
		return 0, unreachable(op, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return 0, refused(op, resp)
	}
	n, err := io.Copy(w, resp.Body)
	if err == nil && resp.ContentLength >= 0 && n != resp.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, fmt.Errorf("takt: %s: after %d bytes: %w", op, n, err)
	}
	return n, nil
}
