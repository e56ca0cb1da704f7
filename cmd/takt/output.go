package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/schedule"
)

// The forms of -o. Data forms carry what the API said, for programs; the others are for people.
var (
	dataForms = []string{"json", "jsonl", "yaml"}
	oneForms  = append([]string{"table"}, dataForms...)
	listForms = append([]string{"table", "wide", "name"}, dataForms...)
)

// addOutput adds -o to a command that shows one thing.
func addOutput(cmd *cobra.Command, format *string) { addForms(cmd, format, oneForms) }

// addListOutput adds -o to a command that shows objects in rows.
func addListOutput(cmd *cobra.Command, format *string) { addForms(cmd, format, listForms) }

func addForms(cmd *cobra.Command, format *string, forms []string) {
	known := strings.Join(forms[:len(forms)-1], ", ") + " or " + forms[len(forms)-1]
	templates := forms[0] == "table"
	if templates {
		known = strings.Join(forms, ", ") + ", jsonpath=EXPR or go-template=TEXT"
	}
	cmd.Flags().StringVarP(format, "output", "o", forms[0], known)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if templates && isTemplate(*format) {
			if _, err := parseTemplate(*format); err != nil {
				return err
			}
		} else if !slices.Contains(forms, *format) {
			return usage(fmt.Sprintf("-o %s: it must be %s", *format, known))
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
}

// isData tells that a form is one for programs.
func isData(format string) bool { return slices.Contains(dataForms, format) || isTemplate(format) }

// printData writes a value in a form for programs. As jsonl a list is its items, one on each line.
func printData(w io.Writer, format string, v any) error {
	if isTemplate(format) {
		t, err := parseTemplate(format)
		if err != nil {
			return err
		}
		return t.print(w, v)
	}
	switch format {
	case "yaml":
		text, err := yamlOf(v)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	case "jsonl":
		items, err := itemsOf(v)
		if err != nil {
			return err
		}
		for _, line := range items {
			if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
				return fmt.Errorf("write the result: %w", err)
			}
		}
		return nil
	}
	return printJSON(w, v)
}

// itemsOf is the compact JSON of each item of a list; of anything else, its own.
func itemsOf(v any) ([]json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write the result: %w", err)
	}
	var plain []json.RawMessage
	if err := json.Unmarshal(buf.Bytes(), &plain); err == nil {
		return plain, nil
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(buf.Bytes(), &list); err == nil && list.Items != nil {
		return list.Items, nil
	}
	return []json.RawMessage{bytes.TrimRight(buf.Bytes(), "\n")}, nil
}

// printJSON writes one value, indented.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// printTable writes rows under a header, padded by display cells: a Chinese character takes two.
func printTable(w io.Writer, header []string, rows [][]string) error {
	all := append([][]string{header}, rows...)
	widths := make([]int, len(header))
	for _, row := range all {
		widen(widths, row)
	}
	for _, row := range all {
		if _, err := fmt.Fprintln(w, padded(row, widths)); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
	}
	return nil
}

// cells counts display cells. Characters of ambiguous width count as one, whatever the locale says.
var cells = &runewidth.Condition{StrictEmojiNeutral: true}

// widen makes every column wide enough for the row.
func widen(widths []int, row []string) {
	for i := range row {
		widths[i] = max(widths[i], cells.StringWidth(printable(row[i])))
	}
}

// padded is a row as a line, without blanks at its end. Columns without a width are not padded.
func padded(row []string, widths []int) string {
	var line strings.Builder
	for i, cell := range row {
		cell = printable(cell)
		if i < len(widths) {
			cell = cells.FillRight(cell, widths[i])
		}
		line.WriteString(cell)
		line.WriteString("  ")
	}
	return strings.TrimRight(line.String(), " ")
}

// printable makes a cell of a text that others wrote: no control character reaches the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return '\uFFFD'
		}
		return r
	}, s)
}

// counted is a number of things in words, such as 1 fault and 2 faults.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// age is a length of time in at most two units, such as 5m12s: what is finer would only make columns wide.
func age(d time.Duration) string {
	unit := time.Hour
	switch a := d.Abs(); {
	case a < time.Second:
		unit = time.Millisecond
	case a < 10*time.Second:
		unit = 100 * time.Millisecond
	case a < time.Hour:
		unit = time.Second
	case a < 24*time.Hour:
		unit = time.Minute
	}
	return schedule.Length(d.Truncate(unit))
}

// since is the age of an instant, "" when there is none; one in the future is "in 5m".
func since(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	if d := time.Until(*t); d > 0 {
		return "in " + age(d)
	}
	return age(time.Since(*t))
}
