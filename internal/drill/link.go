package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	takt "github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
)

// Fault is what the network does to one call.
type Fault string

// The faults. The zero value lets the call through.
const (
	RequestLost Fault = "request lost"    // the server never sees it; the caller waits in vain
	AnswerLost  Fault = "answer lost"     // the server acted; the caller waits in vain
	Doubled     Fault = "doubled"         // the server sees it twice, the second time after Verdict.Delay
	Late        Fault = "late beyond TTL" // the server sees it Verdict.Delay later; the caller has given up
	Slow        Fault = "slow"            // Verdict.Delay passes before the server sees it; the caller may still wait
)

// Call is a call as a rule sees it.
type Call struct {
	Worker string
	Name   string // open, poll, heartbeat, report, close; or the last element of another path
	N      int    // 1 for the first call of this name at this link
	Body   []byte
}

// Verdict is a rule's answer.
type Verdict struct {
	Fault Fault
	Delay time.Duration
}

// errGone is what a caller without a deadline of its own gets for a call that went nowhere.
var errGone = errors.New("connection timed out")

// goneAfter bounds the wait of a caller without a deadline.
const goneAfter = time.Minute

// Link is one worker's end of the network: an http.RoundTripper that delays every message by a time
// drawn from the seed, lets a rule spoil calls, can be cut and healed, and writes down what passes.
// The delay of a message is a function of (seed, worker, call name, number), so that it does not depend
// on the order in which goroutines run.
type Link struct {
	worker string
	seed   uint64
	base   http.RoundTripper
	tape   *Tape

	ctx  context.Context // of the copies sent in the background; ends with Close
	stop context.CancelFunc
	bg   sync.WaitGroup

	mu    sync.Mutex
	rule  func(Call) Verdict
	cut   bool
	ever  bool // it was cut once
	count map[string]int
}

// NewLink makes the link of a worker over base. Close must be called.
func NewLink(worker string, seed uint64, base http.RoundTripper, tape *Tape) *Link {
	ctx, stop := context.WithCancel(context.Background())
	return &Link{worker: worker, seed: seed, base: base, tape: tape, ctx: ctx, stop: stop, count: map[string]int{}}
}

// Rule installs the rule for calls from now on; nil for none.
func (l *Link) Rule(rule func(Call) Verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rule = rule
}

// Cut silences the link in both directions, without a word to either end.
func (l *Link) Cut() { l.setCut(true) }

// Heal ends a cut.
func (l *Link) Heal() { l.setCut(false) }

// Close cuts the link for good and ends what is under way on it, as the death of the process does.
func (l *Link) Close() {
	l.Cut()
	l.stop()
	l.bg.Wait()
}

func (l *Link) setCut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.ever = cut, l.ever || cut
}

// WasCut tells whether the link was ever cut.
func (l *Link) WasCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ever
}

func (l *Link) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

// RoundTrip carries one call.
func (l *Link) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	c, v := l.judge(path.Base(req.URL.Path), body)
	l.tape.sent(l.worker, c)
	ctx := req.Context()
	if v.Fault == Slow {
		if err := sleep(ctx, v.Delay); err != nil {
			return nil, err
		}
	}
	if err := sleep(ctx, l.latency(c, "request")); err != nil {
		return nil, err
	}
	switch {
	case l.isCut() || v.Fault == RequestLost:
		return nil, l.nowhere(ctx)
	case v.Fault == Late:
		l.later(req, body, v.Delay)
		return nil, l.nowhere(ctx)
	case v.Fault == Doubled:
		l.later(req, body, v.Delay)
	}
	resp, answer, err := l.send(ctx, req, body)
	if late := sleep(ctx, l.latency(c, "answer")); err != nil || late != nil { // a broken connection is news too
		return nil, errors.Join(err, late)
	}
	if l.isCut() || v.Fault == AnswerLost {
		return nil, l.nowhere(ctx)
	}
	l.tape.answered(l.worker, c, resp.StatusCode, answer)
	return resp, nil
}

func (l *Link) judge(name string, body []byte) (Call, Verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count[name]++
	c := Call{Worker: l.worker, Name: name, N: l.count[name], Body: body}
	if l.rule == nil {
		return c, Verdict{}
	}
	return c, l.rule(c)
}

// latency is 20 to 220 µs, by the seed.
func (l *Link) latency(c Call, direction string) time.Duration {
	return 20*time.Microsecond + time.Duration(Draw(l.seed, l.worker, c.Name, strconv.Itoa(c.N), direction)%200_000)
}

// send carries the call to the server and reads the whole answer. The server sees the caller go when
// either the caller's context or the link ends.
func (l *Link) send(ctx context.Context, req *http.Request, body []byte) (*http.Response, []byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	again := req.Clone(ctx)
	again.Body = io.NopCloser(bytes.NewReader(body))
	if again.ContentLength = int64(len(body)); len(body) == 0 {
		again.Body = http.NoBody // else its length counts as unknown
	}
	resp, err := l.base.RoundTrip(again)
	if err != nil {
		return nil, nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, answer, nil
}

// later sends a copy in the background; its answer meets nobody.
func (l *Link) later(req *http.Request, body []byte, delay time.Duration) {
	l.bg.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, delay+goneAfter)
		defer cancel()
		if sleep(ctx, delay) != nil || l.isCut() {
			return
		}
		if resp, _, err := l.send(ctx, req, body); err == nil { // nobody waits for what becomes of it
			_ = resp.Body.Close()
		}
	})
}

// nowhere lets a caller wait until it gives up.
func (l *Link) nowhere(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, goneAfter, errGone)
	defer cancel()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.ctx.Done():
		return errGone
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Draw is a number that depends on the seed and the words only: the same for every order of calls.
func Draw(seed uint64, words ...string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendUint(nil, seed, 16))
	for _, w := range words {
		_, _ = h.Write([]byte{0})
		_, _ = h.Write([]byte(w))
	}
	x := h.Sum64() // FNV's low bits mix badly: finish as splitmix64 does
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Tape collects what the network and the handlers saw.
type Tape struct {
	mu      sync.Mutex
	wire    []WireNote
	effects []Effect
	first   map[itemID]time.Time // report items by their first sending
}

type itemID struct{ token, seq int64 }

// Effect writes down a side effect.
func (t *Tape) Effect(e Effect) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.effects = append(t.effects, e)
}

// Effects returns the side effects so far.
func (t *Tape) Effects() []Effect {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.effects)
}

// Wire returns the notes of the network so far.
func (t *Tape) Wire() []WireNote {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.wire)
}

type numbered struct {
	Session string `json:"session"`
	Call    int64  `json:"call"`
}

func (t *Tape) sent(worker string, c Call) {
	var n numbered
	if json.Unmarshal(c.Body, &n) != nil || n.Session == "" {
		return // no call of a session
	}
	t.note(WireNote{At: time.Now(), Kind: WireSent, Worker: worker, Session: n.Session, Call: n.Call})
	var r takt.ReportRequest
	if c.Name != "report" || json.Unmarshal(c.Body, &r) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, it := range r.Items {
		id := itemID{it.Token, it.Seq}
		if t.first == nil {
			t.first = map[itemID]time.Time{}
		}
		if _, again := t.first[id]; !again {
			t.first[id] = time.Now()
		}
	}
}

func (t *Tape) answered(worker string, c Call, status int, answer []byte) {
	var n numbered
	if status != http.StatusOK || json.Unmarshal(c.Body, &n) != nil {
		return
	}
	note := WireNote{At: time.Now(), Kind: WireNamed, Worker: worker, Session: n.Session}
	switch c.Name {
	case "poll":
		var p takt.PollResponse
		if json.Unmarshal(answer, &p) != nil {
			return
		}
		for _, a := range p.Assignments {
			note.Call, note.Token = a.LeaseCall, job.Token(a.Token)
			t.note(note)
		}
	case "heartbeat":
		var h takt.HeartbeatResponse
		if json.Unmarshal(answer, &h) != nil {
			return
		}
		for _, token := range h.Renewed {
			note.Call, note.Token = h.Call, job.Token(token)
			t.note(note)
		}
		for _, token := range h.Lost {
			note.Kind, note.Token = WireRefused, job.Token(token)
			t.note(note)
		}
	case "report":
		t.judged(note, c, answer)
	}
}

func (t *Tape) judged(note WireNote, c Call, answer []byte) {
	var r takt.ReportRequest
	var a takt.ReportResponse
	if json.Unmarshal(c.Body, &r) != nil || json.Unmarshal(answer, &a) != nil || len(r.Items) != len(a.Items) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, it := range r.Items {
		note.Token, note.First = job.Token(it.Token), t.first[itemID{it.Token, it.Seq}]
		switch a.Items[i] {
		case "accepted":
			note.Kind = WireAccepted
		case "stale":
			note.Kind = WireRefused
		default:
			continue
		}
		t.wire = append(t.wire, note)
	}
}

func (t *Tape) note(n WireNote) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wire = append(t.wire, n)
}
