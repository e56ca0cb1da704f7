package api

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// Bounds of workers' calls. Texts that inform only (a note, a failure's message) are cut, for a refused
// report would be sent again for ever; everything else is refused.
const (
	maxNumber    = 1<<53 - 1 // tokens, epochs and call numbers: what JSON carries without loss
	maxHeld      = 10_000
	maxShards    = 1 << 20
	maxSlots     = 10_000
	maxHandlers  = 1_000
	maxLabels    = 32
	maxText      = 256
	maxNote      = 256      // bytes of a progress note
	maxClass     = 128      // bytes of a failure's class
	maxMessage   = 16 << 10 // bytes of a failure's message
	maxEpochLead = 366 * 24 * time.Hour
	maxRetryWait = 3660 * 24 * time.Hour
)

var (
	wireHandler     = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,128}$`)
	wireIncarnation = regexp.MustCompile(`^[!-~]{1,128}$`)
)

// checks gathers the first fault of a call. While it looks at an item of a list, fields are within it.
type checks struct {
	err  *job.Error
	list string // "" outside of lists
	item int
}

// path is the whole path of a field. It is made for faults only: a good report makes no text.
func (c *checks) path(field string) string {
	switch {
	case c.list == "":
		return field
	case field == "":
		return fmt.Sprintf("%s[%d]", c.list, c.item)
	}
	return fmt.Sprintf("%s[%d].%s", c.list, c.item, field)
}

func (c *checks) that(ok bool, field, format string, args ...any) {
	if !ok && c.err == nil {
		c.err = job.Errorf(job.KindInvalid, "invalid_field", format, args...).WithField(c.path(field)).
			WithHint("see the worker protocol in /api/v1/openapi.json")
	}
}

func (c *checks) number(n int64, field string) {
	c.that(n >= 0 && n <= maxNumber, field, "expected a number from 0 to 2^53-1")
}

func (c *checks) token(n int64, field string) {
	c.that(n > 0 && n <= maxNumber, field, "expected a token: a number from 1 to 2^53-1")
}

func (c *checks) size(v json.RawMessage, limit int, field, code string) {
	if len(v) > limit && c.err == nil {
		c.err = job.Errorf(job.KindTooLarge, code, "the value has %d bytes, at most %d are taken", len(v), limit).WithField(c.path(field)).
			WithHint("keep large values in your own storage and pass a reference")
	}
}

func (c *checks) progress(p *takt.Progress, field string) {
	if p != nil {
		c.that(p.Done >= 0 && p.Total >= 0, field, "expected numbers of at least 0")
	}
}

// done is the fault as an error, nil when there is none.
func (c *checks) done() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

func printable(s string, limit int) bool {
	if len(s) > limit {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

func checkOpen(r *takt.OpenRequest) error {
	var c checks
	c.that(job.ValidName(r.Namespace), "namespace", "expected a name: 1 to 63 lower-case letters, digits, '.' and '-'")
	c.that(job.ValidName(r.Pool), "pool", "expected a name: 1 to 63 lower-case letters, digits, '.' and '-'")
	c.that(r.Worker != "" && printable(r.Worker, maxText), "worker", "expected 1 to %d printable bytes", maxText)
	c.that(wireIncarnation.MatchString(r.Incarnation), "incarnation", "expected 1 to 128 visible ASCII characters")
	c.that(len(r.Handlers) > 0 && len(r.Handlers) <= maxHandlers, "handlers", "expected 1 to %d handlers", maxHandlers)
	c.list = "handlers"
	for i, h := range r.Handlers {
		c.item = i
		c.that(wireHandler.MatchString(h), "", "expected a handler's name: 1 to 128 of A-Z a-z 0-9 _ . : / -")
	}
	c.list = ""
	c.that(r.Slots >= 1 && r.Slots <= maxSlots, "slots", "expected 1 to %d", maxSlots)
	c.that(len(r.Labels) <= maxLabels, "labels", "expected at most %d", maxLabels)
	for k, v := range r.Labels {
		c.that(k != "" && printable(k, 64) && printable(v, maxText), "labels", "expected names of 1 to 64 and values of at most %d printable bytes", maxText)
	}
	c.that(printable(r.Build, maxText), "build", "expected at most %d printable bytes", maxText)
	c.number(r.Call, "call")
	c.number(r.Epoch, "epoch")
	return c.done()
}

func checkPoll(r *takt.PollRequest) error {
	var c checks
	c.number(r.Call, "call")
	c.number(r.Epoch, "epoch")
	c.number(r.Number, "number")
	c.that(r.Free >= 0 && r.Free <= maxSlots, "free", "expected 0 to %d", maxSlots)
	c.that(r.WaitMs >= 0, "waitMs", "expected a number of at least 0")
	c.that(len(r.Held) <= maxHeld, "held", "expected at most %d", maxHeld)
	c.list = "held"
	for i, t := range r.Held {
		c.item = i
		c.token(t, "")
	}
	return c.done()
}

func checkBeat(r *takt.HeartbeatRequest) error {
	var c checks
	c.number(r.Call, "call")
	c.number(r.Epoch, "epoch")
	c.that(len(r.Held) <= maxHeld, "held", "expected at most %d", maxHeld)
	c.list = "held"
	for i := range r.Held {
		c.item = i
		c.token(r.Held[i].Token, "token")
		c.progress(r.Held[i].Progress, "progress")
	}
	return c.done()
}

// toItems checks and converts the items of a report.
func (l Limits) toItems(in []takt.ReportItem) ([]engine.ReportItem, error) {
	if len(in) > l.Items {
		return nil, job.Errorf(job.KindTooLarge, "too_many_items", "the report has %d items, at most %d are taken", len(in), l.Items).
			WithField("items").WithHint("send several reports")
	}
	out := make([]engine.ReportItem, len(in))
	c := checks{list: "items"}
	for i := range in {
		c.item = i
		id, err := job.ParseExecutionID(in[i].Execution)
		c.that(err == nil, "execution", "expected an execution id")
		l.checkItem(&c, &in[i])
		if c.err != nil {
			return nil, c.err
		}
		out[i] = toItem(id, &in[i])
	}
	return out, nil
}

func (l Limits) checkItem(c *checks, it *takt.ReportItem) {
	c.that(it.Shard >= 0 && it.Shard < 1<<20, "shard", "expected a shard's index")
	c.token(it.Token, "token")
	c.that(it.Seq >= 1 && it.Seq <= maxNumber, "seq", "expected a number from 1 to 2^53-1")
	switch engine.ItemKind(it.Kind) {
	case engine.ItemStarted:
	case engine.ItemProgress:
		c.that(it.Progress != nil, "progress", "an item of kind progress needs it")
	case engine.ItemCheckpoint:
		c.that(len(it.Checkpoint) > 0, "checkpoint", "an item of kind checkpoint needs it")
		c.size(it.Checkpoint, l.Checkpoint, "checkpoint", "checkpoint_too_large")
	case engine.ItemDone:
		c.that(knownOutcome(it.Outcome), "outcome", "expected success, error, fatal, snooze, cancelled, released or lease_lost")
		c.size(it.Result, l.Result, "result", "result_too_large")
		c.that(it.RetryAfterMs >= 0 && it.RetryAfterMs <= maxRetryWait.Milliseconds(), "retryAfterMs", "expected 0 to ten years")
	default:
		c.that(false, "kind", "expected started, progress, checkpoint or done")
	}
	c.progress(it.Progress, "progress")
}

func knownOutcome(o string) bool {
	switch engine.Outcome(o) {
	case engine.OutcomeSuccess, engine.OutcomeError, engine.OutcomeFatal, engine.OutcomeSnooze, engine.OutcomeCancelled,
		engine.OutcomeReleased, engine.OutcomeLeaseLost:
		return true
	}
	return false
}

// toItem takes over what belongs to the item's kind.
func toItem(id job.ExecutionID, it *takt.ReportItem) engine.ReportItem {
	out := engine.ReportItem{Execution: id, Shard: it.Shard, Token: job.Token(it.Token), Seq: it.Seq, Kind: engine.ItemKind(it.Kind)}
	switch out.Kind {
	case engine.ItemProgress:
		out.Progress = *toProgress(it.Progress)
	case engine.ItemCheckpoint:
		out.Checkpoint = it.Checkpoint
	case engine.ItemDone:
		out.Outcome, out.Result = engine.Outcome(it.Outcome), it.Result
		out.RetryAfter = time.Duration(it.RetryAfterMs) * time.Millisecond
		if it.Error != nil {
			out.Failure = &job.Failure{Class: cut(it.Error.Class, maxClass), Message: cut(it.Error.Message, maxMessage)}
		}
	}
	return out
}

// cut shortens a text to limit bytes, between characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const more = "…"
	end := limit - len(more)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + more
}
