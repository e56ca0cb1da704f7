package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
)

func newExportCommand(g *global) *cobra.Command {
	var selector, format string
	cmd := &cobra.Command{
		Use:   "export [JOB]…",
		Short: "Write jobs, and the calendars that they name, as documents that can be applied elsewhere",
		Long: `Write jobs as documents that can be applied elsewhere: without namespace, uid, revision, times and status. The
calendars that they name come first. Without names, all jobs and calendars of the namespace are written.

Secret values of params are written as they are, and that is said on standard error; all other commands show (masked) in their
place, which no server takes back.`,
		Example: `  takt export > jobs.yaml
  takt export -l app=billing -n dev | takt apply -f - -n prod`,
		RunE: func(cmd *cobra.Command, names []string) error {
			chosen, err := job.ParseSelector(selector)
			if err != nil {
				return explain(cmd.Context(), "cannot read -l", err)
			}
			c, err := g.clientOf(takt.ClientConfig{ShowSecrets: true})
			if err != nil {
				return err
			}
			jobs, err := jobsNamed(cmd.Context(), c, names)
			if err != nil {
				return explain(cmd.Context(), "cannot export", err)
			}
			chosenJobs := []takt.Job{}
			secrets := 0
			for i := range jobs {
				if chosen.Matches(jobs[i].Metadata.Labels) {
					if s := jobs[i].Status; s != nil && s.Unfit != "" {
						return &failure{code: exitConflict, what: "cannot export job " + jobs[i].Metadata.Name, why: "what is stored of it cannot be used: " + s.Unfit,
							todo: "apply it again from its file, or name the jobs to export"}
					}
					chosenJobs = append(chosenJobs, bare(&jobs[i]))
					if !bytes.Equal(job.Mask(jobs[i].Spec.Params), jobs[i].Spec.Params) {
						secrets++
					}
				}
			}
			if secrets > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s with secret values in params, written as they are: let nobody else read this\n", counted(secrets, "document"))
			}
			calendars, err := calendarsWith(cmd.Context(), c, chosenJobs, func(labels map[string]string) bool { return len(names) == 0 && chosen.Matches(labels) })
			if err != nil {
				return explain(cmd.Context(), "cannot export", err)
			}
			out := []any{}
			for i := range calendars {
				out = append(out, &calendars[i])
			}
			for i := range chosenJobs {
				out = append(out, &chosenJobs[i])
			}
			if format == "yaml" {
				return printDocuments(cmd.OutOrStdout(), out)
			}
			return printData(cmd.OutOrStdout(), format, out)
		},
	}
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "only jobs with these labels, such as app=billing,tier!=1")
	addForms(cmd, &format, []string{"yaml", "json", "jsonl"})
	return cmd
}

// jobsNamed reads the named jobs, or all when there are no names.
func jobsNamed(ctx context.Context, c *takt.Client, names []string) ([]takt.Job, error) {
	var all []takt.Job
	for _, name := range names {
		j, err := c.Job(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, j)
	}
	if len(names) > 0 {
		return all, nil
	}
	for page := (takt.Page{Limit: 500}); ; {
		list, err := c.Jobs(ctx, page)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if page.After = list.Next; list.Next == "" {
			return all, nil
		}
	}
}

// bare is what a job file would say.
func bare(j *takt.Job) takt.Job {
	return takt.Job{APIVersion: j.APIVersion, Kind: j.Kind, Metadata: takt.JobMetadata{Name: j.Metadata.Name, Labels: j.Metadata.Labels}, Spec: j.Spec}
}

func printDocuments(w io.Writer, all []any) error {
	for i, doc := range all {
		text, err := yamlOf(doc)
		if err != nil {
			return fmt.Errorf("write document %d: %w", i+1, err)
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := w.Write(text); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	return nil
}
