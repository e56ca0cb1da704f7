package api_test

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
)

// syncBuffer is a log that many write to.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Nothing that people read, and nothing that the server logs, holds a secret value of params; workers get it, and who
// asks for it by name.
func TestSecretsAreMasked(t *testing.T) {
	var log syncBuffer
	n := startNode(t, func(c *app.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	with := func(value string) string {
		return doc(`{"pool":"web","handler":"index","params":{"month":"2026-11","db":{"password":"` + value + `"},"url":"https://u:` + value + `@h/"}}`)
	}
	var seen strings.Builder
	look := func(method, path, body string, header ...string) string {
		t.Helper()
		status, raw := n.ask(method, path, body, header...)
		if status/100 != 2 && status != 409 {
			t.Errorf("%s %s: %d %s", method, path, status, raw)
		}
		seen.Write(raw)
		return string(raw)
	}
	first := `{"documents":[{"job":` + with(secret+"-1") + `}]}`
	look("POST", applyPath, first)
	look("PUT", one, with(secret+"-2"))
	if diff := look("POST", applyPath, `{"dryRun":true,"documents":[{"job":`+with(secret+"-3")+`}]}`); !strings.Contains(diff, `"spec.params.db.password"`) {
		t.Errorf("a change of a secret is not shown: %s", diff)
	}
	look("PUT", one, with(secret+"-4"), "If-Match", `"1"`)
	made := asked[takt.Triggered](n, "POST", one+"/trigger", `{"params":{"apiKey":"`+secret+`-5"}}`)
	for _, path := range []string{one, jobs, revs, execs, execs + "/" + made.Execution, execs + "/" + made.Execution + "/shards"} {
		look("GET", path, "")
	}
	if strings.Contains(seen.String(), secret) || strings.Contains(log.String(), secret) {
		t.Errorf("a secret is shown:\n%s\n%s", seen.String(), log.String())
	}
	if !strings.Contains(seen.String(), "(masked)") || !strings.Contains(seen.String(), "2026-11") {
		t.Errorf("nothing is masked, or everything: %s", seen.String())
	}
	for _, path := range []string{one, jobs} {
		if _, raw := n.ask("GET", path+"?secrets=show", ""); !strings.Contains(string(raw), secret+"-2") {
			t.Errorf("%s does not show what was asked for: %s", path, raw)
		}
	}
	s := asked[takt.OpenResponse](n, "POST", work+"open", opened)
	_, raw := n.ask("POST", work+"poll", `{"session":"`+s.Session+`","epoch":`+strconv.FormatInt(s.Epoch, 10)+`,"call":2,"number":1,"free":4,"waitMs":20000}`)
	if !strings.Contains(string(raw), secret+"-5") || !strings.Contains(string(raw), secret+"-2") {
		t.Errorf("the worker does not get the values: %s", raw)
	}
}

// What was masked when it was read is not taken back: neither kept in silence nor written over the value.
func TestMaskedValuesAreRefused(t *testing.T) {
	n := startNode(t)
	asked[takt.Job](n, "PUT", one, doc(`{"pool":"web","handler":"index","params":{"password":"`+secret+`"}}`))
	_, read := n.ask("GET", one, "")
	n.refused("PUT", one, string(read), 422, "masked_value")
	n.refused("POST", applyPath, `{"documents":[{"job":`+string(read)+`}]}`, 422, "masked_value")
	n.refused("POST", one+"/trigger", `{"params":{"password":"(masked)"}}`, 422, "masked_value")
	_, clear := n.ask("GET", one+"?secrets=show", "")
	if j := asked[takt.Job](n, "PUT", one, string(clear)); j.Metadata.Revision != 1 {
		t.Errorf("what was read with its values is another revision: %+v", j.Metadata)
	}
}
