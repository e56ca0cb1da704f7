package store

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// Triggers of one request that follow each other, for one revision of a job and one instant, may lie in one row of the
// inbox: that is one row in and one row out for up to BulkItems of them. They stay entries of their own, with numbers that
// follow each other; the row has the last one's. The owner may take some of them and leave others: the row says which it took.

// KindBulk is the kind of such rows, which a server that does not know them leaves alone.
const KindBulk = "triggers"

// Bounds of a row.
const (
	BulkItems = 256       // triggers at most
	bulkBytes = 256 << 10 // and their parameters, but for the last one's
)

// Bulk is the payload of such a row.
type Bulk struct {
	At       job.Instant `json:"at"`
	Revision int64       `json:"revision"`
	Items    []BulkItem  `json:"items"`
}

// BulkItem is one trigger.
type BulkItem struct {
	Execution job.ExecutionID `json:"id"`
	Key       string          `json:"key,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Kept      *RequestKey     `json:"kept,omitempty"` // without its hash
}

// Alike tells that b may lie in the row of a, which comes before it.
func Alike(a, b *Trigger) bool {
	return a.Bulk && b.Bulk && !a.Request.Delayed && !b.Request.Delayed && a.Namespace == b.Namespace && a.Job == b.Job &&
		a.Request.At == b.Request.At && a.Execution.PlannedAt() == b.Execution.PlannedAt()
}

// Run is how many of the first of n triggers lie in one row: at least 1, which is an entry of the usual form.
func Run(n int, alike func(i int) bool, size func(i int) int) int {
	k, bytes := 1, size(0)
	for k < min(n, BulkItems) && bytes < bulkBytes && alike(k) {
		bytes += size(k)
		k++
	}
	return k
}

// FirstOf is the smallest of the ids in a row.
func FirstOf(items []BulkItem) job.ExecutionID {
	first := items[0].Execution
	for i := range items {
		if string(items[i].Execution[:]) < string(first[:]) {
			first = items[i].Execution
		}
	}
	return first
}

// LowestLike is not above any id of the instant of one: rows are found between it and the id.
func LowestLike(id job.ExecutionID) (low job.ExecutionID) {
	copy(low[:6], id[:6])
	return low
}

// Append writes the payload.
func (b *Bulk) Append(to []byte) []byte {
	to = strconv.AppendInt(append(to, `{"at":`...), int64(b.At), 10)
	to = strconv.AppendInt(append(to, `,"revision":`...), b.Revision, 10)
	to = append(to, `,"items":[`...)
	for i := range b.Items {
		it := &b.Items[i]
		if i > 0 {
			to = append(to, ',')
		}
		to = job.AppendText(append(to, `{"id":`...), it.Execution.String())
		if it.Key != "" {
			to = job.AppendText(append(to, `,"key":`...), it.Key)
		}
		if len(it.Params) > 0 {
			to = append(append(to, `,"params":`...), it.Params...)
		}
		if k := it.Kept; k != nil {
			to = job.AppendText(append(to, `,"kept":{"Namespace":`...), k.Namespace)
			to = job.AppendText(append(to, `,"Operation":`...), k.Operation)
			to = append(job.AppendText(append(to, `,"Key":`...), k.Key), '}')
		}
		to = append(to, '}')
	}
	return append(to, "]}"...)
}

// BulkRow is such a row.
type BulkRow struct {
	ID    int64 // of the last entry in it
	Items int
	Taken string // a digit for each, 1: its owner has taken it; "": none yet
}

// First is the number of the first entry in the row.
func (r *BulkRow) First() int64 { return r.ID - int64(r.Items) + 1 }

// Waits tells whether an entry lies in the row and was not taken.
func (r *BulkRow) Waits(entry int64) bool {
	i := entry - r.First()
	return i >= 0 && entry <= r.ID && (r.Taken == "" || r.Taken[i] == '0')
}

// Entry is one of the row's entries.
func (r *BulkRow) Entry(b *Bulk, uid job.UID, i int) engine.Entry {
	it := &b.Items[i]
	return engine.Entry{ID: r.First() + int64(i), Kind: engine.EntryTrigger, Job: uid, Execution: it.Execution,
		Request: &engine.Request{At: b.At, Key: it.Key, Params: it.Params}}
}

// ReadBulk reads the payload of a row.
func (r *BulkRow) ReadBulk(payload []byte) (*Bulk, error) {
	b, err := readBulk(payload, r.Items)
	if err == nil && (len(b.Items) != r.Items || r.Taken != "" && len(r.Taken) != r.Items) {
		err = fmt.Errorf("%d items, %d and %d are said", len(b.Items), r.Items, len(r.Taken))
	}
	if err != nil {
		return nil, fmt.Errorf("stored triggers: %w", err)
	}
	return b, nil
}

// readBulk reads what Append wrote by hand, all else by encoding/json.
func readBulk(payload []byte, items int) (*Bulk, error) {
	b := &Bulk{}
	if s := job.NewScan(payload); b.scan(s, items) && s.Done() {
		return b, nil
	}
	b = &Bulk{}
	err := json.Unmarshal(payload, b)
	return b, err
}

func (b *Bulk) scan(s *job.Scan, items int) bool {
	s.Want(`{"at":`)
	b.At = job.Instant(s.Number())
	s.Want(`,"revision":`)
	b.Revision = s.Number()
	s.Want(`,"items":[`)
	b.Items = make([]BulkItem, 0, min(max(items, 0), BulkItems))
	for !s.Failed() {
		b.Items = append(b.Items, scanItem(s))
		if s.Is("]}") {
			return true
		}
		s.Want(",")
	}
	return false
}

func scanItem(s *job.Scan) (it BulkItem) {
	s.Want(`{"id":`)
	if it.Execution.UnmarshalText(s.Plain()) != nil {
		s.Want("an id") // stands nowhere
	}
	if s.Is(`,"key":`) {
		it.Key = string(s.Plain())
	}
	if s.Is(`,"params":`) {
		it.Params = s.Any()
	}
	if s.Is(`,"kept":{"Namespace":`) {
		k := &RequestKey{Namespace: string(s.Plain())}
		s.Want(`,"Operation":`)
		k.Operation = string(s.Plain())
		s.Want(`,"Key":`)
		k.Key = string(s.Plain())
		s.Want("}")
		it.Kept = k
	}
	s.Want("}")
	return it
}

// BulkTaken is what becomes of a row in a commit.
type BulkTaken struct {
	BulkRow        // as it was
	Now     string // "": all of it is taken
}

// TakeBulk divides consumed entries into those that lie in one of the rows, and the rest.
func TakeBulk(rows []BulkRow, consumed []int64) (taken []BulkTaken, rest []int64) {
	if len(rows) == 0 {
		return nil, consumed
	}
	marks := make([][]byte, len(rows))
	for _, id := range consumed {
		at := -1
		for i := range rows {
			if rows[i].Waits(id) && (marks[i] == nil || marks[i][id-rows[i].First()] == '0') {
				at = i
				break
			}
		}
		if at < 0 {
			rest = append(rest, id)
			continue
		}
		if marks[at] == nil {
			if marks[at] = []byte(rows[at].Taken); len(marks[at]) == 0 {
				marks[at] = []byte(strings.Repeat("0", rows[at].Items))
			}
		}
		marks[at][id-rows[at].First()] = '1'
	}
	for i, mark := range marks {
		if mark == nil {
			continue
		}
		t := BulkTaken{rows[i], string(mark)}
		if !strings.Contains(t.Now, "0") {
			t.Now = ""
		}
		taken = append(taken, t)
	}
	return taken, rest
}

// BulkRange is where the rows that hold some of the entries lie, by number.
func BulkRange(entries []int64) (from, to int64) {
	if len(entries) == 0 {
		return 1, 0
	}
	from, to = entries[0], entries[0]
	for _, id := range entries {
		from, to = min(from, id), max(to, id)
	}
	return from, to + BulkItems - 1
}
