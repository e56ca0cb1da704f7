package jobfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/jobfile"
)

const hostileHead = "apiVersion: takt/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  pool: p\n  handler: h\n"

// hostileFiles are files that must be refused, with the line of the fault and what is said.
var hostileFiles = []struct {
	name, text string
	line       int // 0: of the whole file, or wherever
	says       string
}{
	{"no YAML", "{", 1, ""},
	{"tab for indentation", "apiVersion: takt/v1\nspec:\n\tpool: p\n", 3, ""},
	{"doubled key", hostileHead + "  pool: q\n", 7, "already defined"},
	{"doubled key above", "kind: Job\n" + hostileHead, 3, "already defined"},
	{"doubled key in flow", "apiVersion: takt/v1\nkind: Job\nmetadata: {name: a, name: b}\nspec: {pool: p, handler: h}\n", 3, "already defined"},
	{"unknown field", hostileHead + "  pol: p\n", 7, "unknown field"},
	{"wrong case", strings.Replace(hostileHead, "handler", "Handler", 1), 6, "unknown field"},
	{"list for the document", "- a\n- b\n", 1, "wrong type"},
	{"text for the document", "hello\n", 1, "wrong type"},
	{"number for the document", "42\n", 1, "wrong type"},
	{"number for text", strings.Replace(hostileHead, "pool: p", "pool: 5", 1), 5, "wrong type"},
	{"yes for text", strings.Replace(hostileHead, "pool: p", "pool: true", 1), 5, "wrong type"},
	{"null for text", strings.Replace(hostileHead, "pool: p", "pool: ~", 1), 5, ""},
	{"nothing for text", strings.Replace(hostileHead, "pool: p", "pool:", 1), 5, ""},
	{"text for number", hostileHead + "  shards: {count: \"8\"}\n", 7, "wrong type"},
	{"fraction for whole", hostileHead + "  shards: {count: 1.5}\n", 7, ""},
	{"no number", hostileHead + "  shards: {count: .nan}\n", 7, "JSON can carry"},
	{"infinite", hostileHead + "  shards: {count: .inf}\n", 7, "JSON can carry"},
	{"infinite in params", hostileHead + "  params: {x: -.inf}\n", 7, "JSON can carry"},
	{"negative shards", hostileHead + "  shards: {count: -1}\n", 7, ""},
	{"no shards", hostileHead + "  shards: {count: 0}\n", 7, ""},
	{"too many shards", hostileHead + "  shards: {count: 2147483648}\n", 7, ""},
	{"beyond 64 bits", hostileHead + "  shards: {count: 99999999999999999999}\n", 7, ""},
	{"negative duration", hostileHead + "  timeout: {attempt: -1h}\n", 7, "is negative"},
	{"duration without unit", hostileHead + "  timeout: {attempt: \"5\"}\n", 7, "has no unit"},
	{"duration as number", hostileHead + "  timeout: {attempt: 3600}\n", 7, ""},
	{"empty schedule", hostileHead + "  schedule: {}\n", 7, "f.yaml:7:13: spec.schedule"},
	{"empty auto-pause", hostileHead + "  autoPause: {}\n", 7, "f.yaml:7:14: spec.autoPause"},
	{"period of nothing", hostileHead + "  schedule:\n    every: 0s\n", 8, "(0s is none)"},
	{"window of nothing", hostileHead + "  misfire: {window: 0s}\n", 7, "f.yaml:7:21: spec.misfire.window: 0s is no length of time above 0"},
	{"grace of nothing", hostileHead + "  misfire: {grace: 0h0m}\n", 7, "spec.misfire.grace: 0h0m is no"},
	{"wait of nothing", hostileHead + "  after: [{job: b, within: \"0.0s\"}]\n", 7, "spec.after[0].within: 0.0s is no"},
	{"window without unit", hostileHead + "  misfire: {window: \"5\"}\n", 7, "has no unit"},
	{"name with a slash", strings.Replace(hostileHead, "name: a", "name: a/../b", 1), 3, "does not fit"},
	{"name with a quote", strings.Replace(hostileHead, "name: a", "name: \"a'; DROP TABLE jobs; --\"", 1), 3, "does not fit"},
	{"name with an escape", strings.Replace(hostileHead, "name: a", `name: "a\x1b[2J"`, 1), 3, "does not fit"},
	{"name with markup", strings.Replace(hostileHead, "name: a", "name: \"<script>alert(1)</script>\"", 1), 3, "does not fit"},
	{"name of 64", strings.Replace(hostileHead, "name: a", "name: "+strings.Repeat("x", 64), 1), 3, "does not fit"},
	{"handler with a blank", strings.Replace(hostileHead, "handler: h", "handler: a b", 1), 6, "does not fit"},
	{"handler with a line", strings.Replace(hostileHead, "handler: h", `handler: "a\nb"`, 1), 6, "does not fit"},
	{"other version", strings.Replace(hostileHead, "takt/v1", "takt/v9", 1), 1, ""},
	{"other kind", strings.Replace(hostileHead, "Job", "Pod", 1), 2, ""},
	{"alias to nothing", hostileHead + "  params: *nowhere\n", 0, ""},
	{"alias to itself", hostileHead + "  params: &a [*a]\n", 0, "alias"},
	{"a billion laughs", costly["laughs"], 1, "unfolds to more than"},
	{"deep brackets", hostileHead + "  params: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n", 7, "nested more than"},
	{"deep lists", "a:\n" + strings.Repeat("- ", 100) + "x\n", 2, "nested more than"},
	{"deep steps", costly["steps"], 0, "nested more than"},
	{"too many words", costly["many keys"], 0, "words and signs"},
	{"second document is bad", hostileHead + "---\nkind: Job\n", 8, "missing"},
	{"bad cron", hostileHead + "  schedule: {cron: \"61 * * * *\"}\n", 7, ""},
	{"unknown zone", hostileHead + "  schedule: {cron: \"1 * * * *\", timeZone: ../../etc/passwd}\n", 7, ""},
	{"Windows line ends", strings.ReplaceAll(hostileHead, "\n", "\r\n") + "  pol: p\r\n", 7, "unknown field"},
	{"bytes that are no text", hostileHead + "  description: \"\xff\xfe\"\n", 0, "UTF-8"},
	{"NUL", hostileHead + "  description: \"a\x00b\"\n", 0, "NUL"},
	{"escaped NUL", hostileHead + `  description: "a\0b"` + "\n", 0, "NUL"},
	{"a binary", "\x7fELF\x02\x01\x01\x00\x00\x00", 0, ""},
}

func TestHostileFiles(t *testing.T) {
	t.Logf("%d hostile files", len(hostileFiles))
	for _, c := range hostileFiles {
		t.Run(c.name, func(t *testing.T) {
			docs, err := jobfile.Parse("f.yaml", []byte(c.text))
			es, ok := errors.AsType[jobfile.Errors](err)
			if !ok || len(es) == 0 || len(docs) > 0 {
				t.Fatalf("%d documents, %v", len(docs), err)
			}
			if c.line > 0 && es[0].Line != c.line || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 4096 {
				t.Errorf("%.4096v; want line %d, %q", err, c.line, c.says)
			}
		})
	}
}

// What only looks hostile is taken: Windows line ends, a byte order mark, comments.
func TestForeignFiles(t *testing.T) {
	for name, text := range map[string]string{
		"Windows": strings.ReplaceAll(hostileHead, "\n", "\r\n"), "mark": "\ufeff" + hostileHead, "both": "\ufeff" + strings.ReplaceAll(hostileHead, "\n", "\r\n"),
		"comments": "# one\n\n" + hostileHead + "# two", "no newline": strings.TrimSuffix(hostileHead, "\n"),
	} {
		if docs, err := jobfile.Parse("f.yaml", []byte(text)); err != nil || len(docs) != 1 || docs[0].Job.Spec.Handler != "h" {
			t.Errorf("%s: %+v, %v", name, docs, err)
		}
	}
}
