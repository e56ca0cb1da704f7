package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/taktsched/takt"
)

// listing is an answer in all forms.
type listing struct {
	value  any // as the API gave it
	header []string
	rows   [][]string // the first cell is the name
	narrow int        // columns of the table; 0: all
	next   string
	lacks  string // what is missing in it
}

// print writes the listing in a form of -o.
func (l *listing) print(w io.Writer, format string) error {
	switch {
	case isData(format):
		return printData(w, format, l.value)
	case format == "name":
		return printNames(w, l.rows)
	}
	header, rows := l.columns(format)
	return printTable(w, header, rows)
}

func printNames(w io.Writer, rows [][]string) error {
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, printable(row[0])); err != nil {
			return fmt.Errorf("write the names: %w", err)
		}
	}
	return nil
}

// columns are the header and the rows of a form: the table leaves the columns of wide out.
func (l *listing) columns(format string) (header []string, rows [][]string) {
	if format == "wide" || l.narrow == 0 {
		return l.header, l.rows
	}
	for _, row := range l.rows {
		rows = append(rows, row[:l.narrow])
	}
	return l.header[:l.narrow], rows
}

// watched shows a listing again and again.
type watched struct {
	out    io.Writer
	format string
	size   func() (width, height int) // of the terminal; nil: it is none
	shown  int                        // lines that stand there now and may be rewritten
	known  map[string]bool            // what was appended and still stands
	widths []int                      // columns only grow, so that appended lines stand below each other
	begun  bool
}

// newWatched is for the standard output of a command.
func newWatched(cmd *cobra.Command, format string) *watched {
	file, isFile := cmd.OutOrStdout().(*os.File)
	w := watched{out: cmd.OutOrStdout(), format: format}
	if isFile && isatty.IsTerminal(file.Fd()) {
		w.size = func() (width, height int) {
			width, height, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return 0, 0 // then nothing fits, and lines are appended
			}
			return width, height
		}
	}
	return &w
}

// checkWatch judges -w and --every.
func checkWatch(watch bool, every time.Duration, format, forms string) error {
	if watch && (every < 100*time.Millisecond || isData(format) && format != "jsonl") {
		return usage("-w goes with the forms " + forms + ", and --every is at least 100ms")
	}
	return nil
}

// addWatch adds the flags of -w.
func addWatch(f *pflag.FlagSet, watch *bool, every *time.Duration) {
	f.BoolVarP(watch, "watch", "w", false, "go on showing what changes until Ctrl-C: rewritten on a terminal, appended elsewhere")
	f.DurationVar(every, "every", time.Second, "how often -w looks")
}

// follow shows what was asked for, and what it becomes until the command is stopped.
func follow[T any](cmd *cobra.Command, every time.Duration, now T, show func(T) error, again func() (T, error)) error {
	ctx := cmd.Context()
	tick := time.NewTicker(every)
	defer tick.Stop()
	away := false
	for {
		if err := show(now); err != nil {
			return err
		}
		for known := false; !known; {
			select {
			case <-ctx.Done():
				return &failure{code: endedBy(ctx)}
			case <-tick.C:
			}
			next, err := again()
			switch {
			case err == nil:
				away, known, now = false, true, next
			case ctx.Err() != nil:
				return &failure{code: endedBy(ctx)}
			case !errors.Is(err, takt.ErrUnavailable):
				return explain(context.WithoutCancel(ctx), "cannot go on watching", err)
			default:
				if !away {
					fmt.Fprintln(cmd.ErrOrStderr(), "no server answers, asking on: "+printable(err.Error()))
				}
				away = true
			}
		}
	}
}

// tell is show for an account: what is appended is all of it, when what the server says has changed.
func (w *watched) tell(a *account) error {
	var text strings.Builder
	if w.size != nil && !isData(w.format) {
		if err := a.print(&text); err != nil {
			return err
		}
		if lines, fits := w.fits(text.String()); fits {
			return w.rewrite(text.String(), lines)
		}
		w.shown = 0
		text.Reset()
	}
	value, err := json.Marshal(a.value)
	if err != nil {
		return fmt.Errorf("write the account: %w", err)
	}
	if w.known[string(value)] {
		return nil
	}
	w.known = map[string]bool{string(value): true}
	if isData(w.format) {
		text.WriteString(string(value) + "\n")
	} else {
		if w.begun {
			text.WriteString("\n")
		}
		if err := a.print(&text); err != nil {
			return err
		}
	}
	w.begun = true
	if _, err := io.WriteString(w.out, text.String()); err != nil {
		return fmt.Errorf("write what changed: %w", err)
	}
	return nil
}

// show rewrites its own rows on a terminal in which they fit, and touches nothing above them; else it appends what is new
// since the last time.
func (w *watched) show(l *listing) error {
	if w.size != nil && !isData(w.format) {
		var text strings.Builder
		if err := l.print(&text, w.format); err != nil {
			return err
		}
		if lines, fits := w.fits(text.String()); fits {
			return w.rewrite(text.String(), lines)
		}
		w.shown = 0
	}
	lines, err := w.lines(l)
	if err != nil {
		return err
	}
	now := make(map[string]bool, len(lines))
	for _, line := range lines {
		now[line.key] = true
		if w.known[line.key] {
			continue
		}
		if _, err := fmt.Fprintln(w.out, line.text); err != nil {
			return fmt.Errorf("write what changed: %w", err)
		}
	}
	w.known = now
	return nil
}

// fits tells how many lines a text has, and whether all can stand on the terminal at once without being broken.
func (w *watched) fits(text string) (lines int, fits bool) {
	width, height := w.size()
	for line := range strings.Lines(text) {
		lines++
		if cells.StringWidth(strings.TrimSuffix(line, "\n")) >= width {
			return lines, false
		}
	}
	return lines, lines < height && w.shown < height
}

func (w *watched) rewrite(text string, lines int) error {
	if w.shown > 0 {
		text = fmt.Sprintf("\x1b[%dA\r\x1b[J", w.shown) + text // up to its first row, and what is below it away
	}
	w.shown = lines
	if _, err := io.WriteString(w.out, text); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	return nil
}

// watchLine is a line, and what it says apart from times that pass by themselves.
type watchLine struct{ key, text string }

func (w *watched) lines(l *listing) (lines []watchLine, err error) {
	if isData(w.format) {
		items, err := itemsOf(l.value)
		for _, item := range items {
			lines = append(lines, watchLine{string(item), string(item)})
		}
		return lines, err
	}
	if w.format == "name" {
		for _, row := range l.rows {
			lines = append(lines, watchLine{row[0], printable(row[0])})
		}
		return lines, nil
	}
	header, rows := l.columns(w.format)
	if w.widths == nil {
		w.widths = make([]int, len(header))
	}
	widen(w.widths, header)
	for _, row := range rows {
		widen(w.widths, row)
	}
	if !w.begun {
		w.begun = true
		lines = append(lines, watchLine{"", padded(header, w.widths)})
	}
	for _, row := range rows {
		steady := slices.Clone(row)
		for i := range steady {
			if slices.Contains(passing, header[i]) {
				steady[i] = ""
			}
		}
		lines = append(lines, watchLine{padded(steady, w.widths[:0]), padded(row, w.widths)})
	}
	return lines, nil
}

// passing are the columns that change although nothing happens.
var passing = []string{"NEXT", "LAST", "PLANNED", "TOOK", "LEASE", "BEAT", "OPENED", "STARTED", "ENDED", "SKEW", "UP", "CLOCK"}
