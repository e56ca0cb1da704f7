package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/taktsched/takt"
)

// The outcomes that an exit code may stand for.
const (
	verdictSuccess = "success" // the shard has succeeded
	verdictRetry   = "retry"   // it failed; the job's policy decides about another attempt
	verdictFatal   = "fatal"   // it failed and is not tried again
	verdictSnooze  = "snooze"  // it is run again later, and no attempt is burnt
)

var verdicts = []string{verdictSuccess, verdictRetry, verdictFatal, verdictSnooze}

// exitTable holds what exit codes mean unless the handler says otherwise; every other one means retry. 64,
// 65 and 78 are sysexits.h for wrong usage, wrong data and wrong configuration, 75 is its "try later"; 126
// and 127 are the shell's for a program that cannot be run or is not there.
var exitTable = map[string]string{
	"0": verdictSuccess, "64": verdictFatal, "65": verdictFatal, "75": verdictSnooze, "78": verdictFatal,
	"126": verdictFatal, "127": verdictFatal,
}

// end is how a command's first process ended.
type end struct {
	code   int    // exit code, when signal is 0
	signal int    // that killed it
	failed string // why it could not be started; then the next one alone says something
	again  bool   // it could be started when the machine has what it lacks now
	killed string // why the guard or the agent killed it; "" when it ended by itself
}

// commandError is the failure of a command. Its class can be named in a job's retry policy.
type commandError struct {
	class, text string
}

func (e *commandError) Error() string        { return e.text }
func (e *commandError) FailureClass() string { return e.class }

// outcome words how a command ended for the SDK. tail is the last line that it wrote to standard error.
func (c *Command) outcome(e end, tail string) error {
	if tail != "" {
		tail = ": " + tail
	}
	switch {
	case e.failed != "":
		return takt.Fatal(&commandError{"start_failed", "the command could not be started: " + e.failed})
	case e.killed != "":
		return &commandError{"killed", "the command was killed: " + e.killed}
	case e.signal != 0:
		return &commandError{fmt.Sprintf("signal_%d", e.signal), fmt.Sprintf("the command was ended by signal %d%s", e.signal, tail)}
	}
	code := fmt.Sprint(e.code)
	verdict := c.ExitCodes[code]
	if verdict == "" {
		verdict = exitTable[code]
	}
	err := &commandError{"exit_" + code, "the command ended with exit code " + code + tail}
	switch verdict {
	case verdictSuccess:
		return nil
	case verdictFatal:
		return takt.Fatal(err)
	case verdictSnooze:
		snooze := time.Duration(c.Snooze)
		if snooze == 0 {
			snooze = defaultSnooze
		}
		return takt.Snooze(snooze)
	}
	return err
}

// stopped tells whether the cause of a context's end is one by which a command's exit code says nothing: it
// was told to end, so it is not known whether it did its work.
func stopped(cause error) bool {
	return errors.Is(cause, takt.ErrCancelled) || errors.Is(cause, takt.ErrTimedOut) ||
		errors.Is(cause, takt.ErrLeaseLost) || errors.Is(cause, takt.ErrShuttingDown)
}
