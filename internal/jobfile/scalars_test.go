package jobfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/jobfile"
)

// words are values of a parameter: the JSON that they mean, or what the refusal says.
var words = []struct{ yaml, json, refused string }{
	// JSON's numbers are numbers, digit by digit.
	{"0", "0", ""}, {"-0", "-0", ""}, {"-0.0", "-0.0", ""}, {"1.10", "1.10", ""}, {"1e3", "1e3", ""}, {"1.5E-3", "1.5E-3", ""},
	{"9007199254740993", "9007199254740993", ""}, {"18446744073709551616", "18446744073709551616", ""},
	{"-9223372036854775809", "-9223372036854775809", ""}, {"0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827", ""},
	{"1e308", "1e308", ""}, {"1e400", "", "64 bits"}, {"-1e400", "", "64 bits"}, {"1e-400", "", "64 bits"}, {"0e999", "0e999", ""},
	// Forms that every reader agrees upon.
	{"+1", "1", ""}, {".5", "0.5", ""}, {"-.5", "-0.5", ""}, {"1.", "1", ""}, {"0x1F", "31", ""}, {"-0x10", "-16", ""}, {"0x1ffffffffffffffff", "36893488147419103231", ""},
	// Forms that mean something else elsewhere.
	{"010", "", "some readers"}, {"-010", "", "some readers"}, {"08", "", "some readers"}, {"0o10", "", "some readers"}, {"0b11", "", "some readers"},
	{"1_000", "", "some readers"}, {"1__0", "", "some readers"}, {"1_0.5", "", "some readers"}, {"01.5", "", "some readers"}, {"0x1_0", "", "some readers"},
	{"0X1F", "", "some readers"}, {"yes", "", "true or false to some"}, {"No", "", "true or false to some"}, {"ON", "", "true or false to some"}, {"off", "", "true or false to some"},
	{".inf", "", "JSON can carry"}, {"-.Inf", "", "JSON can carry"}, {"+.INF", "", "JSON can carry"}, {".nan", "", "JSON can carry"}, {".NaN", "", "JSON can carry"},
	// Words.
	{"true", "true", ""}, {"False", "false", ""}, {"~", "null", ""}, {"null", "null", ""}, {"", "null", ""}, {"y", `"y"`, ""}, {"n", `"n"`, ""},
	{"1.2.3", `"1.2.3"`, ""}, {"_1", `"_1"`, ""}, {"1,000", `"1,000"`, ""}, {"0xZZ", `"0xZZ"`, ""}, {"1e", `"1e"`, ""}, {".", `"."`, ""}, {"-", "", ""}, {"+", `"+"`, ""},
	{"e5", `"e5"`, ""}, {"12:30:45", `"12:30:45"`, ""}, {"2026-01-01", `"2026-01-01"`, ""}, {"2026-01-01T00:00:00Z", `"2026-01-01T00:00:00Z"`, ""},
	{"2026-01-01 08:00:00 +8", `"2026-01-01 08:00:00 +8"`, ""}, {"=", `"="`, ""},
	// Quotes make a text, and so does !!str; other tags are refused.
	{`"010"`, `"010"`, ""}, {"'yes'", `"yes"`, ""}, {"!!str 010", `"010"`, ""}, {"!!str yes", `"yes"`, ""}, {"!!str 1e400", `"1e400"`, ""}, {"!!str", `""`, ""},
	{"!!binary aGVsbG8=", "", "tag !!binary"}, {"!!int 5", "", "tag !!int"}, {"!!float x", "", "tag !!float"}, {"!!bool yes", "", "tag !!bool"},
	{"!!timestamp 2026-01-01", "", "tag !!timestamp"}, {"!!set {a}", "", "tag !!set"}, {"!!str [a]", "", ""}, {"!mine 5", "", "tag !mine"},
	{"!<tag:yaml.org,2002:str> 5", "", "tag !<"},
	// Inside collections, and behind anchors.
	{"[1e3, 0x10]", "[1e3,16]", ""}, {"[1, 010]", "", "some readers"}, {"{a: {b: 1_0}}", "", "some readers"}, {"&a 010", "", "some readers"}, {"&a 1e2", "1e2", ""},
	{"{1: a, 010: b, true: c, null: d, 1.10: e}", `{"010":"b","1":"a","1.10":"e","null":"d","true":"c"}`, ""}, {`{1: a, "1": b}`, "", "already defined"},
	{"{~: a}", "", "name of a field"}, {"{!!str a: b}", "", "name of a field"}, {"{[a]: b}", "", ""}, {"|\n      010\n", `"010\n"`, ""}, {">-\n      yes\n      no\n", `"yes no"`, ""},
}

// Every word has the meaning that docs/JOBFILE.md tells, or is refused where it stands.
func TestWords(t *testing.T) {
	t.Logf("%d words", len(words))
	for _, w := range words {
		t.Run(w.yaml, func(t *testing.T) {
			docs, err := jobfile.Parse("f.yaml", []byte(hostileHead+"  title: x\n  params:\n    x: "+w.yaml+"\n"))
			es, _ := errors.AsType[jobfile.Errors](err)
			switch {
			case w.json != "":
				if want := `{"x":` + w.json + `}`; err != nil || len(docs) != 1 || string(docs[0].Job.Spec.Params) != want {
					t.Errorf("%+v %v, want %s", docs, err, want)
				}
			case len(es) != 1 || es[0].Line != 9 || es[0].Column < 5 || !strings.Contains(es[0].Error(), w.refused) || es[0].Excerpt == "":
				t.Errorf("%v; want %q at line 9", err, w.refused)
			case w.refused != "" && es[0].Hint == "":
				t.Errorf("%v has no hint", err)
			}
		})
	}
}

// Where the schema says what stands there, nothing is in doubt: text stays text, whole numbers are whole.
func TestWordsWithAType(t *testing.T) {
	docs, err := jobfile.Parse("f.yaml", []byte("apiVersion: takt/v1\nkind: Job\nmetadata: {name: a, labels: {rotate: on}}\n"+
		"spec: {pool: p, handler: h, owner: no, shards: {count: 8.0}, retry: {maxAttempts: 0x3, backoff: {factor: 2}}}\n"))
	if err != nil || docs[0].Job.Spec.Owner != "no" || docs[0].Job.Metadata.Labels["rotate"] != "on" || docs[0].Job.Spec.Shards.Count != 8 || docs[0].Job.Spec.Retry.MaxAttempts != 3 {
		t.Errorf("%+v, %v", docs, err)
	}
}

// All faults of a document are told at once: those of words, of the schema, and of rules.
func TestEveryKindOfFaultAtOnce(t *testing.T) {
	const text = `apiVersion: takt/v1
kind: Job
metadata: {name: A_b, labels: {"bad label": x}}
spec:
  pool: p
  handler: h
  params: {a: 1e400, b: .nan}
  schedule: {cron: "61 * * * *"}
  schedules:
    - {name: main, every: 5m}
    - {name: x, cron: "* * *", every: 5m}
    - {name: x, at: 0000-01-01T00:00:00Z}
  timeout: {attempt: 99999d, stall: 0.5ms}
  nonsense: 1
---
kind: [
---
apiVersion: takt/v1
kind: Job
metadata: {name: b}
spec: {pool: p, handler: h, shards: {count: 010}}
`
	_, err := jobfile.Parse("f.yaml", []byte(text))
	es, _ := errors.AsType[jobfile.Errors](err)
	var lines []string
	for _, e := range es {
		lines = append(lines, fmt.Sprint(e.Line))
	}
	if got := strings.Join(lines, " "); got != "3 3 7 7 8 10 11 12 12 13 13 14 16 21" {
		t.Errorf("faults at lines %s:\n%v", got, err)
	}
}
