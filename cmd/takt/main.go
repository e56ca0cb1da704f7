// Command takt is the scheduling centre, its CLI and its demo in one binary. This package holds flags and
// exit codes; what they start is elsewhere.
package main

import (
	"context"
	"io"
	"os"
	_ "time/tzdata" // cron needs every zone, also where the system has none
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the program without the process: it returns the exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := untilSignal(context.Background(), errOut)
	defer stop()
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	return report(errOut, cmd, err)
}
