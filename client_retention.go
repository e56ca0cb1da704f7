package takt

import (
	"context"
	"net/http"
)

// Retention reads how long the namespace keeps what is over.
func (c *Client) Retention(ctx context.Context) (RetentionStatus, error) {
	return fetch[RetentionStatus](ctx, c, "get retention", c.path("retention"), nil)
}

// SetRetention sets how long the namespace keeps what is over; zero fields mean the server's default.
func (c *Client) SetRetention(ctx context.Context, r Retention) (RetentionStatus, error) {
	return send[RetentionStatus](ctx, c, request{op: "set retention", method: http.MethodPut, path: c.path("retention"), body: r}, true)
}
