package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/schedule"
)

const maxCronCount = 1000

// cronItem is one planned instant as `takt cron next -o json` prints it.
type cronItem struct {
	At    string `json:"at"`             // RFC 3339, UTC
	Local string `json:"local"`          // RFC 3339 with the offset of the time zone
	Note  string `json:"note,omitempty"` // what a step of the clock did
}

func newCronCommand() *cobra.Command {
	cron := &cobra.Command{Use: "cron", Short: "Look at cron expressions; needs no server"}
	cron.AddCommand(newCronNextCommand())
	return cron
}

func newCronNextCommand() *cobra.Command {
	var (
		zone, from, format string
		count              int
	)
	cmd := &cobra.Command{
		Use:   `next "EXPR"`,
		Short: "Show the next planned instants of a cron expression",
		Long: `Show the next planned instants of a cron expression, and what steps of the clock do to them.

Five fields: minute hour day-of-month month day-of-week; with six, seconds come first.
Or one of @hourly @daily @weekly @monthly @yearly.`,
		Example: `  takt cron next "30 2 * * 1-5" --tz Europe/Berlin -n 3
  takt cron next "0 * * * *" --tz America/New_York --from 2026-03-08T00:00 -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(`one expression is needed, in quotes: takt cron next "30 2 * * *"`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			items, err := cronNext(schedule.Spec{Cron: args[0], TimeZone: zone}, from, count)
			if err != nil {
				return err
			}
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, map[string][]cronItem{"items": items})
			}
			rows := make([][]string, 0, len(items))
			for _, i := range items {
				rows = append(rows, []string{i.Local, i.At, i.Note})
			}
			return printTable(cmd.OutOrStdout(), []string{"LOCAL", "UTC", "NOTE"}, rows)
		},
	}
	f := cmd.Flags()
	f.StringVar(&zone, "tz", "", "time zone, an IANA name (default UTC)")
	f.StringVar(&from, "from", "", "show what comes after this instant: RFC 3339, or 2026-03-08T00:00 in the time zone (default now)")
	f.IntVarP(&count, "count", "n", 5, fmt.Sprintf("how many to show, at most %d", maxCronCount))
	f.String("namespace", "", "") // hides the global flag, which would claim -n and has no meaning here
	if err := f.MarkHidden("namespace"); err != nil {
		panic(err) // the flag was defined the line before
	}
	addOutput(cmd, &format)
	return cmd
}

func cronNext(spec schedule.Spec, from string, count int) ([]cronItem, error) {
	if count < 1 || count > maxCronCount {
		return nil, usage(fmt.Sprintf("-n %d: it must be from 1 to %d", count, maxCronCount))
	}
	s, err := schedule.Parse(spec, time.Time{})
	if bad, ok := errors.AsType[*schedule.Error](err); ok {
		return nil, &failure{code: exitUsage, what: fmt.Sprintf("%.*q", schedule.MaxText, spec.Cron), why: bad.Error(), todo: bad.Hint}
	} else if err != nil {
		return nil, err
	}
	zone := schedule.Zone(s)
	at, err := cronFrom(from, zone)
	if err != nil {
		return nil, err
	}
	items := []cronItem{}
	for range count {
		next, ok := s.Next(at)
		if !ok {
			break
		}
		items = append(items, cronItem{At: next.UTC().Format(time.RFC3339), Local: next.In(zone).Format(time.RFC3339), Note: schedule.Note(s, next)})
		at = next
	}
	return items, nil
}

// cronFrom reads --from; a text without an offset is read on the clocks of the zone.
func cronFrom(text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Now(), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usage(fmt.Sprintf("--from %.64q: it must be an instant such as 2026-03-08T00:00:00Z or 2026-03-08T00:00", text))
}
