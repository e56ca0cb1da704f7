package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/engine"
)

// mutants take one part of the model away each (DESIGN §3, the parts marked ◆ that live in the core, and
// the page guard of R14). The script passes with the part and breaks a rule without it.
var mutants = []struct {
	name   string
	off    engine.Switches
	broken string // what the checker says then
	script string
}{
	{"DeadlineFromReceipt", engine.Switches{DeadlineFromReceipt: true}, "two holders", `
		worker A slots=1
		job files
		advance 2s
		beat A
		advance 500ms
		trigger files
		worker B slots=1 lives
		advance 2499ms
		expect e1/0 leased A
		advance 1ms
		expect e1/0 running B`},
	{"NoDecisions", engine.Switches{NoDecisions: true}, "R5: 4 planned instants of default/daily are unexplained", `
		job daily every=10s
		pause 60s`},
	{"NoTakeoverGrace", engine.Switches{NoTakeoverGrace: true}, "expires at 1s although it was renewed at 1s", `
		worker A slots=1
		job files
		trigger files
		report A e1/0 started
		advance 1s
		beat A
		reload takeover
		worker B slots=1
		advance 1s
		beat B
		expect e1/0 running A`},
	{"DecisionEndsLease", engine.Switches{DecisionEndsLease: true}, "two holders", `
		worker A slots=1
		job files timeout=2s attempts=2 initial=100ms
		trigger files
		report A e1/0 started
		advance 1900ms
		beat A
		worker B slots=1
		advance 300ms
		expect e1/0 retry_wait A
		advance 2s
		beat B
		advance 2s
		expect e1/0 leased B`},
	{"DecisionEndsLease/cancel", engine.Switches{DecisionEndsLease: true}, "two holders", `
		worker A slots=1
		job files
		trigger files
		report A e1/0 started
		advance 1s
		beat A
		worker B slots=1
		cancel e1
		rerun e1
		report A e1/0 done cancelled
		expect e1 cancelled
		rerun e1
		expect e1/0 leased B`},
	{"NoPageGuard", engine.Switches{NoPageGuard: true}, "state guard", `
		config ready=1
		worker A slots=1
		job files
		trigger files times=3
		advance 10ms
		pages off
		report A e1/0 done success
		poll A
		read backlog
		cancel e3
		read executions
		give executions
		expect e3 cancelled
		give backlog
		report A e2/0 done success
		poll A
		inspect`},
	{"OldTokenWrites", engine.Switches{OldTokenWrites: true}, "newer one was granted", `
		worker A slots=1
		job files
		trigger files
		report A e1/0 started
		advance 3s
		worker B slots=1
		report B e1/0 started
		report A e1/0 checkpoint 1 token=101 seq=2
		expect e1/0 running B`},
	{"TokensFromZero", engine.Switches{TokensFromZero: true}, "does not rise", `
		worker A slots=1
		job files
		backup
		trigger files
		report A e1/0 done success
		expect e1 succeeded
		restore
		reload takeover
		poll A
		trigger files
		expect e2/0 leased A`},
}

func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			if err := runScript(m.script, engine.Switches{}); err != nil {
				t.Fatalf("with the part: %v", err)
			}
			err := runScript(m.script, m.off)
			if err == nil || !strings.Contains(err.Error(), m.broken) {
				t.Fatalf("survives: without the part the script ends with %v, not with %q", err, m.broken)
			}
			t.Logf("killed: %s: %v", m.name, err)
		})
	}
}

// runScript plays command lines and gives the first broken rule. A panic of the engine is one.
func runScript(script string, off engine.Switches) (err error) {
	s := newScenario()
	s.cfg.Switches = off
	line := ""
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%q: panic: %v", line, p)
		}
	}()
	for line = range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if _, err := s.run(line); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	return nil
}
