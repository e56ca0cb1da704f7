package job

import (
	"encoding/json"
	"strconv"
)

// packedShard is what AppendShard writes. Execution, Index and State stand beside it, in columns of their own.
type packedShard struct {
	Reason        Reason          `json:"reason,omitempty"`
	Token         Token           `json:"token,omitempty"`
	Session       SessionID       `json:"session,omitempty"`
	Worker        string          `json:"worker,omitempty"`
	Closed        bool            `json:"closed,omitempty"`
	Confirmed     bool            `json:"confirmed,omitempty"`
	Attempt       int             `json:"attempt,omitempty"`
	Faults        int             `json:"faults,omitempty"`
	Losses        int             `json:"losses,omitempty"`
	LeasedAt      Instant         `json:"leasedAt,omitempty"`
	StartedAt     Instant         `json:"startedAt,omitempty"`
	EndedAt       Instant         `json:"endedAt,omitempty"`
	TimeoutAt     Instant         `json:"timeoutAt,omitempty"`
	RetryAt       Instant         `json:"retryAt,omitempty"`
	StopBy        Instant         `json:"stopBy,omitempty"`
	ReportSeq     int64           `json:"reportSeq,omitempty"`
	CheckpointSeq int64           `json:"checkpointSeq,omitempty"`
	Done          int64           `json:"done,omitempty"`
	Total         int64           `json:"total,omitempty"`
	Note          string          `json:"note,omitempty"`
	Checkpoint    json.RawMessage `json:"checkpoint,omitempty"`
	Result        json.RawMessage `json:"result,omitempty"`
	Error         *Failure        `json:"error,omitempty"`
	Attempts      []Attempt       `json:"attempts,omitempty"`
}

// AppendShard writes a shard as one JSON object, without what is zero. Checkpoint and Result must be JSON: they are written as they are.
func AppendShard(b []byte, s *Shard) []byte {
	o := object{b: b}
	o.text("reason", string(s.Reason))
	o.number("token", int64(s.Token))
	o.text("session", string(s.Session))
	o.text("worker", s.Worker)
	o.flag("closed", s.Closed)
	o.flag("confirmed", s.Confirmed)
	o.number("attempt", int64(s.Attempt))
	o.number("faults", int64(s.Faults))
	o.number("losses", int64(s.Losses))
	o.number("leasedAt", int64(s.LeasedAt))
	o.number("startedAt", int64(s.StartedAt))
	o.number("endedAt", int64(s.EndedAt))
	o.number("timeoutAt", int64(s.TimeoutAt))
	o.number("retryAt", int64(s.RetryAt))
	o.number("stopBy", int64(s.StopBy))
	o.number("reportSeq", s.ReportSeq)
	o.number("checkpointSeq", s.CheckpointSeq)
	o.number("done", s.Progress.Done)
	o.number("total", s.Progress.Total)
	o.text("note", s.Progress.Note)
	if len(s.Checkpoint) > 0 {
		o.b = append(o.key("checkpoint"), s.Checkpoint...)
	}
	if len(s.Result) > 0 {
		o.b = append(o.key("result"), s.Result...)
	}
	if s.Error != nil {
		o.b = s.Error.append(o.key("error"))
	}
	if len(s.Attempts) > 0 {
		o.b = AppendAttempts(o.key("attempts"), s.Attempts)
	}
	if !o.some {
		o.b = append(o.b, '{')
	}
	return append(o.b, '}')
}

// ReadShard reads what AppendShard wrote into s, and leaves Execution, Index and State alone.
func ReadShard(text []byte, s *Shard) error {
	fast := scan{b: text}
	p := fast.shard()
	if !fast.done() {
		p = packedShard{}
		if err := json.Unmarshal(text, &p); err != nil {
			return err
		}
	}
	s.Reason, s.Token, s.Session, s.Worker, s.Closed, s.Confirmed = p.Reason, p.Token, p.Session, p.Worker, p.Closed, p.Confirmed
	s.Attempt, s.Faults, s.Losses = p.Attempt, p.Faults, p.Losses
	s.LeasedAt, s.StartedAt, s.EndedAt, s.TimeoutAt, s.RetryAt, s.StopBy = p.LeasedAt, p.StartedAt, p.EndedAt, p.TimeoutAt, p.RetryAt, p.StopBy
	s.ReportSeq, s.CheckpointSeq, s.Progress = p.ReportSeq, p.CheckpointSeq, Progress{Done: p.Done, Total: p.Total, Note: p.Note}
	s.Checkpoint, s.Result, s.Error, s.Attempts = p.Checkpoint, p.Result, p.Error, p.Attempts
	return nil
}

// object writes the members of a JSON object that are not zero.
type object struct {
	b    []byte
	some bool
}

func (o *object) key(name string) []byte {
	o.b = append(o.b, "{,"[flagged(o.some)], '"')
	o.some = true
	return append(append(o.b, name...), '"', ':')
}

func flagged(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (o *object) text(name, s string) {
	if s != "" {
		o.b = AppendText(o.key(name), s)
	}
}

func (o *object) number(name string, n int64) {
	if n != 0 {
		o.b = strconv.AppendInt(o.key(name), n, 10)
	}
}

func (o *object) flag(name string, is bool) {
	if is {
		o.b = append(o.key(name), "true"...)
	}
}
