package main

import (
	"errors"
	"os/exec"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

// commandTree calls every command that can be called as a process of its own.
func commandTree(ts *testscript.TestScript, _ bool, _ []string) {
	var walk func(cmd *cobra.Command)
	walked := 0
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if cmd.Hidden || cmd.HasSubCommands() || cmd.RunE == nil && cmd.Run == nil {
			return
		}
		walked++
		if _, ok := helpPages[cmd.CommandPath()]; !ok {
			ts.Fatalf("%s has no page in help.go: give it its exit codes", cmd.CommandPath())
		}
		args := strings.Fields(cmd.CommandPath())[1:]
		ts.Check(ts.Exec("takt", append(args, "--help")...))
		help := ts.ReadFile("stdout")
		checkHelp(ts, cmd.CommandPath(), help)
		var e *exec.ExitError
		if err := ts.Exec("takt", append(args, "--no-such-flag")...); !errors.As(err, &e) || e.ExitCode() != exitUsage {
			ts.Fatalf("%s --no-such-flag: %v, want exit code 2", cmd.CommandPath(), err)
		}
	}
	root := newRootCommand()
	walk(root)
	if walked < len(helpPages) {
		ts.Fatalf("%d commands and %d pages in help.go: one is of a command that is gone", walked, len(helpPages))
	}
}

var (
	exampleLine = regexp.MustCompile(`(?m)^Examples:\n(  .*\n)*?  .*takt `)
	codesLine   = regexp.MustCompile(`(?m)^Exit codes: 0 ok · .*2 wrong usage`)
	outputFlag  = regexp.MustCompile(`(?m)^ +-o, --output string .*json`)
	outputLine  = regexp.MustCompile(`(?m)^Output: .+`)
)

func checkHelp(ts *testscript.TestScript, path, help string) {
	if !exampleLine.MatchString(help) || !strings.Contains(help, path) {
		ts.Fatalf("the help of %s has no example:\n%s", path, help)
	}
	if !codesLine.MatchString(help) {
		ts.Fatalf("the help of %s does not name its exit codes:\n%s", path, help)
	}
	if outputFlag.MatchString(help) == outputLine.MatchString(help) {
		ts.Fatalf("the help of %s must have -o with json, or say why not:\n%s", path, help)
	}
}
