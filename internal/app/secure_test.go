package app_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/job"
)

// run serves until the test ends and returns the address.
func run(t *testing.T, cfg app.Config) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	if cfg.DataDir == "" {
		cfg.DataDir = filepath.Join(t.TempDir(), "data")
	}
	cfg.Listen = "127.0.0.1:0"
	a, err := app.New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return a.Addr()
}

// certificate makes a certificate for 127.0.0.1 that vouches for itself, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "takt"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, raw []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
}

// Over TLS a client and a worker that trust the certificate are served; others, old TLS and plain HTTP are not.
func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	address := run(t, app.Config{TLSCert: cert, TLSKey: key})
	server := "https://" + address
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)

	trusting, err := takt.NewClient(takt.ClientConfig{Server: server, CAFile: cert})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trusting.Jobs(t.Context(), takt.Page{}); err != nil {
		t.Errorf("a client that trusts the certificate: %v", err)
	}
	strange, err := takt.NewClient(takt.ClientConfig{Server: server, RetryFor: -1, HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strange.Jobs(t.Context(), takt.Page{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a client that does not: %v", err)
	}
	plain, err := takt.NewClient(takt.ClientConfig{Server: "http://" + address, RetryFor: -1, HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Jobs(t.Context(), takt.Page{}); err == nil {
		t.Error("plain HTTP was answered")
	}
	dial := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}} //nolint:gosec // that is what must be refused
	if conn, err := dial.DialContext(t.Context(), "tcp", address); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 was accepted")
	}
	workOver(t, takt.WorkerConfig{Server: server, CAFile: cert, Pool: "p"}, trusting)
}

// workOver runs a worker until one shard has come to it.
func workOver(t *testing.T, cfg takt.WorkerConfig, people *takt.Client) {
	t.Helper()
	cfg.Grace = -1
	w, err := takt.NewWorker(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan struct{})
	w.Handle("h", func(context.Context, *takt.Task) error { close(ran); return nil })
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	if _, err := people.PutJob(ctx, takt.Job{APIVersion: "takt/v1", Kind: "Job", Metadata: takt.JobMetadata{Name: "j"}, Spec: takt.JobSpec{Pool: "p", Handler: "h"}},
		takt.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := people.Trigger(ctx, "j", takt.TriggerOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ran:
	case err := <-done:
		t.Errorf("the worker ended: %v", err)
		done <- nil
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// With two tokens each serves its own calls only, for the SDK as well.
func TestTokensApart(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"people": "pe0ple", "workers": "w0rkers"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := run(t, app.Config{TokenFile: filepath.Join(dir, "people"), WorkerTokenFile: filepath.Join(dir, "workers")})
	client := func(token string) *takt.Client {
		c, err := takt.NewClient(takt.ClientConfig{Server: address, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if _, err := client("w0rkers").Jobs(t.Context(), takt.Page{}); !errors.Is(err, takt.ErrForbidden) {
		t.Errorf("people's call with the workers' token: %v", err)
	}
	w, err := takt.NewWorker(takt.WorkerConfig{Server: address, Token: "pe0ple", Pool: "p"})
	if err != nil {
		t.Fatal(err)
	}
	w.Handle("h", func(context.Context, *takt.Task) error { return nil })
	if err := w.Run(t.Context()); !errors.Is(err, takt.ErrForbidden) {
		t.Errorf("a worker with people's token: %v", err)
	}
	workOver(t, takt.WorkerConfig{Server: address, Token: "w0rkers", Pool: "p"}, client("pe0ple"))
}

// Connections beyond the limit are closed; the ones that are there go on, and the next one gets in when one ends.
func TestConnectionLimit(t *testing.T) {
	address := run(t, app.Config{Connections: 2})
	ask := func(conn net.Conn) bool {
		_, err := conn.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		if err != nil {
			return false
		}
		n, err := conn.Read(make([]byte, 1024))
		return err == nil && n > 0
	}
	dial := func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	first, second := dial(), dial()
	if !ask(first) || !ask(second) {
		t.Fatal("the first two were not served")
	}
	for range 20 {
		if ask(dial()) {
			t.Fatal("a third one was served")
		}
	}
	if !ask(first) {
		t.Error("the first one is not served any more")
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	for !ask(dial()) { // the server has yet to see the end of the second; the test's own time-out ends it
	}
}

// Where others can try, a token that can be guessed is refused; on this machine any will do.
func TestShortTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, token string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	short, long := file("short", "123456789012345"), file("long", "1234567890123456")
	for _, c := range []struct {
		listen, people, workers, field string
	}{
		{"127.0.0.1:0", short, "", ""}, {"[::1]:0", short, long, ""}, {"localhost:0", long, short, ""},
		{"0.0.0.0:0", short, "", "tokenFile"}, {"0.0.0.0:0", long, short, "workerTokenFile"}, {":0", short, "", "tokenFile"}, {"0.0.0.0:0", long, "", ""},
	} {
		a, err := app.New(t.Context(), app.Config{DataDir: t.TempDir(), Listen: c.listen, TokenFile: c.people, WorkerTokenFile: c.workers, NoSync: true})
		if err == nil {
			err = a.Close()
		}
		e, refused := errors.AsType[*job.Error](err)
		if c.field == "" && err != nil || c.field != "" && (!refused || e.Code != "token_too_short" || e.Field != c.field) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
