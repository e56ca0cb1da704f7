package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

// logs holds the flags of the command.
type logs struct {
	shard, attempt int
	follow, raw    bool
	times          bool
	since, grep    string
	format         string
}

func newLogsCommand(g *global) *cobra.Command {
	var l logs
	cmd := &cobra.Command{
		Use:   "logs EXECUTION",
		Short: "Read or follow the log of an execution",
		Long: `Read the log of an execution: what its handlers wrote, in the order in which the server took it in.

With -f it waits for more and ends by itself, with exit code 0, when the execution has ended and everything was read. It
goes on where it stood when the server is away for a while. Lines that the worker or the server had no room for are
counted where they are missing, on standard error.

On a terminal control characters are shown as escapes, so that a log cannot play tricks; --raw shows them as they are. In a
pipe, bytes are what was written.`,
		Example: `  takt logs 06cw1bq0fr8j1x4cw6h3ybkq2c -f
  takt logs 06cw1bq0fr8j1x4cw6h3ybkq2c --shard 3 --since 10m --grep 'error|warn'
  takt logs 06cw1bq0fr8j1x4cw6h3ybkq2c -o jsonl | jq -r .text
  takt logs 06cw1bq0fr8j1x4cw6h3ybkq2c -o json | jq -r .items[].text`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("shard") && l.shard < 0 || cmd.Flags().Changed("attempt") && l.attempt < 1 {
				return usage("--shard counts from 0 and --attempt from 1; without them all are shown")
			}
			c, err := g.client()
			if err != nil {
				return err
			}
			return l.run(cmd, c, args[0])
		},
	}
	f := cmd.Flags()
	f.IntVar(&l.shard, "shard", -1, "only of this shard")
	f.IntVar(&l.attempt, "attempt", 0, "only of this attempt, counted from 1")
	f.BoolVarP(&l.follow, "follow", "f", false, "wait for more until the execution has ended")
	f.StringVar(&l.since, "since", "", "only lines that reached the server since then: a length of time such as 10m, or an instant in RFC 3339")
	f.StringVar(&l.grep, "grep", "", "only lines that this regular expression finds something in")
	f.BoolVarP(&l.times, "timestamps", "t", false, "put the time in front of each line")
	f.BoolVar(&l.raw, "raw", false, "control characters as they are, also on a terminal")
	addForms(cmd, &l.format, []string{"text", "json", "jsonl", "yaml"})
	return cmd
}

func (l *logs) run(cmd *cobra.Command, c *takt.Client, execution string) error {
	q, match, err := l.query(time.Now())
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	what := "cannot read the log of execution " + execution
	p := &logPrinter{out: bufio.NewWriter(cmd.OutOrStdout()), notes: cmd.ErrOrStderr(), jsonl: l.format == "jsonl", times: l.times, match: match, entries: []takt.LogEntry{}}
	if f, ok := cmd.OutOrStdout().(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		p.terminal, p.harmless = true, !l.raw
	}
	p.whole = l.format == "json" || l.format == "yaml"
	e, err := c.Execution(ctx, execution)
	if err != nil {
		return explain(ctx, what, err)
	}
	if l.shard >= e.Shards {
		return &failure{code: exitNotFound, what: what, why: fmt.Sprintf("it has %s, and --shard %d is none of them", counted(e.Shards, "shard"), l.shard),
			todo: fmt.Sprintf("name one of 0 to %d; `takt get shards %s` lists them", e.Shards-1, execution)}
	}
	p.name = l.shard < 0 && e.Shards > 1
	var dropped *takt.Dropped
	if l.follow {
		q.OnRetry = func(err error) {
			if !p.waiting {
				fmt.Fprintf(p.notes, "the server is away (%s); going on when it is back\n", printable(err.Error()))
			}
			p.waiting = true
		}
		dropped, err = c.FollowLogs(ctx, execution, q, func(e takt.LogEntry) error {
			p.waiting = false
			return p.print(&e, true)
		})
	} else {
		dropped, err = l.read(ctx, c, execution, q, p)
	}
	if e := p.end(); e != nil && err == nil {
		return fmt.Errorf("write the log: %w", e)
	}
	if l.follow && ctx.Err() != nil {
		return &failure{code: endedBy(ctx)} // who follows a log ends that so
	}
	if err == nil && l.attempt > 0 && !p.any {
		err = l.noSuchAttempt(ctx, c, &e)
	}
	if err != nil {
		return explain(ctx, what, err)
	}
	if p.whole {
		return printData(cmd.OutOrStdout(), l.format, wholeLog{Items: p.entries, Dropped: dropped})
	}
	if dropped != nil {
		fmt.Fprintf(p.notes, "%d lines (%d bytes) of this log are missing: there was no room for them\n", dropped.Lines, dropped.Bytes)
	}
	return nil
}

// wholeLog is a log as one value: of an attempt at most what the server keeps of it.
type wholeLog struct {
	Items   []takt.LogEntry `json:"items"`
	Dropped *takt.Dropped   `json:"dropped,omitempty"`
}

// query makes the query of the flags.
func (l *logs) query(now time.Time) (q takt.LogQuery, match *regexp.Regexp, err error) {
	q.Attempt, q.Limit = l.attempt, 5000
	if l.shard >= 0 {
		q.Shard = &l.shard
	}
	if l.follow && (l.format == "json" || l.format == "yaml") {
		return q, nil, usage("-f goes with the forms text and jsonl: the others are one whole")
	}
	if l.grep != "" {
		if match, err = regexp.Compile(l.grep); err != nil {
			return q, nil, usage("--grep: " + err.Error())
		}
	}
	if l.since != "" {
		if d, e := time.ParseDuration(l.since); e == nil && d >= 0 {
			q.Since = now.Add(-d)
			return q, match, nil
		}
		if q.Since, err = sinceOf(l.since, now); err != nil {
			return q, nil, err
		}
	}
	return q, match, nil
}

// read reads what is there now.
func (l *logs) read(ctx context.Context, c *takt.Client, execution string, q takt.LogQuery, p *logPrinter) (*takt.Dropped, error) {
	for {
		list, err := c.Logs(ctx, execution, q)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if err := p.print(&list.Items[i], false); err != nil {
				return nil, err
			}
		}
		if q.After = list.Next; !list.More {
			return list.Dropped, nil
		}
	}
}

// noSuchAttempt refuses an attempt that no shard had; nil when one had it.
func (l *logs) noSuchAttempt(ctx context.Context, c *takt.Client, e *takt.Execution) error {
	newest := 0
	for page := (takt.Page{Limit: 500}); ; {
		list, err := c.Shards(ctx, e.ID, page)
		if err != nil {
			return err
		}
		for i := range list.Items {
			if s := &list.Items[i]; l.shard < 0 || s.Index == l.shard {
				newest = max(newest, s.Attempt)
			}
		}
		if page.After = list.Next; list.Next == "" || newest >= l.attempt {
			break
		}
	}
	if newest >= l.attempt {
		return nil
	}
	had := "no attempt was begun yet"
	if newest > 0 {
		had = fmt.Sprintf("the newest attempt is %d", newest)
	}
	return &failure{code: exitNotFound, what: "cannot read the log of execution " + e.ID,
		why:  fmt.Sprintf("%s, and --attempt %d is none of those begun", had, l.attempt),
		todo: fmt.Sprintf("`takt describe execution %s` lists them", e.ID)}
}

// logSource is what a line must share with the line before to go on where that stopped.
type logSource struct {
	shard, attempt int
	stream         string
}

// logPrinter writes entries to standard output and what there is to say of them to standard error.
type logPrinter struct {
	out                *bufio.Writer
	notes              io.Writer
	jsonl, times, name bool
	whole              bool // entries are kept and printed at the end, as one value
	entries            []takt.LogEntry
	terminal, harmless bool
	match              *regexp.Regexp
	waiting            bool // for a server, and that was said
	any                bool // an entry came, shown or not
	open               bool // the newest line has no newline
	last               logSource
	attempts           map[int]int // newest one by shard
}

func (p *logPrinter) print(e *takt.LogEntry, flush bool) error {
	p.any = true
	if p.match != nil && e.Dropped == nil && !p.match.MatchString(e.Text) {
		return nil
	}
	if flush {
		defer func() { _ = p.out.Flush() }() // its error stays and is found at the end
	}
	if p.whole {
		p.entries = append(p.entries, *e)
		return nil
	}
	if p.jsonl {
		enc := json.NewEncoder(p.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(e)
	}
	if e.Dropped != nil {
		return p.note(fmt.Sprintf("%d lines (%d bytes) are missing here", e.Dropped.Lines, e.Dropped.Bytes), e)
	}
	if p.attempts == nil {
		p.attempts = map[int]int{}
	}
	if before := p.attempts[e.Shard]; before != e.Attempt {
		p.attempts[e.Shard] = e.Attempt
		if before > 0 || e.Attempt > 1 {
			if err := p.note("from here on", e); err != nil {
				return err
			}
		}
	}
	from := logSource{e.Shard, e.Attempt, e.Stream}
	if p.open && p.last != from {
		p.newline()
	}
	if !p.open {
		p.prefix(e)
	}
	p.text(e)
	p.last, p.open = from, true
	if !e.Partial {
		p.newline()
	}
	return nil
}

func (p *logPrinter) newline() {
	_ = p.out.WriteByte('\n') // a bufio.Writer keeps its first error for Flush
	p.open = false
}

func (p *logPrinter) prefix(e *takt.LogEntry) {
	if p.times {
		_, _ = fmt.Fprintf(p.out, "%s ", e.Time.Format("2006-01-02T15:04:05.000Z07:00"))
	}
	if p.name {
		_, _ = fmt.Fprintf(p.out, "[%d] ", e.Shard)
	}
}

func (p *logPrinter) text(e *takt.LogEntry) {
	switch {
	case p.harmless:
		text := e.Text
		if !e.Partial {
			text = strings.TrimSuffix(text, "\r")
		}
		_, _ = p.out.WriteString(harmless(text))
	case len(e.Raw) > 0:
		_, _ = p.out.Write(e.Raw)
	default:
		_, _ = p.out.WriteString(e.Text)
	}
}

// note says something about a place of the log.
func (p *logPrinter) note(what string, e *takt.LogEntry) error {
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	if p.open && p.terminal {
		p.newline()
		_ = p.out.Flush()
	}
	if _, err := fmt.Fprintf(p.notes, "-- shard %d, attempt %d: %s\n", e.Shard, e.Attempt, what); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	return nil
}

func (p *logPrinter) end() error {
	if p.open && p.terminal {
		p.newline()
	}
	return p.out.Flush()
}

// harmless shows control characters and those that turn the direction of text as escapes.
func harmless(s string) string {
	bad := func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
	}
	if !strings.ContainsFunc(s, bad) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !bad(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
