package engine

import (
	"strconv"

	"github.com/taktsched/takt/internal/job"
)

// AppendFacts writes facts as encoding/json does, without its HTML escapes and at a fraction of its cost: they are
// most of what a commit writes as JSON.
func AppendFacts(b []byte, facts []Fact) []byte {
	b = append(b, '[')
	for i := range facts {
		if i > 0 {
			b = append(b, ',')
		}
		b = facts[i].append(b)
	}
	return append(b, ']')
}

func (f *Fact) append(b []byte) []byte {
	b = job.AppendText(append(b, `{"kind":`...), string(f.Kind))
	text := func(name, v string) {
		if v != "" {
			b = job.AppendText(append(append(append(b, `,"`...), name...), `":`...), v)
		}
	}
	number := func(name string, v int64) {
		if v != 0 {
			b = strconv.AppendInt(append(append(append(b, `,"`...), name...), `":`...), v, 10)
		}
	}
	text("job", f.Job)
	if !f.Execution.IsZero() {
		b = append(append(append(b, `,"exec":"`...), f.Execution.String()...), '"')
	}
	number("shard", int64(f.Shard))
	number("token", int64(f.Token))
	number("attempt", int64(f.Attempt))
	text("session", string(f.Session))
	text("worker", f.Worker)
	text("from", f.From)
	text("to", f.To)
	text("reason", string(f.Reason))
	number("planned", int64(f.PlannedAt))
	number("until", int64(f.Until))
	number("count", f.Count)
	number("ckpt", f.Checkpoint)
	number("call", f.Call)
	text("note", f.Note)
	return append(b, '}')
}
