package jobfile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/jobfile"
)

const whole = `# a comment
apiVersion: takt/v1
kind: Job
metadata:
  name: invoice
  labels: {team: pay, tier: "1"}
spec:
  pool: billing
  handler: invoice
  params: {month: 2026-11, big: 9007199254740993, list: [1, x]}
  schedule:
    cron: "0 0 3 1 * *"
    timeZone: Asia/Shanghai
  shards: {count: 64}
  timeout: {attempt: 30m}
  retry: {maxAttempts: 5, backoff: {initial: 10s, factor: 2.5, jitter: full}}
  enabled: false
---
# nothing but a comment
---
apiVersion: takt/v1
kind: Job
metadata: {name: second}
spec: &s
  pool: billing
  handler: second
---
apiVersion: takt/v1
kind: Job
metadata: {name: once}
spec: {pool: p, handler: h, schedule: {at: 2026-12-01T00:00:00+08:00}}
`

func TestParseReadsEveryDocument(t *testing.T) {
	docs, err := jobfile.Parse("jobs.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) != 3 {
		t.Fatalf("got %d documents, want 3", len(docs))
	}
	j := docs[0].Job
	if j.Metadata.Name != "invoice" || j.Metadata.Labels["tier"] != "1" || j.Spec.Shards.Count != 64 ||
		j.Spec.Timeout.Attempt != takt.Duration(30*time.Minute) || *j.Spec.Enabled || j.Spec.Retry.Backoff.Factor != 2.5 {
		t.Errorf("fields are lost: %+v", j)
	}
	if got := string(j.Spec.Params); !strings.Contains(got, "9007199254740993") {
		t.Errorf("a large integer lost its last digit: %s", got)
	}
	if docs[1].Line != 21 {
		t.Errorf("second document begins at line %d, want 21", docs[1].Line)
	}
	if at := docs[2].Job.Spec.Schedule.At; at == nil || !at.Equal(time.Date(2026, 11, 30, 16, 0, 0, 0, time.UTC)) {
		t.Errorf("at = %v", at)
	}
}

func TestParseSaysWhereTheFaultIs(t *testing.T) {
	const head = "apiVersion: takt/v1\nkind: Job\nmetadata: {name: a}\n"
	for _, c := range []struct{ name, text, want, hint string }{
		{"tab", "apiVersion: takt/v1\nkind: Job\nspec:\n\tpool: x\n", "f.yaml:4:1: ", "YAML"},
		{"open bracket", head + "spec: {pool: [}\n", "f.yaml:4:", ""},
		{"same key twice", head + "spec:\n  pool: p\n  handler: h\n  pool: q\n", "f.yaml:7:3: ", ""},
		{"unknown field", head + "spec:\n  pool: p\n  handler: h\n  shard: {count: 2}\n", "f.yaml:7:3: spec.shard: unknown field", "did you mean shards?"},
		{"unknown field deep", head + "spec:\n  pool: p\n  handler: h\n  retry:\n    backoff: {base: 1s}\n", "f.yaml:8:15: spec.retry.backoff.base: unknown field", "known here: factor, initial, jitter, max"},
		{"unknown field at the top", head + "spec: {pool: p, handler: h}\noverlap: skip\n", "f.yaml:5:1: overlap: unknown field", "known here: apiVersion, kind, metadata, spec"},
		{"number for text", head + "spec:\n  pool: 7\n  handler: h\n", "f.yaml:5:9: spec.pool: wrong type: expected string, got the number 7", "quotes"},
		{"text for number", head + "spec:\n  pool: p\n  handler: h\n  shards: {count: many}\n", `f.yaml:7:19: spec.shards.count: wrong type: expected integer, got the string "many"`, ""},
		{"text for mapping", head + "spec: nothing\n", `f.yaml:4:7: spec: wrong type: expected object, got the string "nothing"`, ""},
		{"missing", head + "spec:\n  handler: h\n", "f.yaml:5:3: spec: pool is missing", ""},
		{"no name", "apiVersion: takt/v1\nkind: Job\nmetadata: {name: 月度账单}\nspec: {pool: p, handler: h}\n", `f.yaml:3:18: metadata.name: "月度账单" does not fit`, "63 lower-case"},
		{"no handler", head + "spec: {pool: p, handler: a b}\n", `f.yaml:4:26: spec.handler: "a b" does not fit`, "it must match"},
		{"out of range", head + "spec:\n  pool: p\n  handler: h\n  shards:\n    count: 0\n", "f.yaml:8:12: spec.shards.count: expected number >= 1", ""},
		{"no duration", head + "spec:\n  pool: p\n  handler: h\n  schedule: {every: 5x}\n", "f.yaml:7:21: spec.schedule.every: \"5x\" has the unit \"x\"", "ms, s, m"},
		{"bad cron", head + "spec:\n  pool: p\n  handler: h\n  schedule:\n    cron: 61 * * * *\n", "f.yaml:8:11: spec.schedule.cron: ", ""},
		{"no zone", head + "spec:\n  pool: p\n  handler: h\n  schedule: {cron: 1 * * * *, timeZone: Mars/Base}\n", "f.yaml:7:41: spec.schedule.timeZone: ", "Europe/Berlin"},
		{"two schedules", head + "spec:\n  pool: p\n  handler: h\n  schedule: {cron: 1 * * * *, every: 5s}\n", "f.yaml:7:14: spec.schedule: only one", ""},
		{"main twice", head + "spec: {pool: p, handler: h,\n  schedules: [{name: a, every: 1m}, {name: main, every: 5s}]}\n", "f.yaml:5:44: spec.schedules[1].name: main is", "spec.schedule"},
		{"same name", head + "spec: {pool: p, handler: h,\n  schedules: [{name: a, every: 1m}, {name: a, every: 5s}]}\n", "f.yaml:5:44: spec.schedules[1].name: another", ""},
		{"bad among several", head + "spec: {pool: p, handler: h,\n  schedules: [{name: a, every: 1m}, {name: b, cron: x}]}\n", "f.yaml:5:53: spec.schedules[1].cron: ", ""},
		{"no kind among several", head + "spec: {pool: p, handler: h,\n  schedules: [{name: a}]}\n", "f.yaml:5:16: spec.schedules[0]: ", ""},
		{"handlers", "apiVersion: takt/v1\nkind: Handlers\nhandlers: {}\n", `f.yaml:2:7: kind: this is a document of kind Handlers, not of kind Job`, ""},
		{"no job", "apiVersion: takt/v1\nkind: Pod\nmetadata: {name: a}\nspec: {pool: p, handler: h}\n", `f.yaml:2:7: kind: expected value to be one of "Job"`, ""},
		{"list", "- a\n", "f.yaml:1:", ""},
		{"after an empty document", head + "spec: {pool: p, handler: h}\n---\n---\n" + head + "spec: {pool: p}\n", "f.yaml:10:8: spec: handler is missing", ""},
		{"second document", head + "spec: {pool: p, handler: h}\n---\n" + head + "spec: {pool: p}\n", "f.yaml:9:8: spec: handler is missing", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs, err := jobfile.Parse("f.yaml", []byte(c.text))
			errs, ok := errors.AsType[jobfile.Errors](err)
			if !ok || len(docs) > 0 {
				t.Fatalf("got %d documents and error %v, want faults", len(docs), err)
			}
			if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if !strings.Contains(errs[0].Hint, c.hint) {
				t.Errorf("hint %q, want %q in it", errs[0].Hint, c.hint)
			}
		})
	}
}

func TestParseShowsTheLine(t *testing.T) {
	_, err := jobfile.Parse("f.yaml", []byte("apiVersion: takt/v1\r\nkind: Job\r\nmetadata: {name: a}\r\nspec: {title: 月度账单, pool: p, handlr: h}\r\n"))
	errs, _ := errors.AsType[jobfile.Errors](err)
	want := "spec: {title: 月度账单, pool: p, handlr: h}\n" + strings.Repeat(" ", 33) + "^"
	if len(errs) != 2 || errs[1].Excerpt != want {
		t.Errorf("got\n%+v", errs)
		for _, e := range errs {
			t.Logf("%s\n%s", e, e.Excerpt)
		}
	}
}

func TestParseFindsEveryFault(t *testing.T) {
	_, err := jobfile.Parse("f.yaml", []byte("apiVersion: takt/v1\nkind: Job\nmetadata: {name: A_b}\nspec:\n  pool: 1\n  handler: h\n  x: 1\n---\nkind: Job\n"))
	errs, _ := errors.AsType[jobfile.Errors](err)
	if len(errs) != 6 {
		t.Errorf("got %d faults, want 6 (name, pool, x; apiVersion, metadata, spec missing):\n%v", len(errs), err)
	}
}

func TestParseRefusesLargeFiles(t *testing.T) {
	if _, err := jobfile.Parse("f.yaml", make([]byte, jobfile.MaxSize+1)); err == nil {
		t.Error("a file beyond the limit was taken")
	}
}

func TestParseOfNothingGivesNothing(t *testing.T) {
	for _, text := range []string{"", "# only a comment\n", "---\n---\n"} {
		if docs, err := jobfile.Parse("f.yaml", []byte(text)); err != nil || len(docs) != 0 {
			t.Errorf("%q: got %d documents, %v", text, len(docs), err)
		}
	}
}
