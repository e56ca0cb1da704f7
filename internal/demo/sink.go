package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Batch is what a handler sends to the sink: some files of one shard, with the key and the token of the
// attempt.
type Batch struct {
	Shard  int     `json:"shard"`
	Worker string  `json:"worker"`
	Key    string  `json:"key"`
	Token  int64   `json:"token"`
	Files  []Entry `json:"files"`
}

// Effect is one line of the file of effects.
type Effect struct {
	Entry
	Shard  int    `json:"shard"`
	Worker string `json:"worker"`
	Key    string `json:"key"`
	Token  int64  `json:"token"`
}

// Verdict is the sink's answer to a batch.
type Verdict struct {
	Appended int   `json:"appended"`
	Repeats  int   `json:"repeats"`           // paths that were done already
	Stale    bool  `json:"stale,omitempty"`   // refused: a newer token has written for the shard
	Highest  int64 `json:"highest,omitempty"` // the newest token seen for the shard
}

// SinkStats are the sink's counters.
type SinkStats struct {
	Appended int64 // effects in the file
	Repeats  int64 // paths swallowed because they were done already
	Stale    int64 // batches refused for their token
}

// MaxBatch is the size in bytes of the largest batch that the sink takes.
const MaxBatch = 8 << 20

// Sink is the outside system of the demo: it makes effects single by what Takt gives to handlers. The
// business key of an effect is its path, so a path that is done is swallowed; and a token below the
// highest one seen for the shard is refused, so an owner that was replaced writes nothing.
//
// All methods may be called at the same time; batches are taken one after the other.
type Sink struct {
	mu      sync.Mutex
	out     io.Writer
	broken  error // of the file: nothing is accepted any more
	highest map[int]int64
	done    map[string]bool
	stats   SinkStats
	trap    func() // run once, see Trap
	trapOf  string
}

// NewSink makes a sink that appends JSON lines to out.
func NewSink(out io.Writer) *Sink {
	return &Sink{out: out, highest: map[int]int64{}, done: map[string]bool{}}
}

// Take decides about one batch and appends what is new, in one write. After a failed write every batch is
// an error: how much of it is in the file is not known.
func (s *Sink) Take(b Batch) (Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return Verdict{}, s.broken
	}
	if b.Token < s.highest[b.Shard] {
		s.stats.Stale++
		return Verdict{Stale: true, Highest: s.highest[b.Shard]}, nil
	}
	s.highest[b.Shard] = b.Token
	v := Verdict{Highest: b.Token}
	var text bytes.Buffer
	var fresh []string
	taken := map[string]bool{}
	enc := json.NewEncoder(&text)
	for _, f := range b.Files {
		if s.done[f.Path] || taken[f.Path] {
			v.Repeats++
			continue
		}
		taken[f.Path] = true
		fresh = append(fresh, f.Path)
		if err := enc.Encode(Effect{Entry: f, Shard: b.Shard, Worker: b.Worker, Key: b.Key, Token: b.Token}); err != nil {
			return Verdict{}, fmt.Errorf("encode the effect of %s: %w", f.Path, err)
		}
	}
	if _, err := s.out.Write(text.Bytes()); err != nil {
		s.broken = fmt.Errorf("append to the file of effects: %w", err)
		return Verdict{}, s.broken
	}
	for _, p := range fresh {
		s.done[p] = true
	}
	v.Appended = len(fresh)
	s.stats.Appended += int64(v.Appended)
	s.stats.Repeats += int64(v.Repeats)
	return v, nil
}

// Trap runs f once: when the next batch of the worker is in the file and before it is answered. That is
// the worst moment for the worker to die: the effect is there and no checkpoint says so.
func (s *Sink) Trap(worker string, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trapOf, s.trap = worker, f
}

func (s *Sink) sprung(worker string) {
	s.mu.Lock()
	f := s.trap
	if f == nil || s.trapOf != worker {
		s.mu.Unlock()
		return
	}
	s.trap = nil
	s.mu.Unlock()
	f()
}

// Highest is the newest token that has written for a shard; 0 before the first.
func (s *Sink) Highest(shard int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.highest[shard]
}

// Stats are the counters up to now.
func (s *Sink) Stats() SinkStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// ServeHTTP takes a batch as the body of a POST: 200 with the Verdict, 409 with it when the token is
// stale, 400 for what is no batch, 500 when the file cannot be written.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "POST a batch", http.StatusMethodNotAllowed)
		return
	}
	// The whole body first: a sender that dies in the middle of a batch has sent none.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBatch))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var b Batch
	if err := json.Unmarshal(body, &b); err != nil || b.Token <= 0 || b.Key == "" {
		http.Error(w, "not a batch with key and token", http.StatusBadRequest)
		return
	}
	v, err := s.Take(b)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if v.Appended > 0 {
		s.sprung(b.Worker)
	}
	w.Header().Set("Content-Type", "application/json")
	if v.Stale {
		w.WriteHeader(http.StatusConflict)
	}
	_ = json.NewEncoder(w).Encode(v) // a sender that is gone asks again with the same key
}
