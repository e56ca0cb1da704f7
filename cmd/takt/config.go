package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/jobfile"
)

func newConfigCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Keep servers and namespaces under names",
		Long: `Keep servers and namespaces under names, in ~/.config/takt/config.yaml (or the file that TAKT_CONFIG names). Flags and
the environment win over the context; a context's token goes to the context's own server only.`}
	cmd.AddCommand(newGetContextsCommand(g), newSetContextCommand(g), newUseContextCommand())
	return cmd
}

func newGetContextsCommand(g *global) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "get-contexts",
		Short:   "List the contexts; the current one has a star",
		Example: `  takt config get-contexts`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := readContexts()
			if err != nil {
				return err
			}
			l := listing{header: []string{"NAME", "CURRENT", "SERVER", "NAMESPACE", "TOKEN FILE", "CA FILE"}, narrow: 4, value: map[string]any{
				"currentContext": firstText(g.context, file.Current), "items": file.Contexts}}
			for _, c := range file.Contexts {
				star := ""
				if c.Name == firstText(g.context, file.Current) {
					star = "*"
				}
				l.rows = append(l.rows, []string{c.Name, star, c.Server, c.Namespace, c.TokenFile, c.CAFile})
			}
			return l.print(cmd.OutOrStdout(), format)
		},
	}
	addListOutput(cmd, &format)
	return cmd
}

func newSetContextCommand(g *global) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "set-context NAME",
		Short: "Make or change a context from the flags that are given",
		Example: `  takt config set-context prod --server https://takt.example.com -n pay --token-file ~/.config/takt/prod.token
  takt config use-context prod`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := readContexts()
			if err != nil {
				return err
			}
			c := file.find(args[0])
			if c == nil {
				file.Contexts = append(file.Contexts, savedContext{Name: args[0], Server: g.server})
				c = &file.Contexts[len(file.Contexts)-1]
			}
			if err := c.change(cmd, g); err != nil {
				return err
			}
			if err := keepContexts(file); err != nil {
				return err
			}
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, c)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), c.Name)
			return err
		},
	}
	addOutput(cmd, &format)
	return cmd
}

// change takes over the flags that were given.
func (c *savedContext) change(cmd *cobra.Command, g *global) (err error) {
	changed := cmd.Flags().Changed
	if changed("server") {
		if _, err := takt.NewClient(takt.ClientConfig{Server: g.server}); err != nil {
			return usage("--server: " + err.Error())
		}
		c.Server = g.server
	}
	if changed("namespace") {
		c.Namespace = g.namespace
	}
	if changed("token-file") {
		if c.TokenFile, err = absolute(g.tokenFile); err != nil {
			return err
		}
	}
	if changed("ca-file") {
		c.CAFile, err = absolute(g.caFile)
	}
	return err
}

func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", usage(err.Error())
	}
	return abs, nil
}

// keepContexts writes the file if it can be read again.
func keepContexts(file contextsFile) error {
	text, err := yamlOf(file)
	if err != nil {
		return err
	}
	_, _, err = jobfile.ParseOther[contextsFile]("context", "Config", text)
	if faults, ok := errors.AsType[jobfile.Errors](err); ok {
		return &failure{code: exitUsage, what: printable(faults[0].Message), todo: printable(faults[0].Hint)}
	}
	if err != nil {
		return usage(err.Error())
	}
	return writeContexts(text)
}

func newUseContextCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "use-context NAME",
		Short:   "Make a context the current one; \"\" for none",
		Example: `  takt config use-context prod`,
		Args:    cobra.ExactArgs(1),

		Annotations: map[string]string{emptyMeans: "no context"},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return contextNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := readContexts()
			if err != nil {
				return err
			}
			if args[0] != "" && file.find(args[0]) == nil {
				return &failure{code: exitNotFound, what: fmt.Sprintf("there is no context %q", args[0]), todo: "`takt config get-contexts` lists them"}
			}
			file.Current = args[0]
			if err := keepContexts(file); err != nil {
				return err
			}
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, map[string]string{"currentContext": file.Current})
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), file.Current)
			return err
		},
	}
	addOutput(cmd, &format)
	return cmd
}

// contextNames are for completion: none when the file cannot be read.
func contextNames() []string {
	file, err := readContexts()
	if err != nil {
		return nil
	}
	var names []string
	for _, c := range file.Contexts {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}
