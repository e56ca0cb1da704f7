package demo_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/taktsched/takt/internal/demo"
)

func batch(shard int, token int64, paths ...string) demo.Batch {
	b := demo.Batch{Shard: shard, Worker: "A", Key: fmt.Sprintf("k#%d", shard), Token: token}
	for _, p := range paths {
		b.Files = append(b.Files, demo.Entry{Path: p, Size: 1})
	}
	return b
}

func TestSinkDecides(t *testing.T) {
	type step struct {
		batch demo.Batch
		want  demo.Verdict
	}
	for _, c := range []struct {
		name  string
		steps []step
		stats demo.SinkStats
	}{
		{"a first batch is appended", []step{
			{batch(0, 7, "a", "b"), demo.Verdict{Appended: 2, Highest: 7}},
		}, demo.SinkStats{Appended: 2}},
		{"a batch that is sent again is swallowed", []step{
			{batch(0, 7, "a", "b"), demo.Verdict{Appended: 2, Highest: 7}},
			{batch(0, 7, "a", "b"), demo.Verdict{Repeats: 2, Highest: 7}},
		}, demo.SinkStats{Appended: 2, Repeats: 2}},
		{"the next owner repeats what its predecessor did not checkpoint", []step{
			{batch(0, 7, "a", "b"), demo.Verdict{Appended: 2, Highest: 7}},
			{batch(0, 8, "b", "c"), demo.Verdict{Appended: 1, Repeats: 1, Highest: 8}},
		}, demo.SinkStats{Appended: 3, Repeats: 1}},
		{"an old token is refused, new paths and all", []step{
			{batch(0, 8, "a"), demo.Verdict{Appended: 1, Highest: 8}},
			{batch(0, 7, "b"), demo.Verdict{Stale: true, Highest: 8}},
			{batch(0, 8, "b"), demo.Verdict{Appended: 1, Highest: 8}},
		}, demo.SinkStats{Appended: 2, Stale: 1}},
		{"tokens are compared within a shard", []step{
			{batch(0, 8, "a"), demo.Verdict{Appended: 1, Highest: 8}},
			{batch(1, 7, "b"), demo.Verdict{Appended: 1, Highest: 7}},
		}, demo.SinkStats{Appended: 2}},
		{"an empty batch still shows its token", []step{
			{batch(0, 8), demo.Verdict{Highest: 8}},
			{batch(0, 7, "a"), demo.Verdict{Stale: true, Highest: 8}},
		}, demo.SinkStats{Stale: 1}},
		{"a path twice in one batch", []step{
			{batch(0, 8, "a", "a"), demo.Verdict{Appended: 1, Repeats: 1, Highest: 8}},
		}, demo.SinkStats{Appended: 1, Repeats: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var file bytes.Buffer
			s := demo.NewSink(&file)
			for i, st := range c.steps {
				got, err := s.Take(st.batch)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(st.want, got); d != "" {
					t.Errorf("step %d (-want +got):\n%s", i, d)
				}
			}
			if d := cmp.Diff(c.stats, s.Stats()); d != "" {
				t.Errorf("stats (-want +got):\n%s", d)
			}
			if lines := strings.Count(file.String(), "\n"); int64(lines) != c.stats.Appended {
				t.Errorf("%d lines in the file, want %d", lines, c.stats.Appended)
			}
		})
	}
}

// fileThatBreaks takes some writes and then half of one.
type fileThatBreaks struct {
	good int
	got  bytes.Buffer
}

func (f *fileThatBreaks) Write(p []byte) (int, error) {
	if f.good--; f.good >= 0 {
		return f.got.Write(p)
	}
	n, _ := f.got.Write(p[:len(p)/2])
	return n, errors.New("disk full")
}

func TestSinkAcceptsNothingAfterAFailedWrite(t *testing.T) {
	file := &fileThatBreaks{good: 1}
	s := demo.NewSink(file)
	if _, err := s.Take(batch(0, 1, "a")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if v, err := s.Take(batch(0, 1, "b")); err == nil {
			t.Errorf("a batch was accepted although the file is broken: %+v", v)
		}
	}
	if got := s.Stats().Appended; got != 1 {
		t.Errorf("appended = %d, want 1", got)
	}
}

func TestSinkOverHTTP(t *testing.T) {
	var file bytes.Buffer
	srv := httptest.NewServer(demo.NewSink(&file))
	defer srv.Close()
	post := func(body string) (int, string) {
		t.Helper()
		resp, err := http.Post(srv.URL, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	text := func(b demo.Batch) string {
		out, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for _, c := range []struct {
		name, body string
		status     int
		answer     string
	}{
		{"new", text(batch(0, 8, "a")), 200, `"appended":1`},
		{"stale", text(batch(0, 7, "b")), 409, `"stale":true,"highest":8`},
		{"no token", `{"shard":0,"key":"k","files":[]}`, 400, "token"},
		{"no key", `{"shard":0,"token":1,"files":[]}`, 400, "key"},
		{"no batch", `x`, 400, ""},
	} {
		if status, answer := post(c.body); status != c.status || !strings.Contains(answer, c.answer) {
			t.Errorf("%s: %d %s, want %d with %s", c.name, status, answer, c.status, c.answer)
		}
	}
	if got := strings.Count(file.String(), "\n"); got != 1 {
		t.Errorf("%d effects, want 1", got)
	}
}

// A sender that is killed while its batch is on the wire has sent nothing, however much has arrived.
func TestSenderThatDiesInTheMiddleOfABatch(t *testing.T) {
	var file bytes.Buffer
	s := demo.NewSink(&file)
	over := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r)
		close(over)
	}))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(batch(3, 9, "a", "b", "c"))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(conn)
	fmt.Fprintf(w, "POST / HTTP/1.1\r\nHost: sink\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:len(body)-10])
	if err := errors.Join(w.Flush(), conn.Close()); err != nil {
		t.Fatal(err)
	}
	<-over
	if file.Len() > 0 || s.Highest(3) != 0 {
		t.Errorf("half a batch left %q and token %d", file.String(), s.Highest(3))
	}
	if v, err := s.Take(batch(3, 10, "a", "b", "c")); err != nil || v.Appended != 3 {
		t.Errorf("the next owner's batch: %+v, %v", v, err)
	}
}

// The trap springs once, for the right worker, when the effect is there and the answer is not.
func TestSinkTrap(t *testing.T) {
	var file bytes.Buffer
	s := demo.NewSink(&file)
	post := func(b demo.Batch) int {
		body, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
		return rec.Code
	}
	sprung := 0
	s.Trap("A", func() {
		sprung++
		if s.Stats().Appended != 1 {
			t.Error("the trap springs before the effect is there")
		}
	})
	other := batch(0, 1)
	other.Worker = "B"
	for _, b := range []demo.Batch{other, batch(0, 1, "a"), batch(0, 1, "b")} {
		if code := post(b); code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	}
	if sprung != 1 {
		t.Errorf("the trap sprang %d times, want once", sprung)
	}
}

func TestSinkTakesBatchesOneAfterTheOther(t *testing.T) {
	var file bytes.Buffer // no lock of its own
	s := demo.NewSink(&file)
	var wg sync.WaitGroup
	for token := range int64(16) {
		wg.Go(func() {
			for i := range 20 {
				if _, err := s.Take(batch(0, token+1, fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	st := s.Stats()
	if st.Appended > 20 || int(st.Appended) != strings.Count(file.String(), "\n") || st.Appended+st.Repeats+st.Stale != 320 {
		t.Errorf("%+v", st)
	}
}
