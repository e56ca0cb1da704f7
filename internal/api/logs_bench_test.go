package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/app"
)

// BenchmarkLogIngest is one worker that ships calls of 1,000 lines of 100 bytes, one after the other, to a server on SQLite:
// go test ./internal/api -bench LogIngest -run '^$'. It says how many lines a second are durable.
func BenchmarkLogIngest(b *testing.B) {
	const lines = 1000
	n := startNode(b, func(c *app.Config) { c.NoSync, c.LogLimit = false, 1<<40 })
	asked[takt.Job](n, "PUT", one, doc(`{"pool":"web","handler":"index"}`))
	e := asked[takt.Triggered](n, "POST", one+"/trigger", "").Execution
	a := n.session("bench", 1).take(1)[0]
	text := strings.Repeat(fmt.Sprintf(`{"at":1700000000000,"stream":"stdout","text":"%0100d"},`, 7), lines)
	text = strings.TrimSuffix(text, ",")
	offset := 0
	for b.Loop() {
		r := asked[takt.LogResponse](n, "POST", work+"log", fmt.Sprintf(`{"chunks":[{"execution":%q,"shard":0,"token":%d,"offset":%d,"lines":[%s]}]}`, e, a.Token, offset, text))
		if offset += lines; r.Chunks[0].Fate != "taken" || r.Chunks[0].Next != int64(offset) {
			b.Fatalf("%+v at line %d", r, offset)
		}
	}
	b.ReportMetric(float64(offset)/b.Elapsed().Seconds(), "lines/s")
}
