package drill_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/taktsched/takt/internal/drill"
)

func TestNetworkCarriesHTTPInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := drill.NewNetwork()
		l, err := network.Listen("server")
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			select {
			case <-time.After(20 * time.Second):
			case <-r.Context().Done():
			}
			_, _ = w.Write(append([]byte("echo "), body...))
		})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		transport := &http.Transport{DialContext: func(ctx context.Context, _, to string) (net.Conn, error) { return network.Dial(ctx, to) }}
		client := &http.Client{Transport: transport}

		began := time.Now()
		resp, err := client.Post("http://server/", "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(body) != "echo hello" || time.Since(began) != 20*time.Second {
			t.Errorf("answer %q after %s, want echo hello after 20 virtual seconds", body, time.Since(began))
		}
		l.Drop()
		_ = l.Close()
		_ = server.Close()
		<-served
		transport.CloseIdleConnections()
		if _, err := client.Get("http://server/"); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("dial after close: %v, want refused", err)
		}
	})
}

func TestPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := drill.Pipe(nil, nil)
		began := time.Now()
		_ = b.SetReadDeadline(began.Add(time.Second))
		if _, err := b.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("read past its deadline: %v after %s", err, time.Since(began))
		}
		_ = b.SetReadDeadline(time.Time{})
		_, _ = a.Write([]byte("rest"))
		_ = a.Close()
		if got, err := io.ReadAll(b); string(got) != "rest" || err != nil {
			t.Errorf("what was written before Close: %q, %v", got, err)
		}
		_ = b.Close()
		if _, err := b.Write([]byte("x")); err == nil {
			t.Error("a write to a closed connection succeeded")
		}
	})
}

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		removeProgram()
		os.Exit(code)
	}))
}
