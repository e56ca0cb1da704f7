package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taktsched/takt"
)

// maxInline is the size in bytes up to which data is in the environment as well as in a file.
const maxInline = 32 << 10

// controlFD is the descriptor on which a command may write control lines.
const controlFD = 3

// environment writes the attempt's files and makes the command's environment: what the handler allows of
// the agent's, what it sets, and the attempt's own variables, which win.
func (c *Command) environment(t *takt.Task, dir *attemptDir, parents []Parent, lookup func(string) (string, bool)) ([]string, error) {
	env := map[string]string{}
	allow := defaultAllow
	if c.Env != nil && c.Env.Allow != nil {
		allow = c.Env.Allow
	}
	for _, name := range allow {
		if v, ok := lookup(name); ok {
			env[name] = v
		}
	}
	if c.Env != nil {
		for name, v := range c.Env.Set {
			env[name] = v
		}
	}
	for name, v := range map[string]string{
		"NAMESPACE": t.Namespace(), "JOB": t.Job(), "EXECUTION": t.Execution(), "ATTEMPT": strconv.Itoa(t.Attempt()),
		"SHARD_INDEX": strconv.Itoa(t.Shard()), "SHARD_TOTAL": strconv.Itoa(t.ShardTotal()), "KEY": t.Key(),
		"TOKEN": strconv.FormatInt(t.Token(), 10), "PLANNED_AT": t.PlannedAt().Format(time.RFC3339Nano),
		"CONTROL_FD": strconv.Itoa(controlFD),
	} {
		env["TAKT_"+name] = v
	}
	env[markVariable] = dir.run.Mark
	params := t.Params()
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	data := map[string]json.RawMessage{"PARAMS": params}
	var checkpoint json.RawMessage
	if there, err := t.LastCheckpoint(&checkpoint); err != nil {
		return nil, err
	} else if there {
		data["CHECKPOINT"] = checkpoint
	}
	if len(parents) > 0 {
		text, err := json.Marshal(parents)
		if err != nil {
			return nil, fmt.Errorf("parents: %w", err)
		}
		data["PARENTS"] = text
	}
	for name, content := range data {
		path, err := dir.file(strings.ToLower(name)+".json", content)
		if err != nil {
			return nil, err
		}
		env["TAKT_"+name+"_FILE"] = path
		if len(content) <= maxInline {
			env["TAKT_"+name] = string(content)
		}
	}
	list := make([]string, 0, len(env))
	for name, v := range env {
		list = append(list, name+"="+v)
	}
	slices.Sort(list)
	return list, nil
}

// cannotStart is why a command cannot be run on this machine.
type cannotStart struct{ why string }

func (c *cannotStart) Error() string { return c.why }

// program finds the command's program as a shell would, in the PATH of the command's own environment. The
// error is a *cannotStart.
func (c *Command) program(env []string) (path string, argv []string, err error) {
	if c.Shell != "" {
		return "/bin/sh", []string{"/bin/sh", "-c", c.Shell}, nil
	}
	name := c.Argv[0]
	if strings.Contains(name, "/") {
		return name, c.Argv, nil
	}
	search := "/usr/local/bin:/usr/bin:/bin"
	for _, v := range env {
		if p, ok := strings.CutPrefix(v, "PATH="); ok {
			search = p
		}
	}
	for _, dir := range filepath.SplitList(search) {
		path := filepath.Join(dir, name)
		if !filepath.IsAbs(path) {
			continue // a program from wherever the command runs is not what was meant
		}
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path, c.Argv, nil
		}
	}
	return "", nil, &cannotStart{fmt.Sprintf("%s is not in the command's PATH %s", name, search)}
}
