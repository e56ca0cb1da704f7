package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/taktsched/takt/internal/engine"
)

// BenchmarkReport is a report of 100 items through the whole handler; the owner answers at once.
func BenchmarkReport(b *testing.B) {
	r := newRig(&testing.T{}, nil)
	r.owners.answer = answers(&engine.Reported{Items: make([]engine.ItemStatus, 100)})
	var body bytes.Buffer
	body.WriteString(`{` + sess + `,"items":[`)
	for i := range 100 {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":%d,"token":5,"seq":1,"kind":"checkpoint","checkpoint":{"at":%d,"path":"/var/lib"}}`, i, i)
	}
	body.WriteString(`]}`)
	b.SetBytes(int64(body.Len()))
	b.ReportAllocs()
	for b.Loop() {
		q := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "http://127.0.0.1:7070"+work+"report", bytes.NewReader(body.Bytes()))
		q.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		if w.Code != http.StatusOK {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
		r.owners.calls = r.owners.calls[:0]
	}
}
