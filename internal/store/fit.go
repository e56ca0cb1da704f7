package store

import (
	"encoding/json"
	"fmt"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// Rows are checked before they are written, but hands, other programs and damage change them as well. What cannot be
// used is read all the same and marked as unfit: the engine leaves it out with an alarm and goes on with the rest, and
// people see what is left of it.

// ReadDefinition completes the row of a job with what is stored as JSON, and marks one that cannot be used. (That a
// schedule parses is the engine's to see: it leaves out one schedule.)
func ReadDefinition(d *job.Definition, spec, labels, pause, deletion []byte) {
	for _, part := range []struct {
		name string
		text []byte
		into any
	}{{"labels", labels, &d.Labels}, {"pause", pause, &d.Pause}, {"deletion", deletion, &d.Deleted}} {
		if err := readSome(part.text, part.into); err != nil {
			d.Unfit = unreadable(part.name, err)
		}
	}
	if err := readSome(spec, &d.Spec); err != nil {
		d.Unfit, d.Spec = unreadable("spec", err), job.Spec{}
	}
	if n := d.Spec.Shards; n < 0 || n > job.MaxShards {
		d.Unfit = fmt.Sprintf("its stored spec has %d shards", n)
	}
}

// UnfitEntry is the kind of an inbox entry whose content cannot be read: none that the engine knows.
func UnfitEntry(k engine.EntryKind) engine.EntryKind { return "unreadable " + k }

// CheckExecution marks the row of an execution that cannot be used.
func CheckExecution(e *job.Execution) {
	switch {
	case !e.State.Known():
		e.Unfit = fmt.Sprintf("its stored state is %.40q", e.State)
	case e.ShardTotal < 0 || e.ShardTotal > job.MaxShards:
		e.Unfit = fmt.Sprintf("it has %d shards as it is stored", e.ShardTotal)
	}
	if len(e.Params) > 0 && !job.ValidJSON(e.Params) {
		e.Unfit, e.Params = unreadable("params", nil), nil
	}
}

// ReadShard completes the row of a shard with what is stored as JSON, and marks one that cannot be used.
func ReadShard(s *job.Shard, failure, attempts []byte) {
	if !s.State.Known() {
		s.Unfit = fmt.Sprintf("the stored state of shard %d is %.40q", s.Index, s.State)
	}
	for _, value := range []struct {
		name string
		raw  *json.RawMessage
	}{{"checkpoint", &s.Checkpoint}, {"result", &s.Result}} {
		if len(*value.raw) > 0 && !job.ValidJSON(*value.raw) {
			s.Unfit, *value.raw = unreadable(value.name, nil), nil
		}
	}
	if err := readSome(failure, &s.Error); err != nil {
		s.Unfit, s.Error = unreadable("error", err), nil
	}
	if len(attempts) > 0 {
		all, err := job.ReadAttempts(attempts, s.Worker)
		if s.Attempts = all; err != nil {
			s.Unfit, s.Attempts = unreadable("attempts", err), nil
		}
	}
}

// ReadSession completes the row of a session in the same way.
func ReadSession(s *job.Session, handlers, labels []byte) {
	if err := readSome(handlers, &s.Handlers); err != nil {
		s.Unfit, s.Handlers = unreadable("handlers", err), nil
	}
	if err := readSome(labels, &s.Labels); err != nil {
		s.Unfit, s.Labels = unreadable("labels", err), nil
	}
}

func readSome(text []byte, v any) error {
	if len(text) == 0 {
		return nil
	}
	return json.Unmarshal(text, v)
}

func unreadable(what string, err error) string {
	if err == nil {
		return "its stored " + what + " are no JSON"
	}
	return fmt.Sprintf("its stored %s cannot be read: %v", what, err)
}
