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
		if cmd.Hidden || isGroup(cmd) || cmd.RunE == nil && cmd.Run == nil {
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
		if outputFlag.MatchString(help) {
			checkForms(ts, cmd, args)
		}
	}
	root := newRootCommand()
	walk(root)
	if walked < len(helpPages) {
		ts.Fatalf("%d commands and %d pages in help.go: one is of a command that is gone", walked, len(helpPages))
	}
}

// checkForms asks for a form that is none, with as many arguments as the command takes: the refusal names json, and comes
// before anything is done.
func checkForms(ts *testscript.TestScript, cmd *cobra.Command, args []string) {
	says := ""
	for range 3 {
		var e *exec.ExitError
		err := ts.Exec("takt", append(args, "-o", "nonsense")...)
		if says = ts.ReadFile("stderr"); !errors.As(err, &e) || e.ExitCode() != exitUsage {
			ts.Fatalf("%s -o nonsense: %v, want exit code 2:\n%s", cmd.CommandPath(), err, says)
		}
		if formsRefused.MatchString(says) {
			return
		}
		args = append(args, "x")
	}
	ts.Fatalf("%s -o nonsense is not refused with the forms, json among them:\n%s", cmd.CommandPath(), says)
}

var (
	formsRefused = regexp.MustCompile(`-o nonsense: it must be .*\bjson\b`)
	exampleLine  = regexp.MustCompile(`(?m)^Examples:\n(  .*\n)*?  .*takt `)
	codesLine    = regexp.MustCompile(`(?m)^Exit codes: 0 ok · .*2 wrong usage`)
	outputFlag   = regexp.MustCompile(`(?m)^ +-o, --output string .*\bjson\b`)
	outputLine   = regexp.MustCompile(`(?m)^Output: .+`)
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
