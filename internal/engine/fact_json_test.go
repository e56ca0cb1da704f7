package engine_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// AppendFacts against encoding/json, field by field: a new field that it forgets is found.
func TestAppendFactsAgainstTwin(t *testing.T) {
	var whole engine.Fact
	v := reflect.ValueOf(&whole).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("text " + v.Type().Field(i).Name)
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(1000 + i))
		case reflect.Array:
			reflect.Copy(f, reflect.ValueOf([]byte{1, 2, 3}))
		default:
			t.Fatalf("field %s has a kind that this test does not know", v.Type().Field(i).Name)
		}
	}
	same(t, []engine.Fact{whole, {}, {Kind: engine.FactStarted}})
	same(t, []engine.Fact{})
	rapid.Check(t, func(t *rapid.T) {
		same(t, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) engine.Fact {
			text := rapid.OneOf(rapid.SampledFrom([]string{"", "a", `"\`, "<&>", "\u2028", "\xff", "任务", "\x00\n"}), rapid.String())
			f := engine.Fact{Kind: engine.FactKind(text.Draw(t, "kind")), Job: text.Draw(t, "job"), Worker: text.Draw(t, "worker"), Note: text.Draw(t, "note"),
				Token: job.Token(rapid.Int64().Draw(t, "token")), Count: rapid.Int64().Draw(t, "count"), Shard: rapid.IntRange(-1, 3).Draw(t, "shard")}
			copy(f.Execution[:], rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "id"))
			return f
		}), 0, 4).Draw(t, "facts"))
	})
}

func same(t interface{ Fatalf(string, ...any) }, facts []engine.Fact) {
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(facts); err != nil {
		t.Fatalf("%v", err)
	}
	if got := string(engine.AppendFacts(nil, facts)) + "\n"; got != want.String() {
		t.Fatalf("got  %s\nwant %s", got, want.String())
	}
}
