package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/taktsched/takt"
)

func sampleListing(state, took string) *listing {
	return &listing{header: []string{"EXECUTION", "JOB", "STATE", "TOOK", "POOL"}, narrow: 4,
		rows:  [][]string{{"e1", "月度账单", state, took, "billing"}, {"e2", "b", "running", took, "p"}},
		value: takt.ExecutionList{Items: []takt.Execution{{ID: "e1", State: state}, {ID: "e2", State: "running"}}}}
}

func TestForms(t *testing.T) {
	for format, want := range map[string]string{
		"table": "EXECUTION  JOB       STATE    TOOK\ne1         月度账单  failed   1s\ne2         b         running  1s\n",
		"wide":  "EXECUTION  JOB       STATE    TOOK  POOL\ne1         月度账单  failed   1s    billing\ne2         b         running  1s    p\n",
		"name":  "e1\ne2\n",
	} {
		var out bytes.Buffer
		if err := sampleListing("failed", "1s").print(&out, format); err != nil || out.String() != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", format, err, out.String(), want)
		}
	}
	var out bytes.Buffer
	if err := sampleListing("failed", "1s").print(&out, "jsonl"); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], `{"id":"e1"`) {
		t.Errorf("jsonl: %q", lines)
	}
	out.Reset()
	if err := sampleListing("failed", "1s").print(&out, "yaml"); err != nil || !strings.HasPrefix(out.String(), "items:\n  - id: e1\n") {
		t.Errorf("yaml: %v %s", err, out.String())
	}
	// A list without items is no line, not the line of an empty list.
	out.Reset()
	if err := printData(&out, "jsonl", takt.JobList{Items: []takt.Job{}}); err != nil || out.Len() != 0 {
		t.Errorf("an empty list as jsonl: %v %q", err, out.String())
	}
}

// On a terminal the rows are rewritten where they stand, if they fit; in a pipe a line comes when something but the time has changed.
func TestWatch(t *testing.T) {
	steps := []*listing{sampleListing("running", "1s"), sampleListing("running", "2s"), sampleListing("failed", "3s")}
	for _, c := range []struct {
		name   string
		height int // of the terminal; 0: there is none
		format string
		want   string
	}{
		{"pipe", 0, "table", "EXECUTION  JOB       STATE    TOOK\ne1         月度账单  running  1s\ne2         b         running  1s\ne1         月度账单  failed   3s\n"},
		{"names", 0, "name", "e1\ne2\n"},
		{"terminal", 3, "name", "e1\ne2\n\x1b[2A\r\x1b[Je1\ne2\n\x1b[2A\r\x1b[Je1\ne2\n"},
		{"low terminal", 2, "name", "e1\ne2\n"},
	} {
		var out bytes.Buffer
		w := watched{out: &out, format: c.format}
		if c.height > 0 {
			w.size = func() (int, int) { return 80, c.height }
		}
		for _, l := range steps {
			if err := w.show(l); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", c.name, out.String(), c.want)
		}
	}
	var out bytes.Buffer
	w := watched{out: &out, format: "jsonl", size: func() (int, int) { return 80, 24 }}
	for _, l := range steps {
		if err := w.show(l); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("jsonl: %d lines, want 3:\n%s", n, out.String())
	}
}

// What is described goes on as what is listed does: an account is told again when what the server says has changed, not when only time
// has passed.
func TestWatchAccount(t *testing.T) {
	at := func(state, age string) *account {
		a := &account{value: map[string]string{"state": state}}
		a.fact("State", state)
		a.fact("Started", age+" ago")
		return a
	}
	steps := []*account{at("running", "1s"), at("running", "2s"), at("done", "3s")}
	const first, last = "State:    running\nStarted:  1s ago\n", "State:    done\nStarted:  3s ago\n"
	for _, c := range []struct {
		name   string
		height int
		format string
		want   string
	}{
		{"pipe", 0, "table", first + "\n" + last},
		{"jsonl", 24, "jsonl", "{\"state\":\"running\"}\n{\"state\":\"done\"}\n"},
		{"terminal", 24, "table", first + "\x1b[2A\r\x1b[J" + strings.Replace(first, "1s", "2s", 1) + "\x1b[2A\r\x1b[J" + last},
		{"low terminal", 2, "table", first + "\n" + last},
	} {
		var out bytes.Buffer
		w := watched{out: &out, format: c.format}
		if c.height > 0 {
			w.size = func() (int, int) { return 80, c.height }
		}
		for _, a := range steps {
			if err := w.tell(a); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", c.name, out.String(), c.want)
		}
	}
}
