package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// TriggerOne is Control.Trigger by Control.Triggers.
func TriggerOne(ctx context.Context, s interface {
	Triggers(ctx context.Context, all []Trigger, partition func(job.Definition) int) ([]Triggered, error)
}, t Trigger, partition func(job.Definition) int) (Triggered, error) {
	out, err := s.Triggers(ctx, []Trigger{t}, partition)
	if set, ok := errors.AsType[*job.SetError](err); ok {
		return Triggered{}, set.Items[0].Err
	}
	if err != nil {
		return Triggered{}, err
	}
	return out[0], nil
}

// Tell calls Told of a trigger whose parameters were stored so, when all that its owner needs to know besides is the definition
// without calendars.
func Tell(t *Trigger, w Written, seq int64, d *job.Definition, params json.RawMessage) {
	if t.Told == nil || d.Unfit != "" || len(d.Spec.Calendars()) > 0 || d.Spec.Obeys(job.TriggerRequest) {
		return
	}
	if len(params) == 0 {
		params = nil
	}
	t.Told(w.Partition, seq, &engine.Entry{ID: w.Entry, Kind: t.Request.TriggerKind(), Job: d.UID, Execution: t.Execution, Definition: d,
		Request: &engine.Request{At: t.Request.At, Delayed: t.Request.Delayed, Key: t.Request.Key, Params: params}})
}

// Compact is what encoding/json makes of a value within another one.
func Compact(v json.RawMessage) json.RawMessage {
	if !bytes.ContainsAny(v, " \t\r\n") {
		return v
	}
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return v
	}
	return b.Bytes()
}
