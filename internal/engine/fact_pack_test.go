package engine_test

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// drawFacts draws facts whose fields repeat, as those of a commit do.
func drawFacts(t *rapid.T) []engine.Fact {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "", "a", "started", `"\`, "<&>", "7", "\x00\n"}), rapid.String())
	number := rapid.OneOf(rapid.SampledFrom([]int64{0, 0, 1, 1_800_000_000_000}), rapid.Int64())
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) engine.Fact {
		f := engine.Fact{Kind: engine.FactKind(text.Draw(t, "kind")), Job: text.Draw(t, "job"), Session: job.SessionID(text.Draw(t, "session")),
			Worker: text.Draw(t, "worker"), From: text.Draw(t, "from"), To: text.Draw(t, "to"), Reason: job.Reason(text.Draw(t, "reason")),
			Note: text.Draw(t, "note"), Shard: int(number.Draw(t, "shard")), Token: job.Token(number.Draw(t, "token")), Attempt: int(number.Draw(t, "attempt")),
			PlannedAt: job.Instant(number.Draw(t, "planned")), Until: job.Instant(number.Draw(t, "until")), Count: number.Draw(t, "count"),
			Checkpoint: number.Draw(t, "checkpoint"), Call: number.Draw(t, "call")}
		f.Execution[0] = byte(rapid.IntRange(0, 3).Draw(t, "id"))
		return f
	}), 0, 8).Draw(t, "facts")
}

// What is packed is what is unpacked, and what the form before is read as; also when each field stands alone.
func TestPackedFactsAgainstTheFormBefore(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, facts []engine.Fact) {
		for _, stored := range [][]byte{engine.PackFacts(nil, facts), engine.AppendFacts(nil, facts)} {
			got, err := engine.UnpackFacts(stored)
			if err != nil || !slices.Equal(got, facts) {
				t.Fatalf("%s\nis %+v, %v\nshould be %+v", stored, got, err, facts)
			}
			if !json.Valid(stored) {
				t.Fatalf("no JSON: %s", stored)
			}
		}
	}
	check(t, nil)
	check(t, []engine.Fact{{}, {Kind: engine.FactStarted}, {}})
	check(t, []engine.Fact{{Kind: "k", Job: "k", Session: "k", Worker: "k", From: "k", To: "k", Reason: "k", Note: "k", Shard: 1, Token: 1, Attempt: 1,
		PlannedAt: 1, Until: 1, Count: 1, Checkpoint: 1, Call: 1, Execution: job.ExecutionID{1}}})
	rapid.Check(t, func(t *rapid.T) { check(t, drawFacts(t)) })
}

// A text that is not UTF-8 is kept as the form before kept it.
func TestPackedFactsAreClean(t *testing.T) {
	facts := []engine.Fact{{Kind: "\xff", Note: "\xff"}}
	packed, err := engine.UnpackFacts(engine.PackFacts(nil, facts))
	if err != nil {
		t.Fatal(err)
	}
	before, err := engine.UnpackFacts(engine.AppendFacts(nil, facts))
	if err != nil || !slices.Equal(packed, before) {
		t.Errorf("%+v, should be %+v, %v", packed, before, err)
	}
}

// The stored form is kept: journals outlive versions.
func TestPackedFactsForm(t *testing.T) {
	id := job.ExecutionID{1}
	facts := []engine.Fact{
		{Kind: engine.FactStarted, Job: "ns/j", Execution: id, Token: 1000, Attempt: 1, Worker: "w"},
		{Kind: engine.FactStarted, Job: "ns/j", Execution: id, Token: 1001, Attempt: 1, Note: "w"},
	}
	want := `[2,3339,"started","ns/j","w","` + id.String() + `",1000,1,3459,0,1,2,3,1,0]`
	if got := string(engine.PackFacts(nil, facts)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Whatever is stored by hand or damaged, reading it ends with facts or an error.
func TestUnpackDamagedFacts(t *testing.T) {
	for _, bad := range []string{``, `[2`, `[2,1]`, `[2,1,0]`, `[2,1,-1]`, `[2,256,"x"]`, `[2,512,"x"]`, `[2,512,1.5]`, `[3]`, `[22]`, `[2.5]`, `{}`, `[2,"x"]`, `[2,[],{}]`} {
		if facts, err := engine.UnpackFacts([]byte(bad)); err == nil {
			t.Errorf("%s is read as %+v", bad, facts)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		stored := engine.PackFacts(nil, drawFacts(t))
		at := rapid.IntRange(0, len(stored)-1).Draw(t, "at")
		stored[at] = rapid.SampledFrom([]byte(`0129,"[]-{`)).Draw(t, "byte")
		_, _ = engine.UnpackFacts(stored)
	})
}
