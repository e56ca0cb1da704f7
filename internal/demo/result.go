package demo

import (
	"fmt"
	"math"
	"time"

	"github.com/taktsched/takt"
)

// Result is what the demo found.
type Result struct {
	Files            int       `json:"files"`             // that a plain walk finds
	Missing          int       `json:"missing"`           // without an effect, or with a wrong one
	Duplicates       int       `json:"duplicates"`        // with more than one
	RepeatsSwallowed int64     `json:"repeats_swallowed"` // paths that were sent again and changed nothing
	ShardsSucceeded  int       `json:"shards_succeeded"`
	Failovers        int       `json:"failovers"`        // shards granted again after a lost lease, counted each time
	Resumed          int       `json:"resumed"`          // attempts that began from a checkpoint
	StaleSink        int64     `json:"stale_sink"`       // batches that the sink refused for their token
	StaleServer      int64     `json:"stale_server"`     // report items that the server refused for their token
	TakeoverSeconds  []float64 `json:"takeover_seconds"` // from kill or freeze to the new grant, per shard
	Seconds          float64   `json:"seconds"`

	shards   int
	findings []string
}

// Faults lists what is not as it must be; empty: the audit holds.
func (r *Result) Faults() []string {
	faults := append([]string(nil), r.findings...)
	for _, c := range []struct {
		ok   bool
		text string
	}{
		{r.Missing == 0, fmt.Sprintf("missing = %d, must be 0", r.Missing)},
		{r.Duplicates == 0, fmt.Sprintf("duplicates = %d, must be 0", r.Duplicates)},
		{r.ShardsSucceeded == r.shards, fmt.Sprintf("shards_succeeded = %d, must be %d", r.ShardsSucceeded, r.shards)},
		{r.Failovers >= 2, fmt.Sprintf("failovers = %d, must be at least 2", r.Failovers)},
		{r.Resumed >= 2, fmt.Sprintf("resumed = %d, must be at least 2", r.Resumed)},
		{r.StaleSink >= 1, fmt.Sprintf("stale_sink = %d, must be at least 1", r.StaleSink)},
		{r.StaleServer >= 1, fmt.Sprintf("stale_server = %d, must be at least 1", r.StaleServer)},
	} {
		if !c.ok {
			faults = append(faults, c.text)
		}
	}
	return faults
}

// countShards fills what the shards' attempts tell.
func (r *Result) countShards(shards []takt.ShardStatus) {
	r.shards = len(shards)
	for _, s := range shards {
		if s.State == "succeeded" {
			r.ShardsSucceeded++
		}
		for i, a := range s.Attempts {
			if i > 0 && s.Attempts[i-1].State == "lost" {
				r.Failovers++
			}
			if a.ResumedFrom > 0 {
				r.Resumed++
			}
		}
	}
}

// countAudit fills what the audit tells.
func (r *Result) countAudit(a *Audited) {
	r.Files, r.Missing, r.Duplicates = a.Files, a.Missing, a.Duplicates
	r.findings = append(r.findings, a.Findings...)
}

// seconds rounds to milliseconds.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
