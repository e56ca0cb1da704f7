package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/app"
)

// A server that stops waits for nobody who opened a connection and asked nothing.
func TestStopLeavesUnusedConnections(t *testing.T) {
	var log bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	a, err := app.New(ctx, app.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	awaitReady(t, "http://"+a.Addr())
	for range 3 {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }() // nothing is sent
		defer func() {
			if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
			if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
				t.Errorf("read %d bytes, %v, from a server that has ended", n, err)
			}
		}()
	}
	awaitReady(t, "http://"+a.Addr()) // accepted after those
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "their connections are cut") {
		t.Errorf("the stop waited for connections on which nothing was asked:\n%s", &log)
	}
}
