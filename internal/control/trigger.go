package control

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

// TriggerRequest asks for an execution of a job now.
type TriggerRequest struct {
	Namespace string
	Job       string
	Params    json.RawMessage // laid over the job's own; nil or null: nothing
	Key       string          // idempotency key, ≤ MaxRequestKey visible ASCII characters; "": none
}

// Triggered is the answer to a TriggerRequest.
type Triggered struct {
	Execution job.ExecutionID
	Repeated  bool // the key was known: Execution is the one it made
	Effect    Effect
}

// Trigger asks for one execution. The same key with the same params leads to the same execution for 24
// hours. Errors: KindNotFound, KindInvalid, KindTooLarge, KindConflict "idempotency_key_reused" (same
// key, other params), and the store's; after KindUnknown or KindUnavailable, ask again with the key.
func (c *Control) Trigger(ctx context.Context, r TriggerRequest) (Triggered, error) {
	if err := checkKey(r.Key); err != nil {
		return Triggered{}, err
	}
	if isNull(r.Params) {
		r.Params = nil
	}
	if len(r.Params) > MaxParams {
		return Triggered{}, paramsTooLarge(len(r.Params))
	}
	var random [10]byte
	if err := c.draw(random[:]); err != nil {
		return Triggered{}, err
	}
	at, n := c.instant(), c.owners.Count()
	t, err := c.write.Trigger(ctx, store.Trigger{
		Namespace: r.Namespace,
		Job:       r.Job,
		Execution: job.RequestedID(at, random),
		Request:   engine.Request{At: at, Key: r.Key, Params: r.Params},
		Key:       store.RequestKey{Namespace: r.Namespace, Operation: triggerOperation(r.Job), Key: r.Key, Hash: hashOf(r.Params)},
		Merge:     func(d job.Definition) (json.RawMessage, error) { return merged(d.Spec.Params, r.Params) },
	}, func(d job.Definition) int { return partition.Of(d.Namespace, d.Spec.Pool, n) })
	if err != nil {
		return Triggered{}, err
	}
	if t.Repeated {
		return Triggered{Execution: t.Execution, Repeated: true, Effect: c.effectOf(ctx, r.Namespace, t.Execution)}, nil
	}
	return Triggered{Execution: t.Execution, Effect: c.effect(ctx, t.Written)}, nil
}

// effectOf tells of an execution that was asked for before whether its owner has taken it in.
func (c *Control) effectOf(ctx context.Context, namespace string, id job.ExecutionID) Effect {
	e, err := c.read.Execution(ctx, namespace, id)
	if err != nil || e.State == job.ExecutionScheduled {
		return Pending
	}
	return Effective
}

// hashOf is the hash of what was asked for. It leaves the job's own params out: an edit between two tries
// of one request does not make it another request.
func hashOf(params json.RawMessage) string {
	sum := sha256.Sum256(canonical(params))
	return hex.EncodeToString(sum[:])
}

// merged gives the params that an execution starts with; nil: those of the job.
func merged(base, over json.RawMessage) (json.RawMessage, error) {
	if over == nil {
		return nil, nil
	}
	params, err := Overlay(base, over)
	if err != nil {
		return nil, err
	}
	if len(params) > MaxParams {
		return nil, paramsTooLarge(len(params))
	}
	return params, nil
}

// Overlay lays over on base: when both are objects, key by key (not deeper), else over replaces base.
func Overlay(base, over json.RawMessage) (json.RawMessage, error) {
	if over == nil {
		return base, nil
	}
	b, o := object(base), object(over)
	if b == nil || o == nil {
		return over, nil
	}
	maps.Copy(b, o)
	merged, err := json.Marshal(b)
	if err != nil {
		return nil, job.Errorf(job.KindInvalid, "malformed_json", "params are no JSON").WithField("params").WithCause(err)
	}
	return merged, nil
}

// object is v's members; nil when v is no object.
func object(v json.RawMessage) (m map[string]json.RawMessage) {
	if json.Unmarshal(v, &m) != nil {
		return nil
	}
	return m
}

// canonical is v without insignificant space and with its keys in order, so that a client that prints
// the same request differently is understood; v itself when it is no JSON.
func canonical(v json.RawMessage) []byte {
	if v == nil {
		return nil
	}
	var x any
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	if d.Decode(&x) != nil {
		return v
	}
	out, err := json.Marshal(x)
	if err != nil {
		return v
	}
	return out
}

func paramsTooLarge(size int) error {
	return job.Errorf(job.KindTooLarge, "params_too_large", "params have %d bytes, at most %d are taken", size, MaxParams).
		WithField("params").WithHint("keep large inputs in your own storage and pass a reference")
}

func isNull(v json.RawMessage) bool { return string(bytes.TrimSpace(v)) == "null" }

func checkKey(key string) error {
	bad := len(key) > MaxRequestKey
	for i := range len(key) {
		bad = bad || key[i] < '!' || key[i] > '~'
	}
	if !bad {
		return nil
	}
	return job.Errorf(job.KindInvalid, "bad_idempotency_key", "this is no idempotency key").WithField("header.Idempotency-Key").
		WithHint("a key is 1 to %d visible ASCII characters without space; take the business key of the request", MaxRequestKey)
}

// triggerOperation names the operation whose request keys belong to a job.
func triggerOperation(name string) string { return "trigger/" + name }
