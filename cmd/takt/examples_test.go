package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taktsched/takt"
)

func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// exampleServer is a server with the job of an example; run triggers it and gives the execution that succeeded.
func exampleServer(t *testing.T, jobFile string) (server string, run func(job string, params any) (takt.Execution, []takt.ShardStatus)) {
	t.Helper()
	p := start(t, "server", "--data", "data", "--listen", "127.0.0.1:0", "--lease-ttl", "3s")
	server = "http://" + p.await(`msg=serving address=(\S+)`)[1]
	apply := exec.Command(p.cmd.Path, "apply", "-f", filepath.Join("..", "..", "examples", filepath.FromSlash(jobFile)), "--server", server)
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c, err := takt.NewClient(takt.ClientConfig{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	return server, func(job string, params any) (takt.Execution, []takt.ShardStatus) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		made, err := c.Trigger(ctx, job, takt.TriggerOptions{Params: params})
		if err != nil {
			t.Fatal(err)
		}
		e, err := c.Wait(ctx, made.Execution)
		shards, more := c.Shards(t.Context(), made.Execution, takt.Page{})
		if err != nil || more != nil || e.State != "succeeded" {
			t.Fatalf("%v %v: %+v\n%+v", err, more, e, shards.Items)
		}
		return e, shards.Items
	}
}

// sum adds up the results of shards.
func sum(t *testing.T, shards []takt.ShardStatus) (n int) {
	t.Helper()
	for i := range shards {
		var one int
		if err := json.Unmarshal(shards[i].Result, &one); err != nil {
			t.Fatalf("result of shard %d: %s: %v", i, shards[i].Result, err)
		}
		n += one
	}
	return n
}

func TestExampleBackup(t *testing.T) {
	if !canSignal {
		t.Skip("commands of the agent need a unix system")
	}
	source, target := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "a.txt"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BACKUP_SOURCE", source)
	t.Setenv("BACKUP_TARGET", target)
	handlers, err := filepath.Abs(filepath.Join("..", "..", "examples", "backup", "handlers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	server, run := exampleServer(t, "backup/job.yaml")
	start(t, "agent", "--server", server, "--pool", "ops", "--handlers", handlers, "--state", "state")
	_, shards := run("backup", nil)
	if !strings.Contains(string(shards[0].Result), `"bytes":`) {
		t.Errorf("result %s", shards[0].Result)
	}
	files, err := filepath.Glob(filepath.Join(target, "*.tar.gz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	if out, err := exec.Command("tar", "-xzOf", files[0], "./a.txt").Output(); err != nil || string(out) != "kept" {
		t.Errorf("%q %v", out, err)
	}
}

func TestExampleHTTP(t *testing.T) {
	bodies := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		bodies <- string(text)
	}))
	defer hook.Close()
	handlers := filepath.Join(t.TempDir(), "handlers.yaml")
	text := strings.ReplaceAll(example(t, "http/handlers.yaml"), "http://127.0.0.1:8088", hook.URL)
	if err := os.WriteFile(handlers, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server, run := exampleServer(t, "http/job.yaml")
	start(t, "agent", "--server", server, "--pool", "web", "--handlers", handlers, "--state", "state")
	run("notify", nil)
	if body := <-bodies; !strings.Contains(body, "good morning") {
		t.Errorf("body %s", body)
	}
}

func TestExampleGoWorker(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "goworker.exe")
	if out, err := exec.Command("go", "build", "-o", bin, "../../examples/goworker").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := t.TempDir()
	for i := range 20 {
		name := filepath.Join(dir, fmt.Sprintf("d%d", i%3), fmt.Sprintf("f%d", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.Repeat("x\n", i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server, run := exampleServer(t, "goworker/job.yaml")
	work := exec.Command(bin)
	work.Env = append(os.Environ(), "TAKT_SERVER="+server)
	if err := work.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = work.Process.Kill(); _ = work.Wait() }()
	_, shards := run("lines", map[string]string{"dir": dir})
	if n := sum(t, shards); len(shards) != 4 || n != 190 {
		t.Errorf("%d lines of %d shards, want 190 of 4", n, len(shards))
	}
}

func TestExamplePythonWorker(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	if n := strings.Count(example(t, "python/worker.py"), "\n"); n >= 150 {
		t.Errorf("the worker has %d lines", n)
	}
	server, run := exampleServer(t, "python/job.yaml")
	begin := func() *exec.Cmd {
		work := exec.Command(python, filepath.Join("..", "..", "examples", "python", "worker.py"))
		work.Env = append(os.Environ(), "TAKT_SERVER="+server)
		work.Stdout, work.Stderr = os.Stderr, os.Stderr
		if err := work.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = work.Process.Kill(); _ = work.Wait() })
		return work
	}
	work := begin()
	e, shards := run("sum", nil)
	if n := sum(t, shards); len(shards) != 4 || n != 4950 {
		t.Errorf("%d of %d shards, want 4950 of 4", n, len(shards))
	}
	c, err := takt.NewClient(takt.ClientConfig{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	logs, err := c.Logs(t.Context(), e.ID, takt.LogQuery{})
	if err != nil || len(logs.Items) != 4 {
		t.Errorf("%d lines, %v", len(logs.Items), err)
	}
	resumes(t, c, work, begin)
}

// resumes kills a worker in the middle; the next one goes on from its checkpoints, and SIGTERM ends it with 0.
func resumes(t *testing.T, c *takt.Client, work *exec.Cmd, begin func() *exec.Cmd) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	made, err := c.Trigger(ctx, "sum", takt.TriggerOptions{Params: map[string]int{"n": 4000}})
	if err != nil {
		t.Fatal(err)
	}
	shards := func() []takt.ShardStatus {
		list, err := c.Shards(ctx, made.Execution, takt.Page{})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	for shards()[0].CheckpointSeq < 3 { // it is under way
	}
	_ = work.Process.Kill()
	_ = work.Wait()
	work = begin()
	if e, err := c.Wait(ctx, made.Execution); err != nil || e.State != "succeeded" {
		t.Fatalf("%+v %v", e, err)
	}
	all := shards()
	if n := sum(t, all); n != 3999*4000/2 {
		t.Errorf("sum %d", n)
	}
	if last := all[0].Attempts[len(all[0].Attempts)-1]; last.Number != 2 || last.ResumedFrom < 3 {
		t.Errorf("attempt %+v", last)
	}
	if !canSignal {
		return
	}
	if err := terminate(work.Process); err != nil {
		t.Fatal(err)
	}
	if err := work.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}
