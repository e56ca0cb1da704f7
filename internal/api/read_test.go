package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taktsched/takt"
)

func drawText(t *rapid.T, label string) string {
	return rapid.OneOf(rapid.StringMatching(`[a-z0-9/@!#-]{0,12}`), rapid.StringMatching(`[a-z]{1,3}`), rapid.String()).Draw(t, label)
}

func drawValue(t *rapid.T, label string) json.RawMessage {
	if !rapid.Bool().Draw(t, label) {
		return nil
	}
	v := rapid.SampledFrom([]any{nil, 1.5, -3, "x", "a \"q\" ]}", []any{map[string]any{}, "]"}, map[string]any{"n": 1, "s": drawText(t, "s"), "l": []any{nil, true, "}\"{\\"}}}).Draw(t, label)
	b, _ := json.Marshal(v)
	return b
}

func drawReport(t *rapid.T) any {
	r := takt.ReportRequest{Session: drawText(t, "session"), Epoch: rapid.Int64().Draw(t, "epoch"), Call: rapid.Int64Range(0, 1<<53).Draw(t, "call")}
	if rapid.IntRange(0, 9).Draw(t, "none") > 0 {
		r.Items = []takt.ReportItem{}
	}
	for range rapid.IntRange(0, 4).Draw(t, "items") {
		it := takt.ReportItem{Execution: drawText(t, "execution"), Shard: rapid.IntRange(0, 9).Draw(t, "shard"), Token: rapid.Int64Range(-1, 1<<53).Draw(t, "token"),
			Seq: rapid.Int64Range(0, 9).Draw(t, "seq"), Kind: rapid.SampledFrom([]string{"done", "started", "checkpoint", "else"}).Draw(t, "kind"), Checkpoint: drawValue(t, "checkpoint"),
			Outcome: rapid.SampledFrom([]string{"", "success", "error", "x"}).Draw(t, "outcome"), Result: drawValue(t, "result"),
			RetryAfterMs: rapid.Int64Range(0, 2).Draw(t, "retry"), LogPending: rapid.Bool().Draw(t, "log")}
		if rapid.IntRange(0, 9).Draw(t, "progress") == 0 {
			it.Progress = &takt.Progress{Done: 1}
		}
		if rapid.IntRange(0, 9).Draw(t, "failure") == 0 {
			it.Error = &takt.Failure{Message: "m"}
		}
		r.Items = append(r.Items, it)
	}
	return r
}

func drawPollRequest(t *rapid.T) any {
	return takt.PollRequest{Session: drawText(t, "session"), Epoch: rapid.Int64().Draw(t, "epoch"), Call: rapid.Int64Range(0, 1<<53).Draw(t, "call"), Number: rapid.Int64Range(0, 99).Draw(t, "number"),
		Free: rapid.IntRange(-1, 99).Draw(t, "free"), Held: rapid.SliceOfN(rapid.Int64Range(-1, 1<<53), 0, 4).Draw(t, "held"), WaitMs: rapid.Int64Range(0, 20000).Draw(t, "wait")}
}

func drawTriggers(t *rapid.T) any {
	var r takt.TriggerManyRequest
	for range rapid.IntRange(0, 4).Draw(t, "items") {
		it := takt.TriggerItem{Job: drawText(t, "job"), Key: drawText(t, "key"), Params: drawValue(t, "params")}
		if rapid.IntRange(0, 9).Draw(t, "later") == 0 {
			it.In = takt.Duration(time.Second)
		}
		r.Items = append(r.Items, it)
	}
	return r
}

// reads compares what is read by hand of bodies that the server has let pass with what encoding/json reads.
func reads[T any](t *testing.T, draw func(*rapid.T) any, lenient bool, read func([]byte, *T) bool) {
	t.Helper()
	byHand := 0
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(draw(t))
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "spoilt") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				text[at] = rapid.SampledFrom([]byte("{}[]\",:0 \\-uaZ1.e\x00\xff\t")).Draw(t, "byte")
			case 1:
				text = append(text[:at:at], append([]byte(rapid.SampledFrom([]string{" ", "0", "\n", `\n`, ".5", "e1", ",", `,"x":[1]`, `"a":1,"a":1,`, `"\u0000"`, `"\ud800"`, strings.Repeat("[", 64)}).Draw(t, "more")), text[at:]...)...)
			default:
				text = append(text, ' ')
			}
		}
		var got, want, none T
		refused := strictJSON(text, shapeOf(reflect.TypeFor[T]()), lenient)
		if read(text, &got) && refused != nil {
			t.Fatalf("%q is read by hand, where all others are refused: %v", text, refused)
		}
		if got = none; !read(text, &got) {
			if !reflect.DeepEqual(got, none) {
				t.Fatalf("%q is left to encoding/json, with %+v in it", text, got)
			}
			return
		}
		byHand++
		if err := json.Unmarshal(text, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: read %+v, want %+v, %v", text, got, want, err)
		}
	})
	if byHand == 0 {
		t.Error("nothing was read by hand")
	}
}

// What is read of a body never depends on who reads it: by hand, or encoding/json.
func TestBodiesAreReadAsByEncodingJSON(t *testing.T) {
	t.Run("report", func(t *testing.T) { reads(t, drawReport, true, readReport) })
	t.Run("poll", func(t *testing.T) { reads(t, drawPollRequest, true, readPoll) })
	t.Run("triggers", func(t *testing.T) { reads(t, drawTriggers, false, readTriggers) })
}

// What is written by hand is what encoding/json writes.
func TestAnswersAreWrittenAsByEncodingJSON(t *testing.T) {
	byHand := 0
	rapid.Check(t, func(t *rapid.T) {
		p := takt.PollResponse{Epoch: rapid.Int64().Draw(t, "epoch"), Superseded: rapid.IntRange(0, 9).Draw(t, "superseded") == 0}
		for range rapid.IntRange(0, 4).Draw(t, "assignments") {
			a := takt.Assignment{Namespace: drawText(t, "namespace"), Job: drawText(t, "job"), Revision: rapid.Int64Range(0, 1<<40).Draw(t, "revision"),
				Execution: drawText(t, "execution"), Handler: drawText(t, "handler"), PlannedAt: time.UnixMilli(rapid.Int64Range(-1<<42, 1<<48).Draw(t, "planned")).UTC(),
				Shard: rapid.IntRange(0, 9).Draw(t, "shard"), ShardTotal: rapid.IntRange(1, 10).Draw(t, "total"), Attempt: rapid.IntRange(1, 3).Draw(t, "attempt"),
				Token: rapid.Int64().Draw(t, "token"), LeaseCall: rapid.Int64Range(0, 99).Draw(t, "call"), TimeoutMs: rapid.Int64Range(0, 2).Draw(t, "timeout"),
				Params: drawValue(t, "params"), Checkpoint: drawValue(t, "checkpoint"), CheckpointSeq: rapid.Int64Range(0, 2).Draw(t, "checkpointSeq"), Key: drawText(t, "key")}
			if rapid.IntRange(0, 9).Draw(t, "child") == 0 {
				a.Parents = []takt.AssignedParent{{}}
			}
			p.Assignments = append(p.Assignments, a)
		}
		if rapid.IntRange(0, 9).Draw(t, "cancels") == 0 {
			p.Cancels = []takt.Cancel{{Execution: "x", Token: 1}}
		}
		r := takt.ReportResponse{Epoch: p.Epoch, Items: rapid.SampledFrom([][]string{nil, {}, {"accepted"}, {"stale", "unknown", "a\"b"}, {"accepted", "accepted"}}).Draw(t, "fates")}
		m := takt.TriggeredMany{Effect: drawText(t, "effect")}
		for range rapid.IntRange(0, 3).Draw(t, "triggered") {
			it := takt.TriggeredItem{Execution: drawText(t, "triggered execution"), Repeated: rapid.Bool().Draw(t, "repeated"), Past: rapid.Bool().Draw(t, "past")}
			if rapid.Bool().Draw(t, "known") {
				it.PlannedAt = new(time.UnixMilli(rapid.Int64Range(-1<<42, 1<<48).Draw(t, "planned for")).UTC())
			}
			m.Items = append(m.Items, it)
		}
		for _, v := range []any{&p, &r, &m} {
			got, quick := answerText(v)
			if !quick {
				continue
			}
			byHand++
			var want bytes.Buffer
			enc := json.NewEncoder(&want)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(v); err != nil || want.String() != string(got) {
				t.Fatalf("wrote %s, want %s, %v", got, want.String(), err)
			}
		}
	})
	if byHand == 0 {
		t.Error("nothing was written by hand")
	}
}

func usual(n int) (poll takt.PollResponse, report takt.ReportRequest, triggers takt.TriggerManyRequest) {
	for i := range n {
		params := fmt.Appendf(nil, `{"n":%d,"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}`, i)
		poll.Assignments = append(poll.Assignments, takt.Assignment{Namespace: "bench", Job: "noop-abcdefgh", Revision: 1, Execution: "06cw1bq0fr8j1x4cw6h3ybkq2c", Handler: "noop",
			PlannedAt: time.UnixMilli(1790000000123).UTC(), ShardTotal: 1, Attempt: 1, Token: 1790000000000001 + int64(i), LeaseCall: 77, Params: params, Key: "bench/noop-abcdefgh!06cw1bq0fr8j1x4cw6h3ybkq2c#0"})
		report.Items = append(report.Items, takt.ReportItem{Execution: "06cw1bq0fr8j1x4cw6h3ybkq2c", Token: 1790000000000001 + int64(i), Seq: 2, Kind: "done", Outcome: "success"})
		triggers.Items = append(triggers.Items, takt.TriggerItem{Job: "noop-abcdefgh", Params: params})
	}
	return poll, report, triggers
}

// What is read by hand is not checked any more: it is nothing that a check would refuse.
func TestWhatIsRefusedIsNotReadByHand(t *testing.T) {
	for name, text := range map[string]string{
		"a zero in front": `{"session":"s","epoch":07,"call":1,"items":[]}`,
		"too deep":        `{"session":"s","epoch":7,"call":1,"items":[{"execution":"x","shard":0,"token":1,"seq":1,"kind":"done","result":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}]}`,
		"a value cut off": `{"session":"s","epoch":7,"call":1,"items":[{"execution":"x","shard":0,"token":1,"seq":1,"kind":"done","result":"\`,
		"no value":        `{"session":"s","epoch":7,"call":1,"items":[{"execution":"x","shard":0,"token":1,"seq":1,"kind":"done","result":}]}`,
		"NUL":             "{\"session\":\"s\x00\",\"epoch\":7,\"call\":1,\"items\":[]}",
	} {
		if strictJSON([]byte(text), shapeOf(reflect.TypeFor[takt.ReportRequest]()), true) == nil {
			t.Errorf("%s: the check lets it pass", name)
		}
		if readReport([]byte(text), new(takt.ReportRequest)) {
			t.Errorf("%s: it is read by hand", name)
		}
	}
}

func TestUsualCallsGoByHand(t *testing.T) {
	poll, report, triggers := usual(3)
	if _, quick := answerText(&poll); !quick {
		t.Error("a usual answer to a poll is left to encoding/json")
	}
	body, _ := json.Marshal(report)
	if !readReport(body, new(takt.ReportRequest)) {
		t.Errorf("%s is left to encoding/json", body)
	}
	body, _ = json.Marshal(triggers)
	if !readTriggers(body, new(takt.TriggerManyRequest)) {
		t.Errorf("%s is left to encoding/json", body)
	}
	body, _ = json.Marshal(takt.PollRequest{Session: "x", Held: []int64{1, 2}, WaitMs: 20000})
	if !readPoll(body, new(takt.PollRequest)) {
		t.Errorf("%s is left to encoding/json", body)
	}
}

func BenchmarkByHand(b *testing.B) {
	poll, report, triggers := usual(100)
	said, _ := json.Marshal(report)
	asked, _ := json.Marshal(triggers)
	for name, f := range map[string]func(hand bool){
		"poll answer": func(hand bool) {
			if hand {
				answerText(&poll)
			} else {
				enc := json.NewEncoder(new(bytes.Buffer))
				enc.SetEscapeHTML(false)
				_ = enc.Encode(&poll)
			}
		},
		"report": func(hand bool) {
			var r takt.ReportRequest
			if !hand || !readReport(said, &r) {
				_ = json.Unmarshal(said, &r)
			}
		},
		"triggers": func(hand bool) {
			var r takt.TriggerManyRequest
			if !hand || !readTriggers(asked, &r) {
				_ = json.Unmarshal(asked, &r)
			}
		},
	} {
		for _, hand := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s of 100/hand=%v", name, hand), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f(hand)
				}
			})
		}
	}
}
