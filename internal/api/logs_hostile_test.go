package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/taktsched/takt"
)

// hostileBytes are what databases and terminals choke on.
var hostileBytes = []string{"nul \x00 inside", "invalid \xff\xfe\x80", "half \xed\xa0\x80 surrogate", "\x1b[31mred\x1b[0m", "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
	"turned \u202e around", "four bytes 😀", "c1 \u009b2J", "\\u0000 as text", "'; DROP TABLE logs; --", "tab\tand\rreturn"}

// TestC71Bytes: whatever bytes come in log lines, messages, results and notes, the execution reaches its
// end and the rest is intact.
func TestC71Bytes(t *testing.T) {
	n := startNode(t)
	for _, q := range []string{`{"pool":"web","handler":"index","params":{"a":"\u0000"}}`, `{"pool":"web","handler":"index","params":{"a":"\ud800"}}`} {
		n.refused("PUT", one, doc(q), 400, map[bool]string{true: "nul_character", false: "invalid_utf8"}[strings.Contains(q, "u0000")])
	}
	all := strings.Join(hostileBytes, "\n")
	n.employ(func(ctx context.Context, task *takt.Task) error {
		for _, stream := range []string{"stdout", "stderr"} {
			if _, err := io.WriteString(task.Output(stream), all+"\n"); err != nil {
				return err
			}
		}
		task.Log().Error(all, "key", all) //nolint:sloglint // what a careless handler does
		if err := task.Progress(1, 2, all); err != nil {
			return err
		}
		var params struct{ How string }
		if err := task.BindParams(&params); err != nil {
			return err
		}
		switch params.How {
		case "fail":
			return takt.Fatal(errors.New(all))
		case "panic":
			panic(all)
		case "checkpoint":
			return task.Checkpoint(ctx, strings.ReplaceAll(strings.ToValidUTF8(all, "?"), "\x00", "?"))
		}
		return task.SetResult(map[string]string{"text": strings.ReplaceAll(all, "\x00", "")})
	})
	for how, state := range map[string]string{"fail": "failed", "panic": "failed", "checkpoint": "succeeded", "result": "succeeded"} {
		execution := n.run(`{"pool":"web","handler":"index","params":{"how":"` + how + `","text":"\u001b[31m\u202e😀"}}`)
		got := n.whole(execution)
		if want := all + "\n" + all + "\n"; !strings.HasPrefix(raw(got), want) {
			t.Errorf("%s: the log is not what was written: %q", how, raw(got))
		}
		e, err := n.client().Execution(t.Context(), execution)
		if err != nil || e.State != state {
			t.Errorf("%s: execution is %s (%s), %v", how, e.State, e.ReasonText, err)
		}
		sh := asked[takt.ShardList](n, "GET", execs+"/"+execution+"/shards", "").Items[0]
		if sh.Attempt != 1 {
			t.Errorf("%s: %d attempts", how, sh.Attempt)
		}
		if how == "fail" && !strings.Contains(sh.Error.Message, "four bytes 😀") {
			t.Errorf("%s: message %q", how, sh.Error.Message)
		}
	}
}

// A result that holds NUL is refused by the server; the attempt still ends, and says why.
func TestC71ResultWithNUL(t *testing.T) {
	n := startNode(t)
	n.employ(func(_ context.Context, task *takt.Task) error { return task.SetResult("a\x00b") })
	execution := n.run(`{"pool":"web","handler":"index"}`)
	e, err := n.client().Wait(t.Context(), execution)
	sh := asked[takt.ShardList](n, "GET", execs+"/"+execution+"/shards", "").Items[0]
	if err != nil || e.State != "failed" || sh.Error == nil || sh.Error.Class != "report_refused" || sh.Attempt != 1 {
		t.Errorf("execution %s, shard %+v, %v", e.State, sh, err)
	}
}

// TestC75Paths: an id is never a path, and another namespace's log is not there.
func TestC75Paths(t *testing.T) {
	n := startNode(t)
	n.employ(func(_ context.Context, task *takt.Task) error {
		_, err := fmt.Fprintln(task.Output("stdout"), "secret")
		return err
	})
	execution := n.run(`{"pool":"web","handler":"index"}`)
	if got := n.whole(execution); len(got) != 1 {
		t.Fatalf("log %+v", got)
	}
	for _, id := range []string{"..%2f..%2f..%2fetc%2fpasswd", "%252e%252e%252fetc", "..%5c..%5cetc", "%2fetc%2fpasswd", execution + "%00", execution + "_evil", "logs_evil"} {
		status, body := n.ask("GET", execs+"/"+id+"/logs", "")
		if status/100 != 4 || strings.Contains(string(body), "secret") || strings.Contains(string(body), "root:") {
			t.Errorf("%s: %d %s", id, status, body)
		}
	}
	for _, q := range []string{"after=..%2f..%2fetc%2fpasswd", "shard=-2", "shard=x", "attempt=-1", "limit=0", "limit=5001", "limit=99999999999999999999", "since=yesterday", "waitMs=-1", "path=%2fetc%2fshadow"} {
		if status, body := n.ask("GET", execs+"/"+execution+"/logs?"+q, ""); status != 422 {
			t.Errorf("%s: %d %s", q, status, body)
		}
	}
	other := strings.Replace(execs, "/default/", "/other/", 1)
	s1, there := n.ask("GET", other+"/"+execution+"/logs", "")
	s2, nowhere := n.ask("GET", other+"/00000000000000000000000000/logs", "")
	hide := func(b []byte, id string) string {
		var p takt.Problem
		_ = json.Unmarshal(b, &p)
		p.Instance = ""
		return strings.ReplaceAll(fmt.Sprint(p), id, "ID")
	}
	if s1 != 404 || s2 != 404 || hide(there, execution) != hide(nowhere, "00000000000000000000000000") {
		t.Errorf("another namespace: %d %s, nowhere: %d %s", s1, there, s2, nowhere)
	}
	for _, bad := range []string{`"execution":"/etc/shadow","shard":0,"token":1,"offset":0`, `"execution":"` + execution + `","shard":-1,"token":1,"offset":0`,
		`"execution":"` + execution + `","shard":0,"token":0,"offset":0`, `"execution":"` + execution + `","shard":0,"token":1,"offset":-1`,
		`"execution":"` + execution + `","shard":0,"token":1,"offset":0,"lines":[{"at":1,"stream":"../x","text":"a"}]`,
		`"execution":"` + execution + `","shard":0,"token":1,"offset":0,"lines":[{"at":1,"stream":"stdout","bytes":"no base64!"}]`,
		`"execution":"` + execution + `","shard":0,"token":1,"offset":0,"lines":[{"at":1,"stream":"dropped","dropped":{"lines":-1,"bytes":0}}]`} {
		if status, body := n.ask("POST", work+"log", `{"chunks":[{`+bad+`}]}`); status != 422 {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
	long := strings.Repeat("x", 64<<10+1)
	if status, _ := n.ask("POST", work+"log", `{"chunks":[{"execution":"`+execution+`","shard":0,"token":1,"offset":0,"lines":[{"at":1,"stream":"log","text":"`+long+`"}]}]}`); status != 422 {
		t.Errorf("a line that is too long: %d", status)
	}
	fate := asked[takt.LogResponse](n, "POST", work+"log", `{"chunks":[{"execution":"`+execution+`","shard":0,"token":1,"offset":0,"lines":[{"at":1,"stream":"log","text":"forged"}]}]}`)
	if fate.Chunks[0].Fate != "unknown" {
		t.Errorf("a token that nobody was granted: %+v", fate)
	}
	if got := n.whole(execution); len(got) != 1 {
		t.Errorf("log %+v", got)
	}
}
