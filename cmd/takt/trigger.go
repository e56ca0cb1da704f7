package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt"
)

type trigger struct {
	g       *global
	params  []string
	key     string
	when    whenFlags
	wait    bool
	timeout time.Duration
	format  string
}

// triggerForms are those of -o; the id alone is printed as a table already.
var triggerForms = []string{"table", "name", "json", "jsonl", "yaml"}

func newTriggerCommand(g *global) *cobra.Command {
	t := trigger{g: g}
	cmd := &cobra.Command{
		Use:   "trigger JOB",
		Short: "Run a job, now or at a later instant, whatever its schedule",
		Long: `Run a job, whatever its schedule, and print the id of the execution. With --in or --at it exists at once, in
state scheduled, and starts at that instant, not before; takt cancel and takt reschedule find it by its id or key.

With --key the same command again leads to the execution that the first one made, until 24 hours behind the instant that it was
asked for. The key stands for the whole request: with other parameters, another --in or another --at it is refused
(idempotency_key_reused, exit code 5). A new request takes a new key; takt reschedule moves the one that is there.

With --wait the exit code is 0 when it succeeded and 1 when it did not. Ctrl-C and --timeout end the
waiting, not the execution.`,
		Example: `  takt trigger invoice -p month=2026-11 -p dryRun:=true --wait
  takt trigger close-order --in 30m --key order-17 -p order=17
  takt trigger invoice --at 2026-12-01T09:00:00+08:00`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return t.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&t.params, "param", "p", nil, "parameter: name=text, or name:=JSON; repeatable")
	f.StringVar(&t.key, "key", "", "business key: two triggers of the job with the same key are one execution (until 24 h behind its instant)")
	f.StringVar(&t.key, "idempotency-key", "", "the same as --key")
	t.when.add(f, "when it starts")
	f.BoolVar(&t.wait, "wait", false, "wait for the end")
	f.DurationVar(&t.timeout, "timeout", 0, "with --wait: give up waiting after this time; 0: never")
	addForms(cmd, &t.format, triggerForms)
	return cmd
}

func (t *trigger) run(cmd *cobra.Command, name string) error {
	if t.timeout < 0 || t.timeout > 0 && !t.wait {
		return usage("--timeout bounds --wait and must not be negative")
	}
	for _, flag := range []string{"key", "idempotency-key"} {
		if t.key == "" && cmd.Flags().Changed(flag) {
			return usage("--" + flag + " is empty: is the variable that should hold it unset?")
		}
	}
	at, in, err := t.when.read()
	if err != nil {
		return err
	}
	params, err := parseParams(t.params)
	if err != nil {
		return err
	}
	c, err := t.g.client()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	opt := takt.TriggerOptions{IdempotencyKey: t.key, At: at, In: in}
	if params != nil {
		opt.Params = params
	}
	made, err := c.Trigger(ctx, name, opt)
	if err != nil {
		return explain(ctx, "cannot trigger job "+name, err)
	}
	if made.Repeated {
		fmt.Fprintln(cmd.ErrOrStderr(), "the idempotency key was known: this is the execution it made")
	}
	if made.Past {
		fmt.Fprintln(cmd.ErrOrStderr(), "the instant has passed: it runs now")
	}
	if !isData(t.format) {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), made.Execution); err != nil {
			return err
		}
	}
	if t.wait {
		return t.await(cmd, c, made.Execution)
	}
	if isData(t.format) {
		return printData(cmd.OutOrStdout(), t.format, made)
	}
	return nil
}

// await waits for the end and turns it into an exit code.
func (t *trigger) await(cmd *cobra.Command, c *takt.Client, id string) error {
	ctx, cancel := cmd.Context(), context.CancelFunc(func() {})
	if t.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, t.timeout)
	}
	defer cancel()
	e, err := awaitEnd(ctx, c, id, func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), line) })
	if ctx.Err() != nil && !e.Ended() {
		return &failure{code: endedBy(ctx), what: "stopped waiting for execution " + id + "; the execution goes on",
			why: stoppedBy(ctx), todo: "`takt cancel " + id + "` ends it, `takt get executions " + id + "` shows it"}
	}
	if err != nil {
		return explain(ctx, "cannot wait for execution "+id, err)
	}
	if isData(t.format) {
		if err := printData(cmd.OutOrStdout(), t.format, e); err != nil {
			return err
		}
	}
	if e.State != "succeeded" {
		return &failure{code: exitNegative, what: "execution " + id + " ended " + e.State, why: e.ReasonText,
			todo: "`takt get shards " + id + "` shows why"}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "execution %s succeeded\n", id)
	return nil
}

// waitsFor says why nothing of e runs; "" for what passes by itself.
func waitsFor(e takt.Execution) string {
	switch e.Waits {
	case "no_worker", "no_handler", "no_slot", "backlog":
		if e.WaitsText == "" {
			return e.Waits
		}
		return fmt.Sprintf("%s (pool %s, handler %s)", e.WaitsText, e.Pool, e.Handler)
	case "overlap", "overlap_replace":
		return waitsText(&e)
	}
	return ""
}

// parseParams makes an object of -p flags; nil when there are none.
func parseParams(flags []string) (map[string]json.RawMessage, error) {
	var params map[string]json.RawMessage
	for _, p := range flags {
		name, text, ok := strings.Cut(p, "=")
		if !ok || strings.TrimSuffix(name, ":") == "" {
			return nil, usage(fmt.Sprintf("-p %s: write name=text or name:=JSON", p))
		}
		value, err := json.Marshal(text)
		if n, raw := strings.CutSuffix(name, ":"); raw {
			name = n
			value = []byte(text)
			if !json.Valid(value) {
				return nil, usage(fmt.Sprintf("-p %s: %q is no JSON value; name=text takes any text", p, text))
			}
		}
		if err != nil {
			return nil, usage(fmt.Sprintf("-p %s: %v", p, err))
		}
		if _, twice := params[name]; twice {
			return nil, usage(fmt.Sprintf("-p %s: the parameter is given twice", name))
		}
		if params == nil {
			params = map[string]json.RawMessage{}
		}
		params[name] = value
	}
	return params, nil
}
