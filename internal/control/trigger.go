package control

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

// TriggerRequest asks for an execution of a job: now, or at a later instant.
type TriggerRequest struct {
	Namespace string
	Job       string
	Params    json.RawMessage // laid over the job's own; nil or null: nothing
	Key       string          // idempotency key, ≤ MaxRequestKey visible ASCII characters; "": none
	When      When
}

// Triggered is the answer to a TriggerRequest.
type Triggered struct {
	Execution job.ExecutionID
	Repeated  bool // the key was known: Execution is the one it made
	Effect    Effect
	PlannedAt job.Instant // 0: not known
	Past      bool        // the instant that was asked for has passed
}

// Trigger asks for one execution. The same key with the same params and instant leads to the same execution
// until 24 hours behind that. Errors: KindNotFound ("execution_gone": the key's execution was deleted since), KindInvalid, KindTooLarge, KindConflict "idempotency_key_reused" (same
// key, other params), and the store's; after KindUnknown or KindUnavailable, ask again with the key.
func (c *Control) Trigger(ctx context.Context, r TriggerRequest) (Triggered, error) {
	if err := r.check(); err != nil {
		return Triggered{}, err
	}
	ids, err := c.requestedIDs(1)
	if err != nil {
		return Triggered{}, err
	}
	due, err := r.When.due(ids[0].PlannedAt())
	if err != nil {
		return Triggered{}, err
	}
	made, err := c.triggers(ctx, []store.Trigger{c.asTrigger(&r, ids[0], due)})
	if set, ok := errors.AsType[*job.SetError](err); ok {
		return Triggered{}, set.Items[0].Err
	}
	if err != nil {
		return Triggered{}, err
	}
	t := made[0]
	if t.Repeated {
		return c.repeated(ctx, r.Namespace, t)
	}
	return Triggered{Execution: t.Execution, Effect: c.awaited(ctx, t.Written), PlannedAt: due.at, Past: due.past}, nil
}

// MaxTriggers bounds one call of TriggerMany.
const MaxTriggers = store.MaxTriggers

// TriggerMany asks for an execution for each request, all of them or none, in their order: of two that wait, the one
// asked for first goes first. The effect is of all together. Errors are those of Trigger, with the field of the
// first request that is refused, such as items[3].params.
func (c *Control) TriggerMany(ctx context.Context, all []TriggerRequest) ([]Triggered, Effect, error) {
	if len(all) > MaxTriggers {
		return nil, "", job.Errorf(job.KindTooLarge, "too_many_items", "%d items, at most %d are taken", len(all), MaxTriggers).
			WithField("items").WithHint("send several requests")
	}
	ids, err := c.requestedIDs(len(all))
	if err != nil {
		return nil, "", err
	}
	asked, dues := make([]store.Trigger, len(all)), make([]due, len(all))
	for i := range all {
		err := all[i].check()
		if err == nil {
			dues[i], err = all[i].When.due(ids[i].PlannedAt())
		}
		if err != nil {
			return nil, "", ofItem(i, err)
		}
		asked[i] = c.asTrigger(&all[i], ids[i], dues[i])
	}
	made, err := c.triggers(ctx, asked)
	if set, ok := errors.AsType[*job.SetError](err); ok {
		return nil, "", ofItem(set.Items[0].Index, set.Items[0].Err)
	}
	if err != nil {
		return nil, "", err
	}
	out := make([]Triggered, len(made))
	for i, t := range made {
		if out[i] = (Triggered{Execution: t.Execution, Repeated: t.Repeated}); !t.Repeated {
			out[i].PlannedAt, out[i].Past = dues[i].at, dues[i].past
		}
	}
	return out, c.effectOfAll(ctx, made), nil
}

// deskItems is how many triggers of one call are written along with those of others.
const deskItems = 64

func newTriggerDesk() *desk[store.Trigger, store.Triggered] {
	return &desk[store.Trigger, store.Triggered]{most: store.BulkItems, bytes: 1 << 20, timeout: 15 * time.Second, gather: 2 * time.Millisecond,
		size: func(t *store.Trigger) int { return len(t.Request.Params) },
		alone: func(err error) bool {
			_, refused := errors.AsType[*job.SetError](err)
			return refused || job.KindOf(err) == job.KindRejected // by the database, which does not say whose
		}}
}

// triggers writes requests, all or none. A few of one job go in one transaction with what others ask of it at the same time: each
// would wait for the same disk, and for locks of the same row.
func (c *Control) triggers(ctx context.Context, all []store.Trigger) ([]store.Triggered, error) {
	if len(all) == 0 || len(all) > deskItems ||
		slices.ContainsFunc(all, func(t store.Trigger) bool { return t.Namespace != all[0].Namespace || t.Job != all[0].Job }) {
		return c.writeTriggers(ctx, all)
	}
	name := all[0].Namespace + "/" + all[0].Job
	return c.triggering.put(ctx, name, all, func(ctx context.Context, all []store.Trigger) ([]store.Triggered, error) {
		defer c.expect(name)()
		made, err := c.writeTriggers(ctx, all)
		if err == nil {
			c.places.put(name, made[0].Partition)
		}
		return made, err
	})
}

// expect tells the owner of a job that something is coming, as far as it is known who that is.
func (c *Control) expect(name string) (done func()) {
	if p, known := c.places.of(name); known {
		return c.owners.Expect(p)
	}
	return func() {}
}

// writeTriggers writes requests, and tells their owners.
func (c *Control) writeTriggers(ctx context.Context, all []store.Trigger) ([]store.Triggered, error) {
	pages := map[int]engine.InboxPage{}
	told := func(p int, seq int64, e *engine.Entry) {
		pages[p] = engine.InboxPage{Seq: seq, Entries: append(pages[p].Entries, *e)}
	}
	for i := range all {
		all[i].Told = told
	}
	made, err := c.write.Triggers(ctx, all, c.partitionOf)
	if err != nil {
		return nil, err
	}
	written := map[int]int{}
	for i := range made {
		if made[i].Entry != 0 {
			written[made[i].Partition]++
		}
	}
	for _, p := range slices.Sorted(maps.Keys(written)) {
		if page := pages[p]; len(page.Entries) == written[p] {
			c.owners.Hand(p, page)
		} else { // the owner is to read them, in their order
			c.owners.Wake(p)
		}
	}
	return made, nil
}

// effectOfAll is effect for several entries at once. What a repeated request made is not waited for, unless its
// entry still waits.
func (c *Control) effectOfAll(ctx context.Context, made []store.Triggered) Effect {
	ctx, cancel := context.WithTimeout(ctx, c.effectWait)
	defer cancel()
	for _, t := range slices.Backward(made) { // entries are taken in order: the last one is the one to wait for
		if t.Entry != 0 && !c.owners.AwaitEntry(ctx, t.Partition, t.Entry) {
			return Pending
		}
	}
	return Effective
}

// requestedIDs draws n ids of executions that are asked for now, in rising order.
func (c *Control) requestedIDs(n int) ([]job.ExecutionID, error) {
	random := make([]byte, 10*n)
	if err := c.draw(random); err != nil {
		return nil, err
	}
	at, ids := c.instant(), make([]job.ExecutionID, n)
	for i := range ids {
		ids[i] = job.RequestedID(at, [10]byte(random[10*i:]))
	}
	slices.SortFunc(ids, func(a, b job.ExecutionID) int { return bytes.Compare(a[:], b[:]) })
	return ids, nil
}

func (c *Control) partitionOf(d job.Definition) int {
	return partition.Of(d.Namespace, d.Spec.Pool, c.owners.Count())
}

func (r *TriggerRequest) check() error {
	if err := checkNewKey(r.Key); err != nil {
		return err
	}
	if len(r.Params) == 0 || isNull(r.Params) {
		r.Params = nil
	}
	if len(r.Params) > MaxParams {
		return paramsTooLarge(len(r.Params))
	}
	if e := job.CheckMasked("params", r.Params); e != nil {
		return e
	}
	return nil
}

// asTrigger is the request as the store takes it.
func (c *Control) asTrigger(r *TriggerRequest, id job.ExecutionID, d due) store.Trigger {
	if d.delayed {
		id = job.RequestedID(d.at, [10]byte(id[6:]))
	}
	t := store.Trigger{Namespace: r.Namespace, Job: r.Job, Execution: id, Bulk: c.level == nil || c.level() >= engine.LevelRows,
		Request: engine.Request{At: d.at, Delayed: d.delayed, Key: r.Key, Params: r.Params},
		Merge: func(d job.Definition) (json.RawMessage, error) {
			if d.Unfit != "" {
				return nil, job.Errorf(job.KindConflict, "job_unfit", "the job %q cannot be used: %s", d.Name, d.Unfit).
					WithHint("apply the job again")
			}
			return merged(d.Spec.Params, r.Params)
		}}
	if r.Key != "" {
		t.Key = store.RequestKey{Namespace: r.Namespace, Operation: triggerOperation(r.Job), Key: r.Key, Hash: hashOf(r.Params, r.When.String())}
	}
	return t
}

// ofItem puts the place in a list in front of an error's field.
func ofItem(i int, err error) error {
	e, ok := errors.AsType[*job.Error](err)
	if !ok {
		return err
	}
	field := fmt.Sprintf("items[%d]", i)
	switch {
	case e.Field == "header.Idempotency-Key" || e.Code == "idempotency_key_reused":
		field += ".key"
	case e.Code == "job_not_found":
		field += ".job"
	case e.Field != "":
		field += "." + e.Field
	}
	return e.WithField(field)
}

// repeated tells of an execution that was asked for before whether its owner has taken it in. A key may outlive what it
// made, in a namespace that keeps executions for less than a day: that is told, and nothing runs again.
func (c *Control) repeated(ctx context.Context, namespace string, t store.Triggered) (Triggered, error) {
	out := Triggered{Execution: t.Execution, Repeated: true, Effect: Pending} // when it cannot be read, too: it is stored
	e, err := c.read.Execution(ctx, namespace, t.Execution)
	switch {
	case job.KindOf(err) == job.KindNotFound:
		out.Effect = ""
		return out, job.Errorf(job.KindNotFound, "execution_gone", "the request with this key made execution %s, which has ended and was deleted since", t.Execution).
			WithHint("it was carried out and is not repeated; a new request takes a new key")
	case err == nil:
		out.PlannedAt = e.PlannedAt
		if e.State != job.ExecutionScheduled || t.Entry == 0 {
			out.Effect = Effective
		}
	}
	return out, nil
}

// hashOf is the hash of what was asked for. It leaves the job's own params out: an edit between two tries
// of one request does not make it another request.
func hashOf(params json.RawMessage, when string) string {
	of := canonical(params)
	if when != "" {
		of = append(append(slices.Clone(of), 0), when...)
	}
	sum := sha256.Sum256(of)
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

// Overlay lays over on base: when both are objects, key by key (not deeper); when neither is one, over replaces base.
// One object alone is refused: what becomes of the other value would be a guess.
func Overlay(base, over json.RawMessage) (json.RawMessage, error) {
	if over == nil {
		return base, nil
	}
	if base == nil {
		return over, nil
	}
	b, o := object(base), object(over)
	switch {
	case len(base) == 0 || isNull(base) || b == nil && o == nil:
		return over, nil
	case b == nil || o == nil:
		return nil, job.Errorf(job.KindInvalid, "params_mismatch", "the job's own params are %s, these are %s: they cannot be laid over each other",
			objectOr(b), objectOr(o)).WithField("params").WithHint("send the same kind of value; an object is laid over an object key by key, any other value is taken instead of the job's own")
	}
	maps.Copy(b, o)
	merged, err := json.Marshal(b)
	if err != nil {
		return nil, job.Errorf(job.KindInvalid, "malformed_json", "params are no JSON").WithField("params").WithCause(err)
	}
	return merged, nil
}

func objectOr(v map[string]json.RawMessage) string {
	if v == nil {
		return "no object"
	}
	return "an object"
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

// checkNewKey also refuses what cannot be asked for by its address: a path loses such a part on its way.
func checkNewKey(key string) error {
	if key == "." || key == ".." {
		return job.Errorf(job.KindInvalid, "bad_idempotency_key", "the idempotency key %q cannot stand in the path of a URL", key).
			WithField("header.Idempotency-Key").WithHint("put something before it, such as order-%s", key)
	}
	return checkKey(key)
}

// triggerOperation names the operation whose request keys belong to a job.
func triggerOperation(name string) string { return store.TriggerOperation(name) }
