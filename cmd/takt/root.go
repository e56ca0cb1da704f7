package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

// global holds the flags that every command takes.
type global struct {
	server    string
	namespace string
	tokenFile string
	caFile    string
	context   string
}

func newRootCommand() *cobra.Command {
	var g global
	root := &cobra.Command{
		Use:           "takt",
		Short:         "Schedule jobs, shard them, and have no effect twice",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return g.prepare(cmd)
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&g.server, "server", "http://127.0.0.1:7070", "address of a server, or several separated by commas")
	f.StringVarP(&g.namespace, "namespace", "n", "default", "namespace to work in")
	f.StringVar(&g.tokenFile, "token-file", "", "file with the token; people may also set TAKT_TOKEN")
	f.StringVar(&g.caFile, "ca-file", "", "PEM file of the certificates that vouch for an https server (default: the system's)")
	f.StringVar(&g.context, "context", "", "name of the context to work in (default: the current one)")
	alsoEnv(f, "server", "namespace", "token-file", "ca-file", "context")
	_ = root.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return contextNames(), cobra.ShellCompDirectiveNoFileComp
	}) // the flag is there
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagFault(err) })
	root.AddCommand(
		newServerCommand(&g), newDevCommand(&g), newAgentCommand(&g), newAgentGuardCommand(),
		newApplyCommand(&g), newTriggerCommand(&g), newGetCommand(&g), newCancelCommand(&g), newRerunCommand(&g), newRescheduleCommand(&g),
		newDiffCommand(&g), newExportCommand(&g), newImportCommand(&g), newValidateCommand(&g), newSchemaCommand(), newHistoryCommand(&g), newRollbackCommand(&g),
		newDeleteCommand(&g), newPauseCommand(&g), newResumeCommand(&g),
		newExplainCommand(&g), newUpcomingCommand(&g), newMissedCommand(&g), newBackfillCommand(&g),
		newLogsCommand(&g), newRetentionCommand(&g), newBackupCommand(&g), newRestoreCommand(), newMigrateCommand(), newDescribeCommand(&g), newWaitCommand(&g), newConfigCommand(&g),
		newCronCommand(), newVersionCommand(), newDemoCommand(), newDemoWorkerCommand(), newBenchCommand(&g),
		newExitCodesTopic(),
	)
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() && cmd.RunE == nil {
			wantsMore(cmd)
		}
	}
	wordArgs(root)
	addPages(root)
	g.addCompletion(root)
	return root
}

// wantsMore makes a group of commands refuse a wrong word, and being called alone.
func wantsMore(group *cobra.Command) {
	var names []string
	for _, c := range group.Commands() {
		names = append(names, c.Name())
	}
	group.RunE = func(cmd *cobra.Command, args []string) error {
		what := "a word is missing"
		if len(args) > 0 {
			what = fmt.Sprintf("unknown word %q", args[0])
		}
		return usage(fmt.Sprintf("%s after `%s`: one of %s", what, cmd.CommandPath(), strings.Join(names, ", ")))
	}
}

// client makes a client for the namespace of the flag.
func (g *global) client() (*takt.Client, error) { return g.clientOf(takt.ClientConfig{}) }

// clientOf makes a client that is also as the configuration says.
func (g *global) clientOf(cfg takt.ClientConfig) (*takt.Client, error) {
	token, err := g.token()
	if err != nil {
		return nil, err
	}
	cfg.Server, cfg.Namespace, cfg.Token, cfg.CAFile, cfg.RetryFor = g.server, g.namespace, token, g.caFile, 3*time.Second
	c, err := takt.NewClient(cfg)
	if err != nil {
		if g.caFile != "" && strings.Contains(err.Error(), "CA file") {
			return nil, usage("--ca-file: " + strings.TrimPrefix(err.Error(), "takt: CA file "))
		}
		return nil, usage("--server: " + strings.TrimPrefix(err.Error(), "takt: "))
	}
	return c, nil
}

// token is the one of --token-file, else of TAKT_TOKEN; "" when there is none.
func (g *global) token() (string, error) {
	if g.tokenFile == "" {
		return checkToken("TAKT_TOKEN", os.Getenv("TAKT_TOKEN"), true)
	}
	f, err := os.Open(g.tokenFile)
	if err != nil {
		return "", badToken(fmt.Sprintf("--token-file: %v", err))
	}
	text, err := io.ReadAll(io.LimitReader(f, mostToken+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", badToken(fmt.Sprintf("--token-file %s: %v", g.tokenFile, err))
	}
	return checkToken("--token-file "+g.tokenFile, string(text), false)
}

func badToken(what string) error {
	return &failure{code: exitUsage, what: what, todo: "a token is one line without spaces, as the server's file has it; name a file that you may read"}
}

const mostToken = 4096 // bytes

// checkToken gives the one token of a text, which a call must be able to carry.
func checkToken(from, text string, optional bool) (string, error) {
	token := strings.TrimSpace(text)
	bad := strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
	if token == "" && !optional || len(text) > mostToken || bad {
		return "", badToken(fmt.Sprintf("%s: it must hold one token of visible ASCII characters, at most %d", from, mostToken))
	}
	return token, nil
}
