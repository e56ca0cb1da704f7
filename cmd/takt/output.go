package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
)

// addOutput adds -o, which is table or json.
func addOutput(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVarP(format, "output", "o", "table", "table or json")
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if *format != "table" && *format != "json" {
			return usage(fmt.Sprintf("-o %s: it must be table or json", *format))
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
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
		for i := range row {
			row[i] = printable(row[i])
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
	}
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(runewidth.FillRight(cell, widths[i]))
			line.WriteString("  ")
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
	}
	return nil
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

// age is a length of time in at most two units, such as 5m12s.
func age(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d < time.Second:
		return fmt.Sprintf("%s%dms", sign, d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%s%.1fs", sign, d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%s%ds", sign, int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%s%dm%ds", sign, int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%s%dh%dm", sign, int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%s%dd%dh", sign, int(d.Hours())/24, int(d.Hours())%24)
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
