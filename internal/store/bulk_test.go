package store_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

func drawBulk(t *rapid.T) *store.Bulk {
	text := rapid.OneOf(rapid.StringMatching(`[a-z0-9/_-]{0,12}`), rapid.String())
	b := &store.Bulk{At: job.Instant(rapid.Int64().Draw(t, "at")), Revision: rapid.Int64Range(0, 1<<40).Draw(t, "revision")}
	for range rapid.IntRange(1, 5).Draw(t, "items") {
		var it store.BulkItem
		for i := range it.Execution {
			it.Execution[i] = rapid.Byte().Draw(t, "id")
		}
		it.Key = text.Draw(t, "key")
		if rapid.Bool().Draw(t, "params") {
			it.Params, _ = json.Marshal(map[string]any{"n": rapid.Int().Draw(t, "n"), "s": text.Draw(t, "s"), "l": []any{nil, true, 1.5, map[string]any{}}})
		}
		if rapid.Bool().Draw(t, "kept") {
			it.Kept = &store.RequestKey{Namespace: text.Draw(t, "namespace"), Operation: text.Draw(t, "operation"), Key: text.Draw(t, "kept key")}
		}
		b.Items = append(b.Items, it)
	}
	return b
}

// What is read of a row never depends on who reads it: by hand, or encoding/json.
func TestBulkIsReadAsByEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBulk(t)
		text := b.Append(nil)
		if rapid.Bool().Draw(t, "spoilt") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				text = text[:at]
			case 1:
				text[at] = rapid.SampledFrom([]byte(`{}[]",:0 \-ua`)).Draw(t, "byte")
			default:
				text = append(text[:at:at], append([]byte(" "), text[at:]...)...)
			}
		}
		var want store.Bulk
		wantErr := json.Unmarshal(text, &want)
		row := store.BulkRow{ID: 10, Items: len(want.Items)}
		got, err := row.ReadBulk(text)
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("%q: by hand %v, by encoding/json %v", text, err, wantErr)
		}
		if err == nil && !reflect.DeepEqual(*got, want) && fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", want) {
			t.Fatalf("%q: read %+v, want %+v", text, *got, want)
		}
	})
}

func BenchmarkReadBulk(b *testing.B) {
	bulk := &store.Bulk{At: 1_790_000_000_000, Revision: 3}
	for i := range store.BulkItems {
		bulk.Items = append(bulk.Items, store.BulkItem{Execution: job.RequestedID(bulk.At, [10]byte{byte(i)}),
			Params: fmt.Appendf(nil, `{"n":%d,"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`, i)})
	}
	text, row := bulk.Append(nil), store.BulkRow{ID: 1000, Items: len(bulk.Items)}
	b.Run("by hand", func(b *testing.B) {
		for b.Loop() {
			if _, err := row.ReadBulk(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		for b.Loop() {
			var all store.Bulk
			if err := json.Unmarshal(text, &all); err != nil {
				b.Fatal(err)
			}
		}
	})
}
