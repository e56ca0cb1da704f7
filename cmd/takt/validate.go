package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/jobfile"
	"github.com/taktsched/takt/internal/schedule"
)

func newValidateCommand(g *global) *cobra.Command {
	var d documents
	var online bool
	var format string
	cmd := &cobra.Command{
		Use:   "validate -f FILE|DIR|-",
		Short: "Check job files without a server",
		Long: `Check job files without a server: the rules of the API's schema and of schedules. Faults are shown with
file, line and column; schedules that never fire, for their time has passed or the calendars of the files leave them nothing, come with a
warning. With --online the server judges them too; nothing is written either way.`,
		Example: `  takt validate -f jobs/ -R`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			docs, err := d.read(cmd, g)
			if err != nil {
				return err
			}
			warnings := warningsAt(docs, time.Now())
			if online {
				c, err := g.client()
				if err != nil {
					return err
				}
				in := setOf(docs, g)
				in.DryRun = true
				out, err := c.Apply(cmd.Context(), in)
				if err != nil {
					return refusedSet(cmd, "the server refuses "+countedDocuments(docs), docs, err)
				}
				warnings = append(warnings, warningsOf(docs, &out)...)
			}
			warn(cmd.ErrOrStderr(), warnings)
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, map[string]int{"valid": len(docs)})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s, no fault\n", counted(len(docs), "document"))
			return err
		},
	}
	d.addFlags(cmd)
	cmd.Flags().BoolVar(&online, "online", false, "let the server judge too")
	addOutput(cmd, &format)
	return cmd
}

// warningsAt are about schedules that do not fire (again): the time of what they name has passed, or the calendars of the same files leave
// nothing open.
func warningsAt(docs []jobfile.Doc, now time.Time) (all jobfile.Errors) {
	_, known := lintCalendars(docs)
	for i := range docs {
		passed := docs[i].Passed(now)
		all = append(all, passed...)
		for _, one := range schedulesOf(&docs[i], known) {
			if slices.ContainsFunc(passed, func(e *jobfile.Error) bool { return strings.HasPrefix(e.Field, one.field+".") }) {
				continue
			}
			s, err := schedule.Parse(one.spec, time.Unix(0, 0))
			if bad, ok := errors.AsType[*schedule.Error](err); ok {
				all = append(all, docs[i].At(one.field+"."+bad.Field, bad.Message, bad.Hint))
				continue
			}
			for _, found := range lintClosed(&one, s) {
				all = append(all, docs[i].At(one.field+".calendars", found.Text, found.Hint))
			}
		}
	}
	return all
}
