package takt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawPoll(t *rapid.T) PollResponse {
	text := rapid.OneOf(rapid.StringMatching(`[a-z0-9/@!#-]{0,12}`), rapid.String())
	value := func(label string) json.RawMessage {
		if !rapid.Bool().Draw(t, label) {
			return nil
		}
		v := rapid.SampledFrom([]any{nil, 1.5, "x", []any{map[string]any{}, "]"}, map[string]any{"n": 1, "s": text.Draw(t, "s"), "l": []any{nil, true, "}\"{"}}}).Draw(t, label)
		b, _ := json.Marshal(v)
		return b
	}
	p := PollResponse{Epoch: rapid.Int64().Draw(t, "epoch"), Superseded: rapid.IntRange(0, 9).Draw(t, "superseded") == 0}
	for range rapid.IntRange(0, 4).Draw(t, "assignments") {
		a := Assignment{Namespace: text.Draw(t, "namespace"), Job: text.Draw(t, "job"), Revision: rapid.Int64Range(0, 1<<40).Draw(t, "revision"),
			Execution: text.Draw(t, "execution"), Handler: text.Draw(t, "handler"), PlannedAt: time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "planned")).UTC(),
			Shard: rapid.IntRange(0, 9).Draw(t, "shard"), ShardTotal: rapid.IntRange(1, 10).Draw(t, "total"), Attempt: rapid.IntRange(1, 3).Draw(t, "attempt"),
			Token: rapid.Int64Range(0, 1<<53).Draw(t, "token"), LeaseCall: rapid.Int64Range(0, 99).Draw(t, "call"), TimeoutMs: rapid.Int64Range(0, 2).Draw(t, "timeout"),
			Params: value("params"), Checkpoint: value("checkpoint"), CheckpointSeq: rapid.Int64Range(0, 2).Draw(t, "checkpointSeq"), Key: text.Draw(t, "key")}
		if rapid.IntRange(0, 9).Draw(t, "child") == 0 {
			a.Parents = []AssignedParent{{}}
		}
		p.Assignments = append(p.Assignments, a)
	}
	if rapid.IntRange(0, 9).Draw(t, "cancels") == 0 {
		p.Cancels = []Cancel{{Execution: "x", Token: 1}}
	}
	return p
}

// What is read of an answer never depends on who reads it: by hand, or encoding/json.
func TestPollIsReadAsByEncodingJSON(t *testing.T) {
	byHand := 0
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(rapid.Bool().Draw(t, "html"))
		if err := enc.Encode(drawPoll(t)); err != nil {
			t.Fatal(err)
		}
		text := b.Bytes()
		if rapid.Bool().Draw(t, "spoilt") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				text = text[:at]
			case 1:
				text[at] = rapid.SampledFrom([]byte(`{}[]",:0 \-uaZ`)).Draw(t, "byte")
			default:
				text = append(text[:at:at], append([]byte(" "), text[at:]...)...)
			}
		}
		var got, want PollResponse
		if !got.quick(text) {
			if !reflect.DeepEqual(got, PollResponse{}) {
				t.Fatalf("%q is left to encoding/json, with %+v in it", text, got)
			}
			return
		}
		byHand++
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("%q was read by hand: %v", text, err)
		}
		if !reflect.DeepEqual(got, want) && fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Fatalf("%q: read %+v, want %+v", text, got, want)
		}
	})
	if byHand == 0 {
		t.Error("nothing was read by hand")
	}
}

func usualPoll() []byte {
	p := PollResponse{Epoch: 1790000000000000}
	for i := range 256 {
		p.Assignments = append(p.Assignments, Assignment{Namespace: "bench", Job: "noop-abcdefgh", Revision: 1, Execution: "06cw1bq0fr8j1x4cw6h3ybkq2c", Handler: "noop",
			PlannedAt: time.UnixMilli(1790000000123).UTC(), ShardTotal: 1, Attempt: 1, Token: 1790000000000001 + int64(i), LeaseCall: 77,
			Params: fmt.Appendf(nil, `{"n":%d,"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`, i),
			Key:    "bench/noop-abcdefgh!06cw1bq0fr8j1x4cw6h3ybkq2c#0"})
	}
	b, _ := json.Marshal(p)
	return b
}

func TestUsualPollIsReadByHand(t *testing.T) {
	var p PollResponse
	if !p.quick(usualPoll()) || len(p.Assignments) != 256 {
		t.Errorf("%d assignments were read by hand, want 256", len(p.Assignments))
	}
}

func BenchmarkReadPoll(b *testing.B) {
	text := usualPoll()
	for _, hand := range []bool{true, false} {
		b.Run(fmt.Sprintf("hand=%v", hand), func(b *testing.B) {
			for b.Loop() {
				var p PollResponse
				if hand && p.quick(text) {
					continue
				}
				if err := json.Unmarshal(text, &p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
