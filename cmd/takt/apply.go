package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/jobfile"
)

type apply struct {
	g      *global
	files  []string
	format string
}

func newApplyCommand(g *global) *cobra.Command {
	a := apply{g: g}
	cmd := &cobra.Command{
		Use:   "apply -f FILE|DIR|-",
		Short: "Create or change jobs as files say",
		Long: `Create or change jobs as files say. A file holds one or more YAML documents; of a directory, its .yaml,
.yml and .json files are read; - is standard input. Every file is read and checked before the first job is
written.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd) },
	}
	cmd.Flags().StringArrayVarP(&a.files, "file", "f", nil, "file, directory, or - for standard input; repeatable")
	addOutput(cmd, &a.format)
	return cmd
}

func (a *apply) run(cmd *cobra.Command) error {
	if len(a.files) == 0 {
		return usage("-f is missing: name a file, a directory, or -")
	}
	docs, err := readAll(cmd.Context(), a.files, cmd.InOrStdin())
	if err != nil {
		return badFile(cmd.ErrOrStderr(), err)
	}
	if len(docs) == 0 {
		return usage("the files hold no document")
	}
	pinned := ""
	if cmd.Flags().Changed("namespace") {
		pinned = a.g.namespace
	}
	if err := checkTogether(docs, pinned, a.g.namespace); err != nil {
		return badFile(cmd.ErrOrStderr(), err)
	}
	done := make([]takt.Job, 0, len(docs))
	for i := range docs {
		j, err := a.put(cmd, &docs[i])
		if err != nil {
			if len(done) > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d jobs were written before this:\n", len(done), len(docs))
			}
			return err
		}
		done = append(done, j)
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), takt.JobList{Items: done})
	}
	return nil
}

// put writes one job and says what that changed.
func (a *apply) put(cmd *cobra.Command, d *jobfile.Doc) (takt.Job, error) {
	ctx, name := cmd.Context(), d.Job.Metadata.Name
	what := fmt.Sprintf("cannot apply job %s (%s:%d)", name, d.File, d.Line)
	c, err := a.g.client(d.Job.Metadata.Namespace)
	if err != nil {
		return takt.Job{}, err
	}
	before, err := c.Job(ctx, name)
	if err != nil && !errors.Is(err, takt.ErrNotFound) {
		return takt.Job{}, explain(ctx, what, err)
	}
	after, err := c.PutJob(ctx, d.Job, takt.PutOptions{})
	if err != nil {
		return takt.Job{}, refused(ctx, what, d, err)
	}
	if a.format == "json" {
		return after, nil
	}
	verb := "changed"
	switch {
	case before.Metadata.UID != after.Metadata.UID:
		verb = "created"
	case before.Metadata.Revision == after.Metadata.Revision:
		verb = "unchanged"
	}
	line := fmt.Sprintf("%s %s, revision %d", name, verb, after.Metadata.Revision)
	if after.Status != nil && after.Status.Effect == "pending" {
		line += ", pending"
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), line)
	return after, err
}

// refused words the server's refusal; a wrong field is shown where it stands in the file.
func refused(ctx context.Context, what string, d *jobfile.Doc, err error) error {
	e, ok := errors.AsType[*takt.Error](err)
	if !ok || len(e.Problem.Errors) == 0 {
		return explain(ctx, what, err)
	}
	var lines []string
	for _, p := range e.Problem.Errors {
		lines = append(lines, d.At(strings.TrimPrefix(p.Field, "body."), p.Message, "").Error())
	}
	return &failure{code: exitUsage, what: what, why: strings.Join(lines, "\n       "), todo: e.Problem.Hint}
}

// badFile prints every fault of the files on a line of its own.
func badFile(w io.Writer, err error) error {
	faults, ok := errors.AsType[jobfile.Errors](err)
	if !ok {
		return err
	}
	for _, f := range faults {
		fmt.Fprintln(w, printable(f.Error()))
		if f.Hint != "" {
			fmt.Fprintf(w, "  do:  %s\n", printable(f.Hint))
		}
	}
	return &failure{code: exitUsage, what: fmt.Sprintf("%d fault(s) in the files", len(faults)), why: "nothing was written"}
}

// checkTogether finds what only shows when all documents are seen: a job twice, a namespace that the
// command line contradicts.
func checkTogether(docs []jobfile.Doc, pinned, standard string) error {
	var faults jobfile.Errors
	seen := map[string]*jobfile.Doc{}
	for i := range docs {
		d := &docs[i]
		ns := d.Job.Metadata.Namespace
		if ns != "" && pinned != "" && ns != pinned {
			faults = append(faults, d.At("metadata.namespace", fmt.Sprintf("it is %s, and --namespace says %s", ns, pinned),
				"leave one of them out"))
		}
		if ns == "" {
			ns = standard
		}
		id := ns + "/" + d.Job.Metadata.Name
		if first := seen[id]; first != nil {
			faults = append(faults, d.At("metadata.name", fmt.Sprintf("job %s stands in %s:%d too", id, first.File, first.Line), ""))
			continue
		}
		seen[id] = d
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// readAll reads every file and gives either all documents or all faults.
func readAll(ctx context.Context, names []string, in io.Reader) ([]jobfile.Doc, error) {
	var docs []jobfile.Doc
	var faults jobfile.Errors
	for _, arg := range names {
		files, err := filesOf(arg)
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			label, text, err := readFile(ctx, name, in)
			if err != nil {
				return nil, err
			}
			found, err := jobfile.Parse(label, text)
			if more, ok := errors.AsType[jobfile.Errors](err); ok {
				faults = append(faults, more...)
			} else if err != nil {
				return nil, err
			}
			docs = append(docs, found...)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return docs, nil
}

// filesOf lists what an argument of -f stands for, in the order of names.
func filesOf(arg string) ([]string, error) {
	if arg == "-" {
		return []string{arg}, nil
	}
	info, err := os.Stat(arg)
	if err != nil {
		return nil, usage(err.Error())
	}
	if !info.IsDir() {
		return []string{arg}, nil
	}
	entries, err := os.ReadDir(arg)
	if err != nil {
		return nil, usage(err.Error())
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(arg, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, usage(fmt.Sprintf("%s holds no .yaml, .yml or .json file", arg))
	}
	return files, nil
}

// readFile reads a file, or standard input for "-", up to one byte more than is allowed.
func readFile(ctx context.Context, name string, in io.Reader) (label string, text []byte, err error) {
	if name == "-" {
		text, err = readStdin(ctx, in)
		return "standard input", text, err
	}
	f, err := os.Open(name)
	if err != nil {
		return name, nil, usage(err.Error())
	}
	text, err = io.ReadAll(io.LimitReader(f, jobfile.MaxSize+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return name, nil, usage(err.Error())
	}
	return name, text, nil
}

// readStdin gives up when ctx ends: a person may press Ctrl-C before the end of what is typed.
func readStdin(ctx context.Context, in io.Reader) ([]byte, error) {
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(in, jobfile.MaxSize+1))
		done <- read{text, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, usage("standard input: " + r.err.Error())
		}
		return r.text, nil
	case <-ctx.Done():
		return nil, explain(ctx, "standard input was not read to its end", context.Cause(ctx))
	}
}
