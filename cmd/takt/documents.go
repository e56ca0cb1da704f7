package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/jobfile"
)

// documents are the flags of commands that read job files.
type documents struct {
	files     []string
	recursive bool
}

func (d *documents) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&d.files, "file", "f", nil, "file, directory, or - for standard input; repeatable")
	cmd.Flags().BoolVarP(&d.recursive, "recursive", "R", false, "also read the directories below a directory")
}

// read gives all documents of the files, or says what is wrong with them on standard error.
func (d *documents) read(cmd *cobra.Command, g *global) ([]jobfile.Doc, error) {
	if len(d.files) == 0 {
		return nil, usage("-f is missing: name a file, a directory, or -")
	}
	docs, err := readAll(cmd.Context(), g.namespace, d.files, d.recursive, cmd.InOrStdin())
	if err != nil {
		return nil, badFile(cmd.ErrOrStderr(), err)
	}
	if len(docs) == 0 {
		return nil, usage("the files hold no document")
	}
	pinned := ""
	if cmd.Flags().Changed("namespace") {
		pinned = g.namespace
	}
	if err := checkTogether(docs, pinned, g.namespace); err != nil {
		return nil, badFile(cmd.ErrOrStderr(), err)
	}
	return docs, nil
}

// setOf is a set of documents as the server takes it.
func setOf(docs []jobfile.Doc, g *global) takt.ApplyRequest {
	in := takt.ApplyRequest{Namespace: g.namespace}
	for i := range docs {
		if c := docs[i].Calendar; c != nil {
			in.Calendars = append(in.Calendars, takt.ApplyCalendar{Calendar: *c})
			continue
		}
		in.Documents = append(in.Documents, takt.ApplyDocument{Job: docs[i].Job})
	}
	return in
}

var documentField = regexp.MustCompile(`^(?:body\.)?(documents|calendars)\[(\d+)\](?:\.job|\.calendar)?\.?(.*)$`)

// refusedSet words the server's refusal of a set; each fault is shown where it stands in the files.
func refusedSet(cmd *cobra.Command, what string, docs []jobfile.Doc, err error) error {
	f, ok := errors.AsType[*failure](explain(cmd.Context(), what, err))
	e, refused := errors.AsType[*takt.Error](err)
	if !ok || !refused {
		return explain(cmd.Context(), what, err)
	}
	shown := 0
	jobs, calendars := parted(docs)
	for _, p := range e.Problem.Errors {
		m := documentField.FindStringSubmatch(p.Field)
		if m == nil {
			continue
		}
		i, numberErr := strconv.Atoi(m[2])
		of := jobs
		if m[1] == "calendars" {
			of = calendars
		}
		if numberErr != nil || i >= len(of) {
			continue
		}
		shown++
		message := p.Message
		if p.Code != "" {
			message += " [" + p.Code + "]"
		}
		_ = badFile(cmd.ErrOrStderr(), jobfile.Errors{docs[of[i]].At(m[3], message, p.Hint)})
	}
	if shown > 0 {
		f.why = printable(e.Problem.Detail)
	}
	return f
}

// warningsOf are the server's warnings about the documents, where they stand in the files.
func warningsOf(docs []jobfile.Doc, applied *takt.ApplyResult) (all jobfile.Errors) {
	jobs, calendars := parted(docs)
	for i := range min(len(calendars), len(applied.Calendars)) {
		for _, x := range applied.Calendars[i].Warnings {
			all = append(all, docs[calendars[i]].At(x.Field, x.Message, x.Hint))
		}
	}
	for i := range min(len(jobs), len(applied.Items)) {
		for _, x := range applied.Items[i].Warnings {
			all = append(all, docs[jobs[i]].At(x.Field, x.Message, x.Hint))
		}
	}
	return all
}

// warn shows warnings, of one place the first.
func warn(w io.Writer, all jobfile.Errors) {
	type place struct {
		file         string
		line, column int
	}
	told := map[place]bool{}
	for _, e := range all {
		if at := (place{e.File, e.Line, e.Column}); !told[at] {
			told[at] = true
			warnOf(w, e)
		}
	}
}

func warnOf(w io.Writer, e *jobfile.Error) {
	fmt.Fprintf(w, "warning: %s\n", printable(e.Error()))
	if e.Hint != "" {
		fmt.Fprintf(w, "  do:  %s\n", printable(e.Hint))
	}
}

// badFile prints every fault of the files on a line of its own.
func badFile(w io.Writer, err error) error {
	faults, ok := errors.AsType[jobfile.Errors](err)
	if !ok {
		return err
	}
	for _, f := range faults {
		fmt.Fprintln(w, printable(f.Error()))
		for line := range strings.Lines(f.Excerpt) {
			fmt.Fprintf(w, "    | %s\n", printable(strings.TrimSuffix(line, "\n")))
		}
		if f.Hint != "" {
			fmt.Fprintf(w, "  do:  %s\n", printable(f.Hint))
		}
	}
	return &failure{code: exitUsage, what: counted(len(faults), "fault") + " in the files", why: "nothing was written"}
}

// readAll reads every file of -f and gives either all documents or all faults.
func readAll(ctx context.Context, namespace string, names []string, recursive bool, in io.Reader) ([]jobfile.Doc, error) {
	var docs []jobfile.Doc
	var faults jobfile.Errors
	for _, arg := range names {
		files, err := filesOf(arg, recursive)
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			label, text, err := readFile(ctx, name, in)
			if err != nil {
				return nil, err
			}
			found, err := jobfile.ParseIn(namespace, label, text)
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

// filesOf lists what an argument of -f stands for, in the order of names; recursive goes into directories.
func filesOf(arg string, recursive bool) ([]string, error) {
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
	files, err := filesBelow(arg, recursive)
	if err != nil {
		return nil, usage(err.Error())
	}
	if len(files) == 0 {
		return nil, usage(fmt.Sprintf("%s holds no .yaml, .yml or .json file", arg))
	}
	return files, nil
}

// filesBelow lists the job files of a directory by name, each directory's files where its name stands.
func filesBelow(dir string, recursive bool) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir() && recursive:
			below, err := filesBelow(path, true)
			if err != nil {
				return nil, err
			}
			files = append(files, below...)
		case !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())):
			files = append(files, path)
		}
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
