package store

import (
	"encoding/base64"
	"encoding/json"

	"github.com/taktsched/takt/internal/job"
)

// DefaultLimit is the size of a page whose Limit is not set.
const DefaultLimit = 100

// PageBytes bounds what may be large in the rows of one page (params, checkpoints, results, messages of
// failures). A page that would be larger ends early, but holds at least one row.
const PageBytes = 8 << 20

// Rows is Limit with its default.
func (p Page) Rows() int {
	if p.Limit < 1 {
		return DefaultLimit
	}
	return p.Limit
}

// After makes the opaque text that leads behind a row. list names the kind of list, so that a text of
// one list is refused by another; key is the row's sort key and must be a plain JSON value.
func After(list string, key any) string {
	b, err := json.Marshal([]any{list, key})
	if err != nil {
		panic("store: a page key that is no plain value: " + err.Error()) // wiring: keys are strings and numbers
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseAfter reads what After wrote into key, a pointer of the key's type; false for the first page (after is "").
// Anything else is KindInvalid, code "bad_after", field "after".
func ParseAfter(list, after string, key any) (bool, error) {
	if after == "" {
		return false, nil
	}
	bad := job.Errorf(job.KindInvalid, "bad_after", "this is no place in this list").WithField("after").
		WithHint("pass the value that the page before gave, as it is, or leave it out for the first page")
	b, err := base64.RawURLEncoding.DecodeString(after)
	if err != nil {
		return false, bad.WithCause(err)
	}
	var parts []json.RawMessage
	var name string
	if err := json.Unmarshal(b, &parts); err != nil || len(parts) != 2 {
		return false, bad.WithCause(err)
	}
	if err := json.Unmarshal(parts[0], &name); err != nil || name != list {
		return false, bad.WithCause(err)
	}
	if string(parts[1]) == "null" {
		return false, bad
	}
	if err := json.Unmarshal(parts[1], key); err != nil {
		return false, bad.WithCause(err)
	}
	return true, nil
}
