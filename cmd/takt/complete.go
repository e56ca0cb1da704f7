package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

// completeWithin bounds a look-up of names: a shell that hangs is worse than one that knows no names.
const completeWithin = 200 * time.Millisecond

// names is a completion: name, tab, what it is.
type names func(ctx context.Context, c *takt.Client) ([]cobra.Completion, error)

// complete looks names up for the first argument. It knows none when no server answers in time.
func (g *global) complete(cmd *cobra.Command, kind string, args []string, typed string, look names) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return g.lookUp(cmd, kind, typed, look), cobra.ShellCompDirectiveNoFileComp
}

func (g *global) lookUp(cmd *cobra.Command, kind, typed string, look names) []cobra.Completion {
	if err := g.prepare(cmd); err != nil { // completions run without the hooks of commands
		return nil
	}
	c, err := g.client()
	if err != nil {
		return nil
	}
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	cache := newNameCache(kind, g.server, g.namespace, g.tokenFile, os.Getenv("TAKT_TOKEN"))
	all, known := cache.read(time.Now())
	if !known {
		ctx, cancel := context.WithTimeout(parent, completeWithin)
		defer cancel()
		if all, err = look(ctx, c); err != nil {
			return nil
		}
		cache.write(time.Now(), all)
	}
	var fit []cobra.Completion
	for _, n := range all {
		if name, what, _ := strings.Cut(n, "\t"); strings.HasPrefix(name, typed) {
			fit = append(fit, cobra.CompletionWithDesc(printable(name), printable(what)))
		}
	}
	return fit
}

func (g *global) completeJobs(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return g.complete(cmd, "jobs", args, typed, jobNames)
}

func jobNames(ctx context.Context, c *takt.Client) ([]cobra.Completion, error) {
	list, err := c.Jobs(ctx, takt.Page{Limit: 500})
	var all []cobra.Completion
	for i := range list.Items {
		j := &list.Items[i]
		all = append(all, cobra.CompletionWithDesc(j.Metadata.Name, firstText(j.Spec.Title, j.Spec.Handler)))
	}
	return all, err
}

func (g *global) completeExecutions(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return g.complete(cmd, "executions", args, typed, func(ctx context.Context, c *takt.Client) ([]cobra.Completion, error) {
		list, err := c.Executions(ctx, takt.ExecutionQuery{Page: takt.Page{Limit: 100}})
		var all []cobra.Completion
		for i := range list.Items {
			e := &list.Items[i]
			all = append(all, cobra.CompletionWithDesc(e.ID, e.Job+" "+e.State))
		}
		return all, err
	})
}

func (g *global) completeWorkers(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return g.complete(cmd, "workers", args, typed, func(ctx context.Context, c *takt.Client) ([]cobra.Completion, error) {
		list, err := c.Workers(ctx, "")
		var all []cobra.Completion
		for i := range list.Items {
			all = append(all, cobra.CompletionWithDesc(list.Items[i].Name, "pool "+list.Items[i].Pool))
		}
		return all, err
	})
}

// completePools fits a flag.
func (g *global) completePools(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return g.lookUp(cmd, "pools", typed, func(ctx context.Context, c *takt.Client) ([]cobra.Completion, error) {
		list, err := c.Pools(ctx)
		var all []cobra.Completion
		for i := range list.Items {
			all = append(all, list.Items[i].Name)
		}
		return all, err
	}), cobra.ShellCompDirectiveNoFileComp
}

// completeJobFlag fits a flag.
func (g *global) completeJobFlag(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return g.lookUp(cmd, "jobs", typed, jobNames), cobra.ShellCompDirectiveNoFileComp
}

// argumentNames says what the first argument of a command is, by its path.
func (g *global) argumentNames() map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{
		"takt cancel": g.completeExecutions, "takt delete job": g.completeJobs, "takt describe execution": g.completeExecutions,
		"takt describe job": g.completeJobs, "takt describe worker": g.completeWorkers, "takt export": g.completeJobs,
		"takt get executions": g.completeExecutions, "takt get jobs": g.completeJobs, "takt get shards": g.completeExecutions,
		"takt delete calendar": g.completeCalendars, "takt describe calendar": g.completeCalendars, "takt get calendars": g.completeCalendars,
		"takt history": g.completeJobs, "takt logs": g.completeExecutions, "takt pause": g.completeJobs, "takt rerun": g.completeExecutions,
		"takt reschedule": g.completeExecutions, "takt resume": g.completeJobs, "takt rollback": g.completeJobs, "takt trigger": g.completeJobs, "takt wait": g.completeExecutions,
	}
}

// addCompletion lets shells complete names below cmd.
func (g *global) addCompletion(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		g.addCompletion(sub)
	}
	if complete := g.argumentNames()[cmd.CommandPath()]; complete != nil {
		cmd.ValidArgsFunction = complete
	}
	for flag, complete := range map[string]cobra.CompletionFunc{
		"pool": g.completePools, "job": g.completeJobFlag, "state": cobra.FixedCompletions(executionStates, cobra.ShellCompDirectiveNoFileComp),
	} {
		if cmd.CommandPath() != "takt agent" && cmd.LocalNonPersistentFlags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, complete) // the flag is there
		}
	}
}
