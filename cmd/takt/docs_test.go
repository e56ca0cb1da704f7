package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taktsched/takt/internal/jobfile"
)

var rewrite = flag.Bool("rewrite", false, "write the generated pages of docs anew")

// TestGeneratedPages compares docs/CLI.md and docs/JOBFILE.md with the commands and the schema.
func TestGeneratedPages(t *testing.T) {
	for name, page := range map[string]func(*testing.T) string{"CLI.md": cliPage, "JOBFILE.md": jobFilePage} {
		t.Run(name, func(t *testing.T) {
			path, want := filepath.Join("..", "..", "docs", name), page(t)
			if *rewrite {
				if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != want {
				t.Errorf("docs/%s is not what the program says: go test ./cmd/takt -run GeneratedPages -rewrite, then look at git diff", name)
			}
		})
	}
}

const generated = "<!-- Generated: go test ./cmd/takt -run GeneratedPages -rewrite -->\n"

func cliPage(t *testing.T) string {
	root := newRootCommand()
	var b strings.Builder
	b.WriteString("# The command line\n\n" + generated + `
Results go to standard output, everything else to standard error. Nothing is ever asked: commands that destroy need their flags.
Every flag with a name in brackets is also an environment variable; the flag wins.

` + "```\n" + exitCodesText + "```\n\n## Flags of every command\n\n" + flagsText(root.PersistentFlags()))
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "exit-codes" {
			return
		}
		defer func() {
			for _, sub := range cmd.Commands() {
				walk(sub)
			}
		}()
		if isGroup(cmd) {
			return
		}
		cmd.InitDefaultHelpFlag()
		text := firstText(cmd.Long, cmd.Short+".")
		if strings.HasPrefix(cmd.CommandPath(), "takt completion ") { // the long text is cobra's
			text = cmd.Short + "."
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n```\n%s\n```\n", cmd.CommandPath(), strings.TrimSpace(text), cmd.UseLine())
		if cmd.Example != "" {
			fmt.Fprintf(&b, "\nExamples:\n\n```sh\n%s\n```\n", strings.ReplaceAll(strings.Trim(cmd.Example, "\n"), "  takt", "takt"))
		}
		if flags := flagsText(cmd.LocalNonPersistentFlags()); flags != "" {
			b.WriteString("\n" + flags)
		}
		b.WriteString(pageOf(cmd))
	}
	for _, cmd := range root.Commands() {
		walk(cmd)
	}
	if strings.Contains(b.String(), os.Getenv("HOME")+"/") && os.Getenv("HOME") != "" {
		t.Error("the page names this machine's home")
	}
	return b.String()
}

func pageOf(cmd *cobra.Command) string {
	page := helpPages[cmd.CommandPath()]
	return "\n" + strings.ReplaceAll(strings.TrimSpace(page.text()), "\n", "\n\n") + "\n"
}

func flagsText(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, _ := pflag.UnquoteUsage(f)
		short := ""
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		def := ""
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "[]" {
			def = " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(&b, "- `%s--%s` — %s%s\n", short, strings.TrimSpace(f.Name+" "+name), f.Usage, def)
	})
	return b.String()
}

// wordsOfFiles is what internal/jobfile/scalars.go does; its table of tests has every row.
const wordsOfFiles = `
## What a word means

Readers of YAML differ in what a word without quotes is. In job files JSON decides first; beyond JSON a word means what readers of YAML 1.1 and 1.2
agree upon, and where they differ it is refused with its line and column, never guessed.

One run tells all faults that documents show by themselves, of all files; of a part that cannot be read (a schedule with an unknown field)
those of its form first, those of its meaning when that is mended. When there are none: documents that collide, or jobs that run after each
other. Then what only the server knows, a calendar or a parent that is not there, one for each document, calendars before parents.

| written | meaning |
|---|---|
| ` + "`1`, `-0.0`, `1.10`, `1e3`, `9007199254740993`" + ` | numbers, as in JSON. In ` + "`params`" + ` they keep their digits: nothing is rounded |
| ` + "`+1`, `.5`, `1.`, `0x1F`" + ` | the numbers 1, 0.5, 1 and 31 |
| ` + "`010`, `08`, `0o10`, `0b11`, `1_000`" + ` | refused: write ` + "`8`" + ` or ` + "`1000`" + `, or put text in quotes |
| ` + "`1e400`, `1e-400`" + ` | refused: beyond what a number of 64 bits holds |
| ` + "`.inf`, `.nan`" + ` | refused: JSON has no such number |
| ` + "`true`, `False`, `null`, `~`" + `, nothing | true, false, null |
| ` + "`yes`, `no`, `on`, `off`" + ` | refused, but where a field takes text (a label, the owner), which it then is |
| ` + "`2026-01-31`, `12:30`, `1.2.3`" + `, other words | text as it is written; fields that take an instant read it in RFC 3339 |
| ` + "`\"010\"`, `'yes'`, `!!str 010`" + ` | text |
| ` + "`!!binary …`, `!!int 5`, `!mine x`" + ` | refused: no tag but ` + "`!!str`" + ` is taken |
| keys such as ` + "`1:`, `010:`, `true:`" + ` | text as it is written; a key twice is refused |
| ` + "`&name`, `*name`, `<<:`" + ` | anchors, aliases and merges; ` + "`<<`" + ` stands first in its mapping |

## Secrets

Better than a secret in ` + "`params`" + ` is one in the worker's own environment or files (an agent passes those that its handlers file allows). Where one stands in
` + "`params`" + ` nevertheless, workers get it and people do not read it: texts and numbers below a name that holds password, passwd, passphrase, secret, token, apiKey,
accessKey, privateKey, credential, authorization or bearer (in any case; maxTokens and the like are counts), and passwords inside addresses such as
` + "`postgres://user:password@host/db`" + `, are shown as ` + "`(masked)`" + ` in every list, description, difference, history and conflict, also those of executions, checkpoints and
results. A masked value that is written back is refused (` + "`masked_value`" + `): neither is the stored value kept in silence nor lost. ` + "`takt export`" + ` writes documents with their
values, to apply them elsewhere, and says so (` + "`?secrets=show`" + ` of the API). Excerpts of files leave such lines out.

## Another pool

` + "`" + `spec.pool` + "`" + ` may be changed like any other field. From the commit that takes the change in, planned instants and new requests go to the new pool; the next
instant of each schedule stays what it is, none fires twice and none is left out. Executions that were made before keep the revision that they began with,
and so the old pool: they wait, run, are cancelled and are run again (` + "`" + `takt rerun` + "`" + `) there. When the pools belong to different servers, one hands the job over to
the other; an instant that comes due meanwhile is late, as after any short outage. So that no two runs overlap, that waits (` + "`" + `pending` + "`" + `) until the executions of the job
that obey its overlap policy have ended, unless the policy is allow: until then nothing new is planned, requests that obey it wait, and what comes due is treated as missed (` + "`misfire`" + `). When nobody works in the old pool any more, cancel what still waits there.
`

func jobFilePage(t *testing.T) string {
	example, err := os.ReadFile(filepath.Join("testdata", "jobfile.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if docs, err := jobfile.Parse("jobfile.yaml", example); err != nil || len(docs) != 1 {
		t.Fatalf("the example is no job file: %v", err)
	}
	var b strings.Builder
	b.WriteString("# Job files\n\n" + generated + `
A job file holds one or more YAML documents, each one job or one calendar ([CALENDARS.md](CALENDARS.md)). An unknown field is a fault, shown with its line and column; what is left out has
its default, which is not written back. Durations are written 90s, 1h30m, 2d or 1w.

` + "`takt validate -f FILE` checks a file without a server, `takt diff -f FILE` shows what it would change, `takt apply -f FILE` applies all of it or\n" +
		"nothing. `takt schema job` prints the JSON Schema for editors, `takt schema job.spec.retry` explains one field.\n\n" +
		"```yaml\n" + string(example) + "```\n" + overlapOfFiles + afterOfFiles + wordsOfFiles + "\n## Fields\n\n| field | what | meaning |\n|---|---|---|\n")
	var rows func(path string)
	rows = func(path string) {
		f, err := jobfile.Explain(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Fields {
			x := &f.Fields[i]
			if x.ReadOnly {
				continue
			}
			cell := strings.NewReplacer("|", `\|`, "\n", " ")
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.TrimPrefix(strings.TrimPrefix(x.Path, "job."), "calendar."), cell.Replace(shortField(x)), cell.Replace(x.Doc))
			rows(x.Path)
		}
	}
	rows("job")
	b.WriteString("\n## Fields of calendars\n\n| field | what | meaning |\n|---|---|---|\n")
	rows("calendar")
	return b.String()
}

// shortField is the type without patterns, which the meaning says in words or the schema has.
func shortField(f *jobfile.Field) string {
	g := *f
	var limits []string
	for l := range strings.SplitSeq(f.Limits, "; ") {
		if !strings.HasPrefix(l, "matches ") && l != "" {
			limits = append(limits, l)
		}
	}
	g.Limits = strings.Join(limits, "; ")
	return fieldText(&g)
}

// The page's example has every part that it explains, so that it cannot grow old unseen.
func TestJobFileExampleIsWhole(t *testing.T) {
	example, err := os.ReadFile(filepath.Join("testdata", "jobfile.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := jobfile.Explain("job.spec")
	if err != nil {
		t.Fatal(err)
	}
	for i := range spec.Fields {
		name := spec.Fields[i].Path[strings.LastIndexByte(spec.Fields[i].Path, '.')+1:]
		if !bytes.Contains(example, []byte("\n  "+name+":")) {
			t.Errorf("testdata/jobfile.yaml does not show spec.%s", name)
		}
	}
}
