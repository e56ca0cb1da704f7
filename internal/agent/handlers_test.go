package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/agent"
	"github.com/taktsched/takt/internal/jobfile"
)

const fileHead = "apiVersion: takt/v1\nkind: Handlers\nhandlers:\n"

func TestParseReadsEveryField(t *testing.T) {
	t.Parallel()
	h, err := agent.Parse("h.yaml", []byte(fileHead+`
  backup:
    command:
      argv: [backup, --full, "a b"]
      dir: /srv
      env: {allow: [PATH], set: {MODE: full}}
      exitCodes: {3: fatal, 4: success}
      snooze: 5m
    grace: 20s
  team/notify.v2:
    http:
      url: https://example.com/hook
      headers: {X-Team: ops}
      timeout: 30s
      allow: [10.0.0.0/8]
`))
	if err != nil {
		t.Fatal(err)
	}
	c, n := h.Handlers["backup"], h.Handlers["team/notify.v2"]
	if len(c.Command.Argv) != 3 || c.Command.ExitCodes["3"] != "fatal" || c.Grace.String() != "20s" || c.Command.Snooze.String() != "5m" ||
		c.Command.Env.Set["MODE"] != "full" || n.HTTP.Headers["X-Team"] != "ops" || n.HTTP.Allow[0] != "10.0.0.0/8" {
		t.Errorf("fields are lost: %+v %+v", c.Command, n.HTTP)
	}
}

// The example of the documentation is a valid file.
func TestParseKnowsWhichStandsFirst(t *testing.T) {
	h, err := agent.Parse("h.yaml", []byte("apiVersion: takt/v1\nkind: Handlers\nhandlers:\n  ok.v2: {command: {argv: [w]}}\n  bad: {command: {argv: [x]}}\n  a: {command: {argv: [y]}}\n  z: {command: {argv: [z]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if h.First != "ok.v2" {
		t.Errorf("%q stands first", h.First)
	}
}

func TestDocumentedExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "AGENT.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	h, err := agent.Parse("docs/AGENT.md", []byte(example))
	if err != nil || len(h.Handlers) != 3 {
		t.Errorf("%v: %v", err, h)
	}
}

func TestParseSaysWhereTheFaultIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want, hint string }{
		{"syntax", fileHead + "  a: {command: [\n", "f:4:", ""},
		{"empty", "# nothing\n", "f: the file holds no document of kind Handlers", ""},
		{"two", fileHead + "  a: {command: {shell: x}}\n---\nkind: Handlers\n", "f:6:1: a second document", ""},
		{"a job", "apiVersion: takt/v1\nkind: Job\nhandlers: {}\n", `f:2:7: kind: this is a document of kind Job, not of kind Handlers`, ""},
		{"no handlers", "apiVersion: takt/v1\nkind: Handlers\n", "f:1:1: handlers is missing", ""},
		{"none", "apiVersion: takt/v1\nkind: Handlers\nhandlers: {}\n", "f:3:11: handlers: there is no handler", ""},
		{"unknown field", fileHead + "  a:\n    command: {shel: x}\n", "f:5:15: handlers.a.command.shel: unknown field", "did you mean shell?"},
		{"wrong type", fileHead + "  a: {command: {argv: ls}}\n", "f:4:23: handlers.a.command.argv: wrong type: expected array", ""},
		{"number in argv", fileHead + "  a: {command: {argv: [sleep, 5]}}\n", "f:4:31: handlers.a.command.argv[1]: wrong type: expected string, got the number 5", "quotes"},
		{"neither", fileHead + "  a: {grace: 1s}\n", "f:4:7: handlers.a: a handler is either", "one of command and http"},
		{"both", fileHead + "  a: {command: {shell: x}, http: {url: 'https://x.example'}}\n", "f:4:7: handlers.a: a handler is either", ""},
		{"argv and shell", fileHead + "  a: {command: {shell: x, argv: [x]}}\n", "f:4:17: handlers.a.command: a command is either", "one of argv and shell"},
		{"no command", fileHead + "  a: {command: {dir: /}}\n", "f:4:17: handlers.a.command: a command is either", ""},
		{"empty argv", fileHead + "  a: {command: {argv: []}}\n", "f:4:23: handlers.a.command.argv: ", ""},
		{"empty program", fileHead + "  a: {command: {argv: ['']}}\n", "f:4:23: handlers.a.command.argv: the program's name is empty", ""},
		{"NUL", fileHead + "  a: {command: {argv: [x, \"a\\0b\"]}}\n", "f:4:27: handlers.a.command.argv[1]: NUL in the text", ""},
		{"relative dir", fileHead + "  a: {command: {shell: x, dir: work}}\n", "f:4:32: handlers.a.command.dir: \"work\" is no absolute path", ""},
		{"name", fileHead + "  a b: {command: {shell: x}}\n", "f:4:9: handlers.a b: \"a b\" is no name of a handler", "128"},
		{"token allowed", fileHead + "  a: {command: {shell: x, env: {allow: [PATH, TAKT_TOKEN]}}}\n", "f:4:47: handlers.a.command.env.allow[1]: TAKT_TOKEN: names that begin with TAKT_", "never the agent's token"},
		{"token set", fileHead + "  a: {command: {shell: x, env: {set: {TAKT_KEY: x}}}}\n", "f:4:49: handlers.a.command.env.set.TAKT_KEY: TAKT_KEY: names", ""},
		{"variable", fileHead + "  a: {command: {shell: x, env: {set: {A-B: x}}}}\n", "f:4:44: handlers.a.command.env.set.A-B: \"A-B\" is no name of a variable", ""},
		{"exit code", fileHead + "  a: {command: {shell: x, exitCodes: {256: fatal}}}\n", "f:4:44: handlers.a.command.exitCodes.256: \"256\" is no exit code", "0 to 255"},
		{"outcome", fileHead + "  a: {command: {shell: x, exitCodes: {3: abort}}}\n", "f:4:42: handlers.a.command.exitCodes.3: \"abort\" is no outcome", "success, retry, fatal, snooze"},
		{"grace", fileHead + "  a: {command: {shell: x}, grace: soon}\n", "f:4:35: handlers.a.grace: \"soon\" is no duration", "90s"},
		{"no url", fileHead + "  a: {http: {headers: {}}}\n", "f:4:14: handlers.a.http: url is missing", ""},
		{"gopher", fileHead + "  a: {http: {url: 'gopher://example.com'}}\n", "f:4:19: handlers.a.http.url: it is no http or https address", ""},
		{"file", fileHead + "  a: {http: {url: 'file:///etc/passwd'}}\n", "f:4:19: handlers.a.http.url: it is no http or https address", ""},
		{"password", fileHead + "  a: {http: {url: 'https://u:p@example.com'}}\n", "f:4:19: handlers.a.http.url: an address with a user's name", "header"},
		{"header", fileHead + "  a: {http: {url: 'https://x.example', headers: {'X Y': z}}}\n", "f:4:57: handlers.a.http.headers.X Y: it cannot be a header", ""},
		{"split header", fileHead + "  a: {http: {url: 'https://x.example', headers: {X: \"a\\r\\nB: c\"}}}\n", "f:4:53: handlers.a.http.headers.X: it cannot be a header", ""},
		{"own header", fileHead + "  a: {http: {url: 'https://x.example', headers: {Host: z}}}\n", "f:4:56: handlers.a.http.headers.Host: the agent sets", ""},
		{"network", fileHead + "  a: {http: {url: 'https://x.example', allow: [10.0.0.1]}}\n", "f:4:48: handlers.a.http.allow[0]: \"10.0.0.1\" is no network", "/32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := agent.Parse("f", []byte(c.text))
			errs, ok := errors.AsType[jobfile.Errors](err)
			if !ok || h != nil {
				t.Fatalf("got %v and %v, want faults", h, err)
			}
			if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if !strings.Contains(errs[0].Hint, c.hint) {
				t.Errorf("hint %q, want %q", errs[0].Hint, c.hint)
			}
		})
	}
	if _, err := agent.Load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was read")
	}
}
