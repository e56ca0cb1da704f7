package api

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/taktsched/takt"
)

// answerText is an answer as encoding/json writes it, if it is one that comes for each execution and holds nothing that is rare;
// false: encoding/json must write it.
func answerText(v any) ([]byte, bool) {
	var p printer
	switch v := v.(type) {
	case *takt.PollResponse:
		p.polled(v)
	case *takt.ReportResponse:
		p.reported(v)
	case *takt.TriggeredMany:
		p.triggered(v)
	default:
		return nil, false
	}
	return p.b, !p.bad
}

// printer writes JSON of plain texts.
type printer struct {
	b   []byte
	bad bool // something is not plain
}

func (p *printer) raw(text string) { p.b = append(p.b, text...) }

func (p *printer) number(name string, n int64) {
	p.raw(name)
	p.b = strconv.AppendInt(p.b, n, 10)
}

func (p *printer) text(name, text string) {
	p.raw(name)
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			p.bad = true
			return
		}
	}
	p.b = append(append(append(p.b, '"'), text...), '"')
}

// value is JSON that is known to be well formed: the server took it in, and the store has looked at it. nil: none.
func (p *printer) value(name string, v json.RawMessage) {
	if len(v) == 0 {
		return
	}
	p.bad = p.bad || bytes.ContainsAny(v, " \t\r\n") // encoding/json leaves some of these out
	p.raw(name)
	p.b = append(p.b, v...)
}

func (p *printer) instant(name string, t time.Time) {
	p.raw(name)
	if y := t.Year(); y < 0 || y > 9999 || t.Location() != time.UTC {
		p.bad = true
		return
	}
	p.b = append(t.AppendFormat(append(p.b, '"'), time.RFC3339Nano), '"')
}

func (p *printer) polled(v *takt.PollResponse) {
	p.bad = len(v.Cancels) > 0 || v.Superseded
	size := 64
	for i := range v.Assignments {
		a := &v.Assignments[i]
		size += 320 + len(a.Namespace) + len(a.Job) + len(a.Execution) + len(a.Handler) + len(a.Params) + len(a.Checkpoint) + len(a.Key)
	}
	p.b = slices.Grow(p.b, size)
	p.number(`{"epoch":`, v.Epoch)
	for i := range v.Assignments {
		if i == 0 {
			p.raw(`,"assignments":[`)
		} else {
			p.raw(`,`)
		}
		if p.assignment(&v.Assignments[i]); p.bad {
			return
		}
	}
	if len(v.Assignments) > 0 {
		p.raw(`]`)
	}
	p.raw("}\n")
}

func (p *printer) assignment(a *takt.Assignment) {
	p.bad = p.bad || len(a.Parents) > 0
	p.text(`{"namespace":`, a.Namespace)
	p.text(`,"job":`, a.Job)
	p.number(`,"revision":`, a.Revision)
	p.text(`,"execution":`, a.Execution)
	p.text(`,"handler":`, a.Handler)
	p.instant(`,"plannedAt":`, a.PlannedAt)
	p.number(`,"shard":`, int64(a.Shard))
	p.number(`,"shardTotal":`, int64(a.ShardTotal))
	p.number(`,"attempt":`, int64(a.Attempt))
	p.number(`,"token":`, a.Token)
	p.number(`,"leaseCall":`, a.LeaseCall)
	if a.TimeoutMs != 0 {
		p.number(`,"timeoutMs":`, a.TimeoutMs)
	}
	p.value(`,"params":`, a.Params)
	p.value(`,"checkpoint":`, a.Checkpoint)
	if a.CheckpointSeq != 0 {
		p.number(`,"checkpointSeq":`, a.CheckpointSeq)
	}
	p.text(`,"key":`, a.Key)
	p.raw(`}`)
}

func (p *printer) reported(v *takt.ReportResponse) {
	p.bad = v.Items == nil
	p.number(`{"epoch":`, v.Epoch)
	p.raw(`,"items":[`)
	for i, fate := range v.Items {
		if i > 0 {
			p.raw(`,`)
		}
		p.text(``, fate)
	}
	p.raw("]}\n")
}

func (p *printer) triggered(v *takt.TriggeredMany) {
	p.bad = v.Items == nil
	p.b = slices.Grow(p.b, 32+112*len(v.Items))
	p.raw(`{"items":[`)
	for i := range v.Items {
		it := &v.Items[i]
		if i > 0 {
			p.raw(`,`)
		}
		p.text(`{"execution":`, it.Execution)
		if it.Repeated {
			p.raw(`,"repeated":true`)
		}
		if it.PlannedAt != nil {
			p.instant(`,"plannedAt":`, *it.PlannedAt)
		}
		if it.Past {
			p.raw(`,"past":true`)
		}
		p.raw(`}`)
	}
	p.text(`],"effect":`, v.Effect)
	p.raw("}\n")
}
