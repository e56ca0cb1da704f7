package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// brief is a lease that ends soon.
var brief = partition.Lease{TTL: 4 * time.Second, Beat: time.Second, Margin: 400 * time.Millisecond, OwnerTTL: time.Second, OwnerMargin: 200 * time.Millisecond,
	Renew: 200 * time.Millisecond}

// serving is a node and its end.
type serving struct {
	t      *testing.T
	node   *app.App
	client *takt.Client
	stop   func()
	log    *syncBuffer
}

// holds is what an owner says that waits for leases which a restored database does not know of.
const holds = "nothing is granted or judged until leases that it does not know of have ended"

func startOn(t *testing.T, dir string) *serving {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log := &syncBuffer{}
	a, err := app.New(ctx, app.Config{DataDir: dir, Listen: "127.0.0.1:0", Lease: brief, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	s := &serving{t: t, node: a, log: log}
	s.stop = func() {
		if cancel != nil {
			cancel()
			cancel = nil
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		}
	}
	t.Cleanup(s.stop)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	if s.client, err = takt.NewClient(takt.ClientConfig{Server: a.Addr(), HTTPClient: &http.Client{Transport: transport}}); err != nil {
		t.Fatal(err)
	}
	return s
}

// call makes a worker's call.
func (s *serving) call(path string, in, out any) {
	s.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		s.t.Fatal(err)
	}
	for {
		req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+s.node.Addr()+"/api/v1/worker/"+path, strings.NewReader(string(raw)))
		if err != nil {
			s.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			s.t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable && s.t.Context().Err() == nil {
			continue // no owner yet; each try is a round trip
		}
		if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(body, out) != nil {
			s.t.Fatalf("%s: %d %s %v", path, resp.StatusCode, body, err)
		}
		return
	}
}

// granted triggers the job, takes the shard as a new worker and returns its token.
func (s *serving) granted(name string) int64 {
	s.t.Helper()
	if _, err := s.client.PutJob(s.t.Context(), takt.Job{APIVersion: "takt/v1", Kind: "Job", Metadata: takt.JobMetadata{Name: name},
		Spec: takt.JobSpec{Pool: name, Handler: "h"}}, takt.PutOptions{}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.client.Trigger(s.t.Context(), name, takt.TriggerOptions{}); err != nil {
		s.t.Fatal(err)
	}
	var opened takt.OpenResponse
	s.call("open", takt.OpenRequest{Namespace: "default", Pool: name, Worker: "w", Incarnation: name, Handlers: []string{"h"}, Slots: 1, Call: 1, LocalTime: time.Now()}, &opened)
	var polled takt.PollResponse
	for n := int64(1); len(polled.Assignments) == 0; n++ {
		s.call("poll", takt.PollRequest{Session: opened.Session, Epoch: opened.Epoch, Call: n + 1, Number: n, Free: 1, WaitMs: 500}, &polled)
	}
	return polled.Assignments[0].Token
}

// R6 and R7 over a restored backup: the tokens that its server grants are above all that were granted before, also those
// that the backup does not know of; and it grants none until leases that it does not know of have ended.
func TestRestoreTokensRise(t *testing.T) {
	dir := t.TempDir()
	first := startOn(t, filepath.Join(dir, "data"))
	known := first.granted("a")
	file := filepath.Join(dir, "backup.db")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	size, err := first.client.Backup(t.Context(), f)
	if err := errors.Join(err, f.Close()); err != nil || size == 0 {
		t.Fatalf("backup of %d bytes: %v", size, err)
	}
	for { // the server removes its copy when the last byte has left
		left, err := filepath.Glob(filepath.Join(dir, "data", "backup-*"))
		if err != nil || t.Context().Err() != nil {
			t.Fatal(left, err)
		}
		if len(left) == 0 {
			break
		}
		runtime.Gosched()
	}
	forgotten := first.granted("b") // after the backup
	for range 20 {
		forgotten = max(forgotten, first.granted("b"))
	}
	err = app.Restore(t.Context(), file, filepath.Join(dir, "data"))
	if e, ok := errors.AsType[*job.Error](err); !ok || e.Code != "data_dir_locked" {
		t.Errorf("into the directory of a running server: %v", err)
	}
	first.stop()
	err = app.Restore(t.Context(), file, filepath.Join(dir, "data"))
	if e, ok := errors.AsType[*job.Error](err); !ok || e.Code != "data_dir_not_empty" {
		t.Errorf("over a database: %v", err)
	}
	if err := app.Restore(t.Context(), file, filepath.Join(dir, "restored")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(app.Database(filepath.Join(dir, "restored"))); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	began := time.Now()
	second := startOn(t, filepath.Join(dir, "restored"))
	token := second.granted("b")
	if took := time.Since(began); took < brief.TTL+brief.OwnerTTL {
		t.Errorf("granted %v after the start: a worker may still hold a lease that the backup does not know of", took)
	}
	if !strings.Contains(second.log.String(), holds) {
		t.Error("it does not say what it waits for")
	}
	if token <= known || token <= forgotten {
		t.Errorf("token %d after the restore, %d and %d before", token, known, forgotten)
	}
	second.stop()
	third := startOn(t, filepath.Join(dir, "restored"))
	if next := third.granted("c"); next <= token {
		t.Errorf("token %d after %d", next, token)
	}
	if strings.Contains(third.log.String(), holds) {
		t.Error("the second server on it waited again")
	}
}

// backupFile is the content of a sound one.
func backupFile(t *testing.T, dir string) []byte {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "some.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "whole")
	if err := errors.Join(st.Backup(t.Context(), to), st.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// flip damages each page but the first, which says what the file is.
func flip(whole []byte) []byte {
	bad := bytes.Clone(whole)
	const page = 4096
	for i := page; i < len(bad); i += page {
		for j := range 64 {
			bad[i+j] ^= 0xff
		}
	}
	return bad
}

// What can not be restored leaves nothing behind.
func TestRestoreRefuses(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte(strings.Repeat("junk", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	full := filepath.Join(dir, "full")
	if err := os.MkdirAll(filepath.Join(full, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	empty, cut, flipped := filepath.Join(dir, "empty"), filepath.Join(dir, "cut"), filepath.Join(dir, "flipped")
	whole := backupFile(t, dir)
	for name, content := range map[string][]byte{empty: nil, cut: whole[:len(whole)/2], flipped: flip(whole)} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ file, to, code string }{
		{empty, "new", "backup_damaged"}, {cut, "new", "backup_damaged"}, {flipped, "new", "backup_damaged"},
		{filepath.Join(dir, "none"), "new", "no_database"}, {junk, "new", "not_a_database"}, {dir, "new", "no_database"}, {junk, "full", "not_a_database"},
	} {
		err := app.Restore(t.Context(), c.file, filepath.Join(dir, c.to))
		if e, ok := errors.AsType[*job.Error](err); !ok || e.Code != c.code || e.Hint == "" || c.code == "backup_damaged" && e.Kind != job.KindInvalid {
			t.Errorf("%s: %v, want %s", c.file, err, c.code)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a refused restore made a directory")
	}
}

// What a kill left is cleared by the next start or restore, whatever the directory is called.
func TestLeftovers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "da[ta")
	put := func(dir string, names ...string) {
		t.Helper()
		for _, name := range names {
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone := func(dir string, names ...string) {
		t.Helper()
		for _, name := range names {
			if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is there: %v", name, err)
			}
		}
	}
	put(dir, "backup-1.tmp", "backup-2.tmp-journal", "backup-of-mine", "backup-4", "my-backup-3.tmp")
	first := startOn(t, dir)
	gone(dir, "backup-1.tmp", "backup-2.tmp-journal")
	for _, name := range []string{"backup-of-mine", "backup-4", "my-backup-3.tmp"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	first.stop()

	again := filepath.Join(t.TempDir(), "restored")
	parts := []string{"takt.db.part", "takt.db.part-journal", "takt.db.part-wal", "takt.db.part-shm"}
	put(again, append(parts, "mine")...)
	err := app.Restore(t.Context(), app.Database(dir), again)
	if e, ok := errors.AsType[*job.Error](err); !ok || e.Code != "data_dir_not_empty" || !strings.Contains(e.Message, "mine") {
		t.Errorf("beside a file of another: %v", err)
	}
	if err := os.Remove(filepath.Join(again, "mine")); err != nil {
		t.Fatal(err)
	}
	if err := app.Restore(t.Context(), app.Database(dir), again); err != nil {
		t.Error(err)
	}
	gone(again, parts...)
}
