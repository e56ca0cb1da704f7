package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

func differing(x takt.AppliedJob) bool { return x.Action != "unchanged" }

// externalDiff has a program compare what is with what would be. Its exit code counts only when it is above 1: whether
// something differs is what the server said.
func externalDiff(cmd *cobra.Command, g *global, program string, r *takt.ApplyResult) (err error) {
	if !slices.ContainsFunc(r.Items, differing) {
		return nil
	}
	words := strings.Fields(program)
	if len(words) == 0 {
		return usage("TAKT_EXTERNAL_DIFF names no program")
	}
	dir, err := os.MkdirTemp("", "takt-diff-")
	if err != nil {
		return notShown(program, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
	for _, d := range []string{before, after} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return notShown(program, err)
		}
	}
	for i := range r.Calendars {
		if err := writeCalendarSides(cmd.Context(), g, before, after, &r.Calendars[i]); err != nil {
			return explain(cmd.Context(), "cannot show the difference", err)
		}
	}
	for i := range r.Items {
		if err := writeSides(cmd.Context(), g, before, after, &r.Items[i]); err != nil {
			return explain(cmd.Context(), "cannot show the difference", err)
		}
	}
	show := exec.CommandContext(cmd.Context(), words[0], append(words[1:], before, after)...)
	show.Stdin, show.Stdout, show.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	err = show.Run()
	if e, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || e.ExitCode() != 1) {
		return notShown(program, err)
	}
	return &failure{code: exitNegative}
}

func notShown(program string, err error) error {
	return &failure{code: exitUsage, what: "the difference could not be shown with " + program, why: err.Error(),
		todo: "unset TAKT_EXTERNAL_DIFF, or name a program that compares two directories"}
}

// writeSides writes the documents of a job that would change: into before what is, into after what would be.
func writeSides(ctx context.Context, g *global, before, after string, x *takt.AppliedJob) error {
	if !differing(*x) {
		return nil
	}
	m := &x.Job.Metadata
	name := m.Namespace + "." + m.Name + ".yaml"
	if x.Action != "created" {
		there := *g
		there.namespace = m.Namespace
		c, err := there.client()
		if err != nil {
			return err
		}
		was, err := c.Job(ctx, m.Name)
		if err != nil {
			return err
		}
		if err := writeDocument(filepath.Join(before, name), &was); err != nil {
			return err
		}
	}
	if x.Action == "pruned" {
		return nil
	}
	return writeDocument(filepath.Join(after, name), &x.Job)
}

// writeCalendarSides does the same for a calendar.
func writeCalendarSides(ctx context.Context, g *global, before, after string, x *takt.AppliedCalendar) error {
	m := &x.Calendar.Metadata
	name := "calendar." + m.Namespace + "." + m.Name + ".yaml"
	if x.Action == "changed" {
		there := *g
		there.namespace = m.Namespace
		c, err := there.client()
		if err != nil {
			return err
		}
		was, err := c.Calendar(ctx, m.Name)
		if err == nil {
			err = writeText(filepath.Join(before, name), bareCalendar(&was))
		}
		if err != nil {
			return err
		}
	}
	if x.Action == "unchanged" {
		return nil
	}
	return writeText(filepath.Join(after, name), bareCalendar(&x.Calendar))
}

func writeDocument(path string, j *takt.Job) error {
	doc := bare(j)
	doc.Metadata.Namespace = j.Metadata.Namespace
	return writeText(path, &doc)
}

func writeText(path string, doc any) error {
	text, err := yamlOf(doc)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("write a side of the difference: %w", err)
	}
	return nil
}
