package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/taktsched/takt"
)

// verdictOf is which of the four an outcome is, told by how the SDK's own marks look.
func verdictOf(err error) string {
	own, isOwn := errors.AsType[*commandError](err)
	switch {
	case err == nil:
		return verdictSuccess
	case !isOwn:
		return verdictSnooze
	case err == error(own):
		return verdictRetry
	}
	return verdictFatal
}

// Every exit code has an outcome, and the handler's word beats the table.
func TestEveryExitCode(t *testing.T) {
	t.Parallel()
	table := map[int]string{0: "success", 64: "fatal", 65: "fatal", 75: "snooze", 78: "fatal", 126: "fatal", 127: "fatal"}
	for code := range 256 {
		want := table[code]
		if want == "" {
			want = "retry"
		}
		plain := &Command{}
		if got := verdictOf(plain.outcome(end{code: code}, "")); got != want {
			t.Errorf("%d means %s, want %s", code, got, want)
		}
		for _, verdict := range verdicts {
			own := &Command{ExitCodes: map[string]string{fmt.Sprint(code): verdict}}
			if got := verdictOf(own.outcome(end{code: code}, "")); got != verdict {
				t.Errorf("%d was set to %s and means %s", code, verdict, got)
			}
		}
	}
}

// What ends a command by force is no exit code, whatever the handler says of it.
func TestForcedEnds(t *testing.T) {
	t.Parallel()
	c := &Command{ExitCodes: map[string]string{"0": "fatal", "9": "success", "137": "success"}}
	for _, e := range []struct {
		end   end
		class string
		fatal bool
	}{
		{end{signal: 9}, "signal_9", false}, {end{signal: 15}, "signal_15", false}, {end{killed: "the lease ran out"}, "killed", false},
		{end{killed: "the grace was over", signal: 9}, "killed", false}, {end{failed: "no such program"}, "start_failed", true},
	} {
		err := c.outcome(e.end, "last words")
		own, ok := errors.AsType[*commandError](err)
		if !ok || own.class != e.class || (verdictOf(err) == verdictFatal) != e.fatal {
			t.Errorf("%+v: %v", e.end, err)
		}
	}
	if errors.Is(c.outcome(end{signal: 9}, ""), takt.ErrCancelled) {
		t.Error("a signal is no cancellation")
	}
}

// The last line of standard error is shown without what a terminal would obey.
func TestTailIsPrintable(t *testing.T) {
	t.Parallel()
	last := newTail()
	for _, part := range []string{"first\n", "\x1b]8;;http://x\x07", strings.Repeat("y", 2*maxTail), "\xff\n", "\n \n"} {
		if _, err := last.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	_ = last.Close()
	if strings.ContainsAny(last.last, "\x1b\x07") || !utf8.ValidString(last.last) || !strings.HasSuffix(last.last, "yyy") || len(last.last) > 2*maxTail {
		t.Errorf("%q", last.last)
	}
}
