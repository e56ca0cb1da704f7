package main

import (
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

// who holds the flags of commands that change something.
type who struct {
	author string
	reason string
}

func (w *who) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.author, "author", "", "who makes the change (default: you, as user@host)")
	f.StringVar(&w.reason, "reason", "", "why; it is kept with the change")
	alsoEnv(f, "author")
}

// name is --author, else user@host.
func (w *who) name() string {
	if w.author != "" {
		return w.author
	}
	name := "somebody"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		name += "@" + host
	}
	return name
}

func (w *who) options(ifRevision int64) takt.ChangeOptions {
	return takt.ChangeOptions{Author: w.name(), Reason: w.reason, IfRevision: ifRevision}
}

// set holds the flags of commands that put a set of documents to the server.
type set struct {
	documents
	prune    bool
	selector string
}

func (s *set) addFlags(cmd *cobra.Command) {
	s.documents.addFlags(cmd)
	cmd.Flags().BoolVar(&s.prune, "prune", false, "delete jobs with the labels of -l that are not in the files, in the namespaces of the files")
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "labels of --prune, such as app=billing,tier!=1")
}

// check refuses --prune without labels, which would delete all jobs of others, and labels without --prune.
func (s *set) check() error {
	switch {
	case s.prune && strings.TrimSpace(s.selector) == "":
		return usage("--prune needs -l: it deletes jobs with these labels that are not in the files")
	case !s.prune && s.selector != "":
		return usage("-l is of use with --prune only")
	}
	return nil
}

type apply struct {
	set
	who
	g          *global
	dryRun     bool
	ifRevision int64
	format     string
}

func newApplyCommand(g *global) *cobra.Command {
	a := apply{g: g}
	cmd := &cobra.Command{
		Use:   "apply -f FILE|DIR|-",
		Short: "Create or change jobs and calendars as files say, all or nothing",
		Long: `Create or change jobs and calendars as files say. A file holds one or more YAML documents; of a directory, its .yaml,
.yml and .json files are read; - is standard input. Every file is read and checked before anything is
written, and the server writes all documents or none; jobs may name calendars of the same files.

For each job it prints what became of it and its next five planned instants. Nothing of the past fires.
A changed calendar changes the instants of the jobs that name it. With --prune, jobs that have the labels of -l and are not in the files are deleted; what they run ends as
usual.`,
		Example: `  takt apply -f jobs/ -R --reason "new tariff"
  takt apply -f jobs/ --prune -l app=billing --dry-run
  takt get jobs reindex -o json | takt apply -f - --if-revision 3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd) },
	}
	a.set.addFlags(cmd)
	a.who.addFlags(cmd)
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "let the server judge everything and write nothing")
	cmd.Flags().Int64Var(&a.ifRevision, "if-revision", 0, "refuse unless the job stands at this revision; for a single document")
	addOutput(cmd, &a.format)
	return cmd
}

func (a *apply) run(cmd *cobra.Command) error {
	if err := a.check(); err != nil {
		return err
	}
	docs, err := a.read(cmd, a.g)
	if err != nil {
		return err
	}
	in := setOf(docs, a.g)
	in.DryRun, in.Author, in.Reason, in.Prune = a.dryRun, a.name(), a.reason, a.selector
	if a.ifRevision != 0 {
		if len(docs) != 1 || a.ifRevision < 0 {
			return usage("--if-revision is a revision, for a single document")
		}
		if len(in.Calendars) == 1 {
			in.Calendars[0].IfRevision = a.ifRevision
		} else {
			in.Documents[0].IfRevision = a.ifRevision
		}
	}
	c, err := a.g.client()
	if err != nil {
		return err
	}
	out, err := c.Apply(cmd.Context(), in)
	if err != nil {
		return refusedSet(cmd, "cannot apply "+countedDocuments(docs), docs, err)
	}
	warn(cmd.ErrOrStderr(), warningsOf(docs, &out))
	if isData(a.format) {
		return printData(cmd.OutOrStdout(), a.format, appliedList(&out))
	}
	for i := range out.Calendars {
		if err := printAppliedCalendar(cmd.OutOrStdout(), &out.Calendars[i], a.dryRun); err != nil {
			return err
		}
	}
	for i := range out.Items {
		if err := printApplied(cmd.OutOrStdout(), &out.Items[i], a.dryRun); err != nil {
			return err
		}
	}
	return nil
}

// applied is a job as apply has always printed it in JSON, with what became of it.
type applied struct {
	takt.Job
	Action  string             `json:"action"`
	Changes []takt.FieldChange `json:"changes,omitempty"`
	Fires   []takt.Fire        `json:"fires,omitempty"`
	Silence string             `json:"silence,omitempty"`

	Warnings []takt.ProblemError `json:"warnings,omitempty"`
}

func appliedList(r *takt.ApplyResult) any {
	list := struct {
		Calendars []takt.AppliedCalendar `json:"calendars,omitempty"`
		Items     []applied              `json:"items"`
		DryRun    bool                   `json:"dryRun,omitempty"`
	}{r.Calendars, []applied{}, r.DryRun}
	for _, x := range r.Items {
		if x.Job.Status != nil {
			x.Job.Status.Effect = x.Effect
		}
		list.Items = append(list.Items, applied{x.Job, x.Action, x.Changes, x.Fires, x.Silence, x.Warnings})
	}
	return list
}

func printApplied(w io.Writer, x *takt.AppliedJob, dry bool) error {
	m := &x.Job.Metadata
	line := fmt.Sprintf("%s %s, revision %d", m.Name, x.Action, m.Revision)
	if x.Effect == "pending" {
		line += ", pending"
	}
	if dry {
		line += " (dry run)"
	}
	if _, err := fmt.Fprintln(w, line); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	switch s := x.Job.Status; {
	case s != nil && s.Paused != nil && x.Action != "pruned":
		fmt.Fprintf(w, "  %s\n", printable(pausedText(s.Paused)))
	case x.Silence != "":
		fmt.Fprintf(w, "  no instant to come: %s\n", printable(x.Silence))
	}
	for _, f := range x.Fires {
		fmt.Fprintf(w, "  %s\n", printable(fireText(&f)))
	}
	return nil
}

// fireText is an instant in its time zone, with the schedule's name unless that is main.
func fireText(f *takt.Fire) string {
	text := f.At.Format(time.RFC3339) + " " + f.TimeZone
	if f.Schedule != "main" {
		text += " (" + f.Schedule + ")"
	}
	if f.Note != "" {
		text += "; " + f.Note
	}
	return text
}

// pausedText says how a job is paused.
func pausedText(p *takt.JobPause) string {
	text := "paused"
	if p.Until != nil {
		text += " until " + p.Until.Local().Format(time.RFC3339)
	}
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}
