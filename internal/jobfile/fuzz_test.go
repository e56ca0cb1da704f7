package jobfile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/jobfile"
)

// costly are texts whose meaning costs far more than their length, or did.
var costly = map[string]string{
	"flow lists":        strings.Repeat("[", 100_000),
	"flow lists closed": strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000),
	"flow maps":         strings.Repeat("{a: ", 30_000),
	"block lists":       strings.Repeat("- ", 50_000),
	"anchors":           strings.Repeat("&a ", 30_000),
	"tags":              strings.Repeat("!!str ", 20_000),
	"question marks":    strings.Repeat("? ", 30_000),
	"colons":            strings.Repeat(": ", 30_000),
	"a:a:":              strings.Repeat("a: ", 30_000),
	"steps": func() string {
		var b strings.Builder
		for i := range 800 {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	}(),
	"many keys": func() string {
		var b strings.Builder
		for i := range 30_000 {
			b.WriteString("k" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + time.Duration(i).String() + ": 1\n")
		}
		return b.String()
	}(),
	"laughs":     "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n",
	"itself":     "a: &a [*a]\n",
	"itself map": "&a a: *a\n<<: *a\n",
	"merge self": "a: &a\n  <<: *a\n",
	"documents":  strings.Repeat("---\n", 50_000),
	"comments":   strings.Repeat("#\n", 50_000),
	"quotes":     strings.Repeat("'", 50_000),
	"double":     strings.Repeat("\"\\", 50_000),
	"pipes":      strings.Repeat("|\n", 50_000),
	"literal":    "a: |\n" + strings.Repeat(" x\n", 50_000),
	"folded":     "a: >\n" + strings.Repeat(" x\n", 50_000),
	"plain":      "a: " + strings.Repeat("x\n  ", 50_000),
	"spaces":     strings.Repeat(" ", 200_000),
	"newlines":   strings.Repeat("\n", 200_000),
	"tabs":       strings.Repeat("\t", 100_000),
	"cr":         strings.Repeat("\r", 100_000),
	"nul":        strings.Repeat("\x00", 100_000),
	"long word":  strings.Repeat("x", 1_000_000),
	"commas":     "[" + strings.Repeat(",", 50_000),
	"stars":      strings.Repeat("*a ", 20_000),
	"percent":    strings.Repeat("%YAML 1.2\n", 10_000),
	"dash":       strings.Repeat("-\n", 50_000),
	"bom":        strings.Repeat("\ufeff", 50_000),
}

// Whatever a text costs a reader of YAML, it is refused or read in a moment; before the bounds some of these took minutes.
func TestCostlyFiles(t *testing.T) {
	for name, text := range costly {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := make(chan error, 1)
			go func() {
				_, err := jobfile.Parse("f.yaml", []byte(text))
				done <- err
			}()
			select {
			case err := <-done:
				if es, ok := errors.AsType[jobfile.Errors](err); err != nil && (!ok || len(es) == 0 || len(es) > 10_000) {
					t.Errorf("%T %.200v", err, err)
				}
			case <-time.After(time.Minute): // far beyond any machine's slowness
				t.Errorf("%d bytes take more than a minute", len(text))
			}
		})
	}
}

const goodJob = "apiVersion: takt/v1\nkind: Job\nmetadata: {name: a}\nspec: {pool: p, handler: h}\n"

// What is usual stays possible.
func TestUsualFilesAreWithinTheBounds(t *testing.T) {
	anchors := "apiVersion: takt/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  pool: p\n  handler: h\n  params: {x: &x {a: 1, b: [1, 2]}, y: *x, z: {<<: *x, c: 3}}\n"
	long := goodJob + "# " + strings.Repeat("x", 100_000) + "\n---\n" + strings.Replace(goodJob, "handler: h", "handler: h, params: {l: ["+strings.Repeat("1, ", 3000)+"1]}", 1)
	deep := strings.Replace(goodJob, "handler: h", "handler: h, params: "+strings.Repeat("[", 40)+strings.Repeat("]", 40), 1)
	for name, text := range map[string]string{"anchors": anchors, "long": long, "deep": deep, "many": strings.Repeat(goodJob+"---\n", 2000)} {
		if docs, err := jobfile.Parse("f.yaml", []byte(text)); err != nil || len(docs) == 0 {
			t.Errorf("%s: %d documents, %.300v", name, len(docs), err)
		}
	}
}

// Any text gives documents or faults, each with a message, and places that are in the text.
func FuzzParse(f *testing.F) {
	f.Add(goodJob)
	f.Add("\ufeff" + strings.ReplaceAll(goodJob, "\n", "\r\n"))
	for _, text := range costly {
		f.Add(text[:min(len(text), 300)])
	}
	for _, w := range words {
		f.Add(hostileHead + "  params: " + w.yaml + "\n")
	}
	for _, c := range hostileFiles {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		docs, err := jobfile.Parse("f.yaml", []byte(text))
		if err == nil {
			for i := range docs {
				if docs[i].Job.Metadata.Name == "" || docs[i].Job.Spec.Pool == "" {
					t.Errorf("a document without name or pool was taken: %+v", docs[i].Job)
				}
			}
			return
		}
		es, ok := errors.AsType[jobfile.Errors](err)
		if !ok || len(es) == 0 || len(docs) > 0 {
			t.Fatalf("%d documents, %T %v", len(docs), err, err)
		}
		lines := strings.Count(text, "\n") + strings.Count(text, "\r") + 1
		for _, e := range es {
			if e.Message == "" || e.File != "f.yaml" || e.Line < 0 || e.Line > lines+1 || e.Column < 0 {
				t.Errorf("fault %+v in %d lines", e, lines)
			}
		}
	})
}
