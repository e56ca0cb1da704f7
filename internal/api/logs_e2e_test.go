package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
)

// lossy loses the answers of every second log call: the server has taken what the worker sends again.
type lossy struct {
	base http.RoundTripper
	n    int // of log calls, which come one at a time
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.base.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/worker/log") {
		return resp, err
	}
	if l.n++; l.n%2 == 1 {
		_ = resp.Body.Close()
		return nil, errors.New("the answer was lost")
	}
	return resp, nil
}

// employ runs a worker with one handler, "index", until the returned function is called.
func (n *node) employ(h takt.Handler, change ...func(*takt.WorkerConfig)) (dismiss func()) {
	n.t.Helper()
	transport := &http.Transport{}
	cfg := takt.WorkerConfig{Server: n.base, Pool: "web", Name: "w", HTTPClient: &http.Client{Transport: &lossy{base: transport}},
		Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&cfg)
	}
	w, err := takt.NewWorker(cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	w.Handle("index", h)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	dismissed := false
	dismiss = func() {
		if dismissed {
			return
		}
		dismissed = true
		stop()
		if err := <-done; err != nil {
			n.t.Error(err)
		}
		transport.CloseIdleConnections()
	}
	n.t.Cleanup(dismiss) // before the server's
	return dismiss
}

func (n *node) client() *takt.Client {
	n.t.Helper()
	c, err := takt.NewClient(takt.ClientConfig{Server: n.base, HTTPClient: http.DefaultClient})
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

// run makes the job and asks for an execution of it.
func (n *node) run(spec string) string {
	n.t.Helper()
	asked[takt.Job](n, "PUT", one, doc(spec))
	return asked[takt.Triggered](n, "POST", one+"/trigger", "").Execution
}

// raw is what a log holds, byte for byte.
func raw(entries []takt.LogEntry) string {
	var b strings.Builder
	for _, e := range entries {
		if len(e.Raw) > 0 {
			b.Write(e.Raw)
		} else {
			b.WriteString(e.Text)
		}
		if !e.Partial && e.Dropped == nil {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// whole reads all that is there; it must be the end.
func (n *node) whole(execution string) []takt.LogEntry {
	n.t.Helper()
	var all []takt.LogEntry
	q := takt.LogQuery{Wait: 20 * time.Second}
	for {
		list, err := n.client().Logs(n.t.Context(), execution, q)
		if err != nil {
			n.t.Fatal(err)
		}
		all = append(all, list.Items...)
		if q.After = list.Next; list.End {
			return all
		}
	}
}

// TestC69TheLastLines: 20,000 lines, the last one without a newline, followed live with reconnects at
// random, are there once and in order; so is all that a killed command wrote.
func TestC69TheLastLines(t *testing.T) {
	n := startNode(t)
	const lines = 20_000
	var want strings.Builder
	for i := 1; i <= lines; i++ {
		want.WriteString(strconv.Itoa(i))
		if i < lines {
			want.WriteByte('\n')
		}
	}
	n.employ(func(_ context.Context, task *takt.Task) error {
		_, err := io.WriteString(task.Output("stdout"), want.String())
		return err
	})
	execution := n.run(`{"pool":"web","handler":"index"}`)
	got := n.followWithReconnects(execution, 20)
	if e, err := n.client().Execution(t.Context(), execution); err != nil || e.State != "succeeded" {
		t.Errorf("the end was told while the execution was %q (%v)", e.State, err)
	}
	if followed := raw(got); followed != want.String() {
		t.Errorf("followed %d entries, %d bytes of %d", len(got), len(followed), want.Len())
	}
	for i, e := range got {
		if e.Line != int64(i) {
			t.Fatalf("entry %d is line %d", i, e.Line)
		}
	}
	if stored := raw(n.whole(execution)); stored != want.String() {
		t.Errorf("stored %d bytes of %d", len(stored), want.Len())
	}
}

// followWithReconnects follows a log and breaks the call off again and again.
func (n *node) followWithReconnects(execution string, breaks int) (got []takt.LogEntry) {
	n.t.Helper()
	r := rand.New(rand.NewPCG(6, 9))
	q := takt.LogQuery{Wait: 20 * time.Second}
	for {
		q.Limit = 1 + r.IntN(3000)
		ctx, cancel := context.WithCancel(n.t.Context())
		if breaks > 0 {
			cancel()
			ctx, cancel = context.WithTimeout(n.t.Context(), time.Duration(1+r.IntN(30))*time.Millisecond)
			breaks--
		}
		list, err := n.client().Logs(ctx, execution, q)
		cancel()
		if err != nil {
			if n.t.Context().Err() != nil {
				n.t.Fatal(err)
			}
			continue // from the same place
		}
		got = append(got, list.Items...)
		if q.After = list.Next; list.End {
			return got
		}
	}
}

// A command that is killed has written what it has written.
func TestC69KilledCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	n := startNode(t)
	n.employ(func(ctx context.Context, task *takt.Task) error {
		cmd := exec.CommandContext(ctx, "sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo $i; done; printf last; kill -9 $$")
		cmd.Stdout, cmd.Stderr = task.Output("stdout"), task.Output("stderr")
		return takt.Fatal(cmd.Run())
	})
	execution := n.run(`{"pool":"web","handler":"index"}`)
	got := n.whole(execution)
	if len(got) != 2001 || got[1999].Text != "2000" || got[2000].Text != "last" || !got[2000].Partial {
		t.Errorf("%d entries, the last is %+v", len(got), got[len(got)-1])
	}
	if e, _ := n.client().Execution(t.Context(), execution); e.State != "failed" {
		t.Errorf("execution %s", e.State)
	}
}

// What comes beyond the limit of an attempt is dropped, and every reader can see how much.
func TestLogLimit(t *testing.T) {
	n := startNode(t, func(c *app.Config) { c.LogLimit = 64 << 10 })
	const lines, size = 10_000, 100
	n.employ(func(_ context.Context, task *takt.Task) error {
		for i := range lines {
			if _, err := fmt.Fprintf(task.Output("stdout"), "%0100d\n", i); err != nil {
				return err
			}
		}
		return nil
	})
	execution := n.run(`{"pool":"web","handler":"index"}`)
	got := n.whole(execution)
	kept, dropped := 0, takt.Dropped{}
	for _, e := range got {
		if e.Dropped != nil {
			dropped.Lines, dropped.Bytes = dropped.Lines+e.Dropped.Lines, dropped.Bytes+e.Dropped.Bytes
			continue
		}
		kept++
	}
	const limit, tail = 64 << 10, 4 << 10 // store.LogTail: the newest lines, up to a sixteenth, are kept beyond the limit
	if kept != limit/(size+8)+tail/(size+8) || dropped.Lines != int64(lines-kept) || dropped.Bytes != size*dropped.Lines || len(got)-kept > 2 {
		t.Errorf("%d lines kept, %d marks, %+v dropped", kept, len(got)-kept, dropped)
	}
	list, err := n.client().Logs(t.Context(), execution, takt.LogQuery{Page: takt.Page{Limit: 5000}})
	if err != nil || list.Dropped == nil || *list.Dropped != dropped {
		t.Errorf("the list says %+v, %v", list.Dropped, err)
	}
}

// Counts of missing lines that a worker makes up add up to a large number, never to a negative one.
func TestLogCountsSaturate(t *testing.T) {
	n := startNode(t)
	execution := n.run(`{"pool":"web","handler":"index","shards":{"count":2}}`)
	o := asked[takt.OpenResponse](n, "POST", work+"open", opened)
	head := `{"session":"` + o.Session + `","epoch":` + strconv.FormatInt(o.Epoch, 10) + `,"call":`
	const most = 1<<53 - 1
	line := fmt.Sprintf(`{"at":1700000000000,"stream":"dropped","dropped":{"lines":%d,"bytes":%d}}`, most, most)
	lines := `"lines":[` + strings.Repeat(line+",", 4999) + line + `]`
	for _, a := range asked[takt.PollResponse](n, "POST", work+"poll", head+`2,"number":1,"free":4,"waitMs":20000}`).Assignments {
		item := fmt.Sprintf(`{"execution":%q,"shard":%d,"token":%d,"offset":`, execution, a.Shard, a.Token)
		asked[takt.LogResponse](n, "POST", work+"log", `{"chunks":[`+item+`0,`+lines+`}]}`)
		asked[takt.LogResponse](n, "POST", work+"log", `{"chunks":[`+item+`5000,`+lines+`,"final":true}]}`)
	}
	for _, query := range []string{"shard=0", "shard=1", "attempt=1"} {
		after := ""
		for {
			l := asked[takt.LogList](n, "GET", execs+"/"+execution+"/logs?limit=5000&"+query+"&after="+after, "")
			if after = url.QueryEscape(l.Next); l.More {
				continue
			}
			if l.Dropped == nil || *l.Dropped != (takt.Dropped{Lines: most, Bytes: most}) {
				t.Errorf("%s: missing are %+v, want %d", query, l.Dropped, int64(most))
			}
			break
		}
	}
}

// The end of a log is told apart from nothing yet, also when the result was there before the log.
func TestLogEnd(t *testing.T) {
	n := startNode(t)
	execution := n.run(`{"pool":"web","handler":"index"}`)
	read := func(query string) takt.LogList {
		return asked[takt.LogList](n, "GET", execs+"/"+execution+"/logs?"+query, "")
	}
	if l := read("waitMs=1"); l.End || len(l.Items) != 0 || l.Next == "" {
		t.Errorf("queued: %+v", l)
	}
	o := asked[takt.OpenResponse](n, "POST", work+"open", opened)
	head := `{"session":"` + o.Session + `","epoch":` + strconv.FormatInt(o.Epoch, 10) + `,"call":`
	a := asked[takt.PollResponse](n, "POST", work+"poll", head+`2,"number":1,"free":4,"waitMs":20000}`).Assignments[0]
	item := fmt.Sprintf(`{"execution":%q,"shard":0,"token":%d`, execution, a.Token)
	if l := read("attempt=1"); l.End {
		t.Errorf("running: %+v", l)
	}
	r := asked[takt.ReportResponse](n, "POST", work+"report", head+`3,"items":[`+item+`,"seq":1,"kind":"done","outcome":"success","logPending":true}]}`)
	if r.Items[0] != "accepted" {
		t.Fatalf("report %+v", r)
	}
	for _, q := range []string{"", "attempt=1", "shard=0", "shard=0&attempt=1", "waitMs=300"} {
		if l := read(q); l.End || len(l.Items) != 0 {
			t.Errorf("ended, log to come, %q: %+v", q, l)
		}
	}
	line := `"lines":[{"at":1700000000000,"stream":"stdout","text":"late"}]`
	f := asked[takt.LogResponse](n, "POST", work+"log", `{"chunks":[`+item+`,"offset":1,`+line+`},`+item+`,"offset":0,`+line+`},`+item+`,"offset":0,`+line+`,"final":true}]}`)
	if got := fmt.Sprint(f.Chunks); got != "[{gap 0} {taken 1} {taken 1}]" {
		t.Errorf("fates %s", got)
	}
	for _, q := range []string{"", "attempt=1", "shard=0", "limit=1"} {
		if l := read(q); !l.End || len(l.Items) != 1 || l.Items[0].Text != "late" || !l.Items[0].Time.Equal(time.UnixMilli(1_700_000_000_000)) {
			t.Errorf("complete, %q: %+v", q, l)
		}
	}
	for _, q := range []string{"attempt=2", "shard=1"} {
		if l := read(q); !l.End || len(l.Items) != 0 {
			t.Errorf("what never was, %q: %+v", q, l)
		}
	}
}

// Lines that are written while the server is replaced arrive, a reader goes on where it stood, and the
// log is there when the worker is gone.
func TestLogsOutliveServerAndWorker(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, func(c *app.Config) { c.DataDir = dir })
	begun, replaced := make(chan struct{}), make(chan struct{})
	dismiss := n.employ(func(_ context.Context, task *takt.Task) error {
		for i := range 2000 {
			if i == 1000 {
				close(begun)
				<-replaced
			}
			if _, err := fmt.Fprintln(task.Output("stdout"), i); err != nil {
				return err
			}
		}
		return nil
	})
	execution := n.run(`{"pool":"web","handler":"index"}`)
	followed := make(chan []takt.LogEntry, 1)
	go func() {
		var got []takt.LogEntry
		_, err := n.client().FollowLogs(t.Context(), execution, takt.LogQuery{}, func(e takt.LogEntry) error {
			got = append(got, e)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		followed <- got
	}()
	<-begun
	n.stop()
	address := strings.TrimPrefix(n.base, "http://")
	m := startNode(t, func(c *app.Config) { c.DataDir, c.Listen = dir, address })
	close(replaced)
	for what, got := range map[string][]takt.LogEntry{"followed": <-followed, "stored": m.whole(execution)} {
		for i, e := range got {
			if e.Line != int64(i) || e.Text != strconv.Itoa(i) {
				t.Fatalf("%s: entry %d is %+v", what, i, e)
			}
		}
		if len(got) != 2000 {
			t.Errorf("%s: %d lines", what, len(got))
		}
	}
	dismiss()
	if got := m.whole(execution); len(got) != 2000 {
		t.Errorf("without its worker: %d lines", len(got))
	}
}
