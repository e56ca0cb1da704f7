package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// serveDir makes the test binary a server on this directory, for the tests with two processes.
const serveDir = "TAKT_APP_TEST_SERVE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveDir); dir != "" {
		os.Exit(serve(dir))
	}
	if text := os.Getenv(workAs); text != "" {
		os.Exit(work(text))
	}
	patiently()
	goleak.VerifyTestMain(m)
}

// patiently lets more tests wait side by side than there are processors, unless -parallel says how many: most wait for leases that run
// out on clocks which nobody turns, and do little else.
func patiently() {
	const name = "test.parallel"
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if f := flag.Lookup(name); !given && runtime.GOMAXPROCS(0) < 4 {
		if err := f.Value.Set("4"); err != nil {
			panic(err)
		}
	}
}

// serve runs a server until its standard input ends, or prints why it was refused.
func serve(dir string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a, err := app.New(ctx, app.Config{DataDir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		fmt.Printf("refused %v\n", err)
		return 5
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Printf("serving %s\n", a.Addr())
	if err := a.Run(ctx); err != nil {
		fmt.Printf("failed %v\n", err)
		return 1
	}
	return 0
}

// process is a server in a process of its own; closing stdin ends it.
func process(t *testing.T, dir string) (cmd *exec.Cmd, stdin io.Closer, line string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), serveDir+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err = cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, stdin, strings.TrimSpace(line)
}

// A second process on the same directory is refused with the name of the first; when the first is killed,
// the directory is free at once.
func TestLockBetweenProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first, _, line := process(t, dir)
	address, ok := strings.CutPrefix(line, "serving ")
	if !ok {
		t.Fatalf("the first server said %q", line)
	}
	second, _, refusal := process(t, dir)
	for _, want := range []string{"refused", dir, fmt.Sprintf("pid %d", first.Process.Pid), "since ", "address " + address} {
		if !strings.Contains(refusal, want) {
			t.Errorf("the refusal %q does not say %q", refusal, want)
		}
	}
	if err := second.Wait(); err == nil || second.ProcessState.ExitCode() != 5 {
		t.Errorf("the second server ended with %v, want exit 5", err)
	}
	_, err := app.New(t.Context(), app.Config{DataDir: dir, Listen: "127.0.0.1:0"})
	if e, ok := errors.AsType[*job.Error](err); !ok || e.Kind != job.KindConflict || e.Code != "data_dir_locked" {
		t.Errorf("a third server got %v, want data_dir_locked", err)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // killed
	third, stdin, line := process(t, dir)
	if !strings.HasPrefix(line, "serving ") {
		t.Errorf("after the first was killed: %q", line)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := third.Wait(); err != nil {
		t.Errorf("graceful end: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the data directory has mode %v, %v; want 0700", info.Mode(), err)
	}
}

func TestValidate(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good", "  s3cret\n")
	tests := []struct {
		name string
		cfg  app.Config
		code string // "": accepted
	}{
		{"nothing", app.Config{}, "data_dir_required"},
		{"no address", app.Config{DataDir: "x", Listen: "here"}, "bad_listen"},
		{"no port", app.Config{DataDir: "x", Listen: "127.0.0.1:99999"}, "bad_listen"},
		{"all addresses", app.Config{DataDir: "x", Listen: ":0"}, "token_required"},
		{"IPv4 any", app.Config{DataDir: "x", Listen: "0.0.0.0:0"}, "token_required"},
		{"a name", app.Config{DataDir: "x", Listen: "example.org:0"}, "token_required"},
		{"lease too short", app.Config{DataDir: "x", Lease: partition.Lease{TTL: 3 * time.Second, Beat: 3 * time.Second}}, "lease_settings"},
		{"token file missing", app.Config{DataDir: "x", TokenFile: filepath.Join(dir, "none")}, "bad_token_file"},
		{"token file empty", app.Config{DataDir: "x", TokenFile: write("empty", " \n")}, "bad_token_file"},
		{"token of two lines", app.Config{DataDir: "x", TokenFile: write("two", "a\nb\n")}, "bad_token_file"},
		{"no token file at all", app.Config{DataDir: "x", TokenFile: write("big", strings.Repeat("x", 5000))}, "bad_token_file"},
		{"workers' token alone", app.Config{DataDir: "x", WorkerTokenFile: good}, "token_required"},
		{"workers' token alone, beyond loopback", app.Config{DataDir: "x", Listen: "0.0.0.0:0", WorkerTokenFile: good}, "token_required"},
		{"workers' token missing", app.Config{DataDir: "x", TokenFile: good, WorkerTokenFile: filepath.Join(dir, "none")}, "bad_token_file"},
		{"the same token twice", app.Config{DataDir: "x", TokenFile: good, WorkerTokenFile: write("again", "s3cret")}, "tokens_equal"},
		{"directory and database", app.Config{DataDir: "x", Database: "postgres://"}, "two_databases"},
		{"advertised without others", app.Config{DataDir: "x", Advertise: "http://h:1"}, "one_server_only"},
		{"others' CA without others", app.Config{DataDir: "x", PeerCA: good}, "one_server_only"},
		{"advertised nonsense", app.Config{Database: "postgres://", Advertise: "h:1"}, "bad_advertise"},
		{"advertised with a user", app.Config{Database: "postgres://", Advertise: "http://u:p@h:1"}, "bad_advertise"},
		{"advertised everywhere", app.Config{Database: "postgres://", Advertise: "http://0.0.0.0:7070"}, "bad_advertise"},
		{"a name with spaces", app.Config{Database: "postgres://", Server: "a b"}, "bad_server_name"},
		{"a long name", app.Config{Database: "postgres://", Server: strings.Repeat("x", 129)}, "bad_server_name"},
		{"loss of what", app.Config{Database: "postgres://", DatabaseLoss: "all"}, "bad_db_loss"},
		{"loss without standby", app.Config{DataDir: "x", DatabaseLoss: "none"}, "bad_db_loss"},
		{"database beyond loopback", app.Config{Database: "postgres://", Listen: "0.0.0.0:0"}, "token_required"},
		{"certificate without key", app.Config{DataDir: "x", TLSCert: good}, "tls_incomplete"},
		{"key without certificate", app.Config{DataDir: "x", TLSKey: good}, "tls_incomplete"},
		{"no certificate", app.Config{DataDir: "x", TLSCert: good, TLSKey: good}, "bad_certificate"},
		{"connections", app.Config{DataDir: "x", Connections: -1}, "bad_connections"},
		{"beyond loopback with both tokens", app.Config{DataDir: "x", Listen: "0.0.0.0:0", TokenFile: good, WorkerTokenFile: write("other", "0ther")}, ""},
		{"loopback", app.Config{DataDir: "x", Listen: "[::1]:0"}, ""},
		{"localhost", app.Config{DataDir: "x", Listen: "localhost:0"}, ""},
		{"beyond loopback with a token", app.Config{DataDir: "x", Listen: "0.0.0.0:0", TokenFile: good}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cfg.Validate()
			if err == nil && tt.code != "" {
				tt.cfg.DataDir = filepath.Join(t.TempDir(), "data")
				tt.cfg.Listen = "127.0.0.1:0"
				_, err = app.New(t.Context(), tt.cfg) // what only New can see
			}
			if tt.code == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if e, ok := errors.AsType[*job.Error](err); !ok || e.Code != tt.code || e.Kind != job.KindInvalid {
				t.Errorf("got %v, want %s", err, tt.code)
			}
		})
	}
}

// get asks a running server.
func get(t *testing.T, url, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// awaitReady asks until the server is ready; the test's own time-out ends it.
func awaitReady(t *testing.T, base string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if code, _ := get(t, base+"/readyz", ""); code == http.StatusOK {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("never ready")
		}
	}
}

// A node serves people and workers, asks for its token, ends a hanging poll when it stops, and can be
// started again on what it left.
func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "data")
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		a, err := app.New(ctx, app.Config{DataDir: dir, Listen: "127.0.0.1:0", TokenFile: token, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		base := "http://" + a.Addr()
		awaitReady(t, base)
		if code, body := get(t, base+"/api/v1/stats", ""); code != http.StatusUnauthorized {
			t.Errorf("without the token: %d %s", code, body)
		}
		if code, body := get(t, base+"/api/v1/stats", "s3cret"); code != http.StatusOK {
			t.Errorf("with the token: %d %s", code, body)
		}
		poll := hangingPoll(t, base, a.Node())
		stopped := time.Now()
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(stopped); took > slack*5*time.Second {
			t.Errorf("stopping took %v, want less than 5 s", took)
		}
		if code := <-poll; code != http.StatusServiceUnavailable {
			t.Errorf("the hanging poll ended with %d, want 503", code)
		}
	}
}

// hangingPoll opens a session and polls; it returns when the poll hangs at the owner.
func hangingPoll(t *testing.T, base string, node *partition.Node) <-chan int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	post := func(path string, in any) (int, map[string]any, error) {
		raw, err := json.Marshal(in)
		if err != nil {
			return 0, nil, err
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/v1/worker/"+path, strings.NewReader(string(raw)))
		if err != nil {
			return 0, nil, err
		}
		req.Header.Set("Authorization", "Bearer s3cret")
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			return 0, nil, err
		}
		defer resp.Body.Close()
		out := map[string]any{}
		return resp.StatusCode, out, json.NewDecoder(resp.Body).Decode(&out)
	}
	code, opened, err := post("open", map[string]any{
		"namespace": "default", "pool": "p", "worker": "w", "incarnation": base, "handlers": []string{"h"}, "slots": 1,
		"localTime": time.Now(), "call": 1,
	})
	if err != nil || code != http.StatusOK {
		t.Fatalf("open: %d %v %v", code, opened, err)
	}
	out := make(chan int, 1)
	go func() {
		code, _, err := post("poll", map[string]any{
			"session": opened["session"], "epoch": opened["epoch"], "call": 2, "number": 1, "free": 1, "waitMs": 20000,
		})
		if err != nil {
			t.Errorf("poll: %v", err)
		}
		out <- code
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		reply, err := node.Call(t.Context(), 0, 0, engine.Inspect{})
		if err != nil {
			t.Fatal(err)
		}
		if ses := reply.Value.(*engine.Inspected).Sessions; slices.ContainsFunc(ses, func(v engine.SessionView) bool { return v.Polling }) {
			return out
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the poll never hung")
		}
	}
}
