package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/taktsched/takt"
)

// TestC71Harmless: on a terminal no byte of a log has an effect but to be seen.
func TestC71Harmless(t *testing.T) {
	for in, want := range map[string]string{
		"plain, 中文 😀\ttab":          "plain, 中文 😀\ttab",
		"\x1b[31mred":               `\x1b[31mred`,
		"\x1b]8;;http://evil\alink": `\x1b]8;;http://evil\x07link`,
		"a\u202eb\u2066c":           `a\u202eb\u2066c`,
		"c1 \u009b2J":               `c1 \x9b2J`,
		"nul\x00 del\x7f cr\r":      `nul\x00 del\x7f cr\x0d`,
		"\u2028":                    `\u2028`,
	} {
		if got := harmless(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

func TestLogPrinter(t *testing.T) {
	entries := []takt.LogEntry{
		{Attempt: 1, Stream: "stdout", Text: "one\r"},
		{Attempt: 1, Stream: "stdout", Text: "pie", Partial: true},
		{Attempt: 1, Stream: "stdout", Text: "ce"},
		{Attempt: 1, Stream: "stdout", Text: "open", Partial: true},
		{Attempt: 1, Stream: "stderr", Text: "\ufffd\x1b[2J", Raw: []byte("\xff\x1b[2J"), Replaced: true},
		{Attempt: 1, Stream: "dropped", Dropped: &takt.Dropped{Lines: 3, Bytes: 9}},
		{Shard: 1, Attempt: 2, Stream: "log", Text: "last", Partial: true},
	}
	const notes = "-- shard 0, attempt 1: 3 lines (9 bytes) are missing here\n-- shard 1, attempt 2: from here on\n"
	for name, c := range map[string]struct {
		printer logPrinter
		want    string
	}{
		"pipe":     {logPrinter{}, "one\r\npiece\nopen\n\xff\x1b[2J\nlast"},
		"terminal": {logPrinter{terminal: true, harmless: true}, "one\npiece\nopen\n\ufffd\\x1b[2J\nlast\n"},
		"raw":      {logPrinter{terminal: true}, "one\r\npiece\nopen\n\xff\x1b[2J\nlast\n"},
		"shards":   {logPrinter{name: true}, "[0] one\r\n[0] piece\n[0] open\n[0] \xff\x1b[2J\n[1] last"},
	} {
		var out, said bytes.Buffer
		p := c.printer
		p.out, p.notes = bufio.NewWriter(&out), &said
		for i := range entries {
			if err := p.print(&entries[i], i%2 == 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.end(); err != nil || out.String() != c.want || said.String() != notes {
			t.Errorf("%s: %q and %q, %v; want %q", name, out.String(), said.String(), err, c.want)
		}
	}
	var out bytes.Buffer
	p := logPrinter{out: bufio.NewWriter(&out), jsonl: true}
	for i := range entries {
		if err := p.print(&entries[i], false); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.end(); err != nil || strings.Count(out.String(), "\n") != len(entries) || strings.ContainsAny(out.String(), "\x1b\x00") {
		t.Errorf("jsonl %q, %v", out.String(), err)
	}
}
