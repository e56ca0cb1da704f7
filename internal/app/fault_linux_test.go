package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taktsched/takt"
)

// victim is a server in a process of its own whose disk gets into trouble.
type victim struct {
	t      *testing.T
	base   string
	stop   func() error
	stored []string // names of jobs that were acknowledged
	next   int
}

func newVictim(t *testing.T, dir string) *victim {
	t.Helper()
	cmd, stdin, line := process(t, dir)
	address, ok := strings.CutPrefix(line, "serving ")
	if !ok {
		t.Fatalf("the server said %q", line)
	}
	v := &victim{t: t, base: "http://" + address}
	v.stop = func() error { return errors.Join(stdin.Close(), cmd.Wait()) }
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // when the test ended early
	awaitReady(t, v.base)
	return v
}

// put writes a job with some weight; the problem is zero when it was acknowledged.
func (v *victim) put(weight int) (p takt.Problem) {
	v.t.Helper()
	v.next++
	name := fmt.Sprintf("job-%d", v.next)
	body := fmt.Sprintf(`{"apiVersion":"takt/v1","kind":"Job","metadata":{"name":%q},"spec":{"pool":"p","handler":"h","params":%q}}`, name, strings.Repeat("x", weight))
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodPut, v.base+"/api/v1/namespaces/default/jobs/"+name, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	if resp.StatusCode/100 == 2 {
		v.stored = append(v.stored, name)
		return p
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		v.t.Fatalf("%d %s: %v", resp.StatusCode, raw, err)
	}
	return p
}

// awaitReadiness asks until /readyz has the status.
func (v *victim) awaitReadiness(status int) string {
	v.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if code, body := get(v.t, v.base+"/readyz", ""); code == status {
			return body
		}
		select {
		case <-tick.C:
		case <-v.t.Context().Done():
			v.t.Fatalf("readyz never became %d", status)
		}
	}
}

// checkStored compares what the server knows with what it acknowledged.
func (v *victim) checkStored() {
	v.t.Helper()
	for _, name := range v.stored {
		if code, body := get(v.t, v.base+"/api/v1/namespaces/default/jobs/"+name, ""); code != http.StatusOK {
			v.t.Errorf("%s was acknowledged and is not there: %d %s", name, code, body)
		}
	}
}

func wantFault(t *testing.T, p takt.Problem, code string) {
	t.Helper()
	if p.Code != code || p.Kind != "unavailable" || p.Hint == "" {
		t.Errorf("answered %+v, want %s with a hint", p, code)
	}
}

// A full disk: a clear error, not ready, nothing acknowledged is lost, and the server goes on when there is room again.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=12m"); err != nil {
		t.Skipf("mounting a small file system is not allowed here: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	v := newVictim(t, filepath.Join(disk, "data"))
	for range 3 {
		if p := v.put(1000); p.Code != "" {
			t.Fatalf("on a healthy disk: %+v", p)
		}
	}
	if code, body := get(t, v.base+"/api/v1/backup", ""); code != http.StatusServiceUnavailable || !strings.Contains(body, `"no_room"`) {
		t.Errorf("a backup that would fill the disk: %d %s", code, body)
	}
	filler := filepath.Join(disk, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(f, io.LimitReader(zeros{}, 1<<30))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var p takt.Problem
	for range 100 { // what the log of the database still has room for is taken
		if p = v.put(100_000); p.Code != "" {
			break
		}
	}
	t.Logf("on a full disk: %s", p.Code)
	if p.Code != "disk_full" && p.Code != "disk_error" && p.Code != "commit_unknown" || p.Hint == "" {
		t.Errorf("on a full disk: %+v", p)
	}
	if body := v.awaitReadiness(http.StatusServiceUnavailable); !strings.Contains(body, "is full") || !strings.Contains(body, `"hint"`) {
		t.Errorf("readyz: %s", body)
	}
	v.checkStored()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	v.awaitReadiness(http.StatusOK)
	if p := v.put(1000); p.Code != "" {
		t.Errorf("with room again: %+v", p)
	}
	v.checkStored()
	if err := v.stop(); err != nil {
		t.Errorf("end: %v", err)
	}
	again := newVictim(t, filepath.Join(disk, "data"))
	again.stored = v.stored
	again.checkStored()
	if err := again.stop(); err != nil {
		t.Errorf("end: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// A data directory that was moved away: nothing is acknowledged into files without a name, and the server goes on when
// it is back. One that was deleted stays an error until the server is stopped.
func TestDataDirectoryGone(t *testing.T) {
	root := t.TempDir()
	dir, away := filepath.Join(root, "data"), filepath.Join(root, "away")
	v := newVictim(t, dir)
	if p := v.put(10); p.Code != "" {
		t.Fatalf("healthy: %+v", p)
	}
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	wantFault(t, v.put(10), "database_gone")
	v.awaitReadiness(http.StatusServiceUnavailable)
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	v.awaitReadiness(http.StatusOK)
	if p := v.put(10); p.Code != "" {
		t.Errorf("back again: %+v", p)
	}
	v.checkStored()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	wantFault(t, v.put(10), "database_gone")
	v.awaitReadiness(http.StatusServiceUnavailable)
	_ = v.stop() // it says that the file is gone
}

// A file system that is read-only from the start refuses the server with the reason.
func TestReadOnlyDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=12m"); err != nil {
		t.Skipf("mounting a file system is not allowed here: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	dir := filepath.Join(disk, "data")
	v := newVictim(t, dir)
	v.put(10)
	if err := v.stop(); err != nil {
		t.Fatal(err)
	}
	remount := func(flags uintptr) {
		if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT|flags, "size=12m"); err != nil {
			t.Fatal(err)
		}
	}
	remount(syscall.MS_RDONLY)
	refused, stdin, line := process(t, dir)
	if !strings.HasPrefix(line, "refused ") || !strings.Contains(line, "read-only file system") {
		t.Errorf("on a read-only disk: %q", line)
	}
	_ = stdin.Close()
	_ = refused.Wait() // exit 5
	remount(0)
	again := newVictim(t, dir)
	again.stored = v.stored
	again.checkStored()
	if err := again.stop(); err != nil {
		t.Errorf("end: %v", err)
	}
}
