package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/jobfile"
)

// contextsFile is what config.yaml says.
type contextsFile struct {
	APIVersion string         `json:"apiVersion" enum:"takt/v1"`
	Kind       string         `json:"kind" enum:"Config"`
	Current    string         `json:"currentContext,omitempty" maxLength:"64"`
	Contexts   []savedContext `json:"contexts" maxItems:"256" nullable:"false"`
}

// savedContext is where to work, under a name.
type savedContext struct {
	Name      string `json:"name" pattern:"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?$"`
	Server    string `json:"server" minLength:"1" maxLength:"2048"`
	Namespace string `json:"namespace,omitempty" pattern:"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"`
	TokenFile string `json:"tokenFile,omitempty" maxLength:"4096"`
	CAFile    string `json:"caFile,omitempty" maxLength:"4096"`
}

// withoutContext are the commands that serve, or work for a server, or need none: where they work is said by
// their flags and the environment alone.
var withoutContext = []string{"server", "dev", "agent", agentGuard, "demo", "demo-worker", "version", "cron", "schema", "config",
	"completion", "help", "exit-codes", "restore", "migrate"}

// prepare fills what the command line left open: from the environment, then from the context.
func (g *global) prepare(cmd *cobra.Command) error {
	if err := readEnv(cmd.Flags(), os.LookupEnv); err != nil {
		return err
	}
	top := cmd
	for top.HasParent() && top.Parent().HasParent() {
		top = top.Parent()
	}
	if slices.Contains(withoutContext, top.Name()) {
		return nil
	}
	if data := cmd.Flags().Lookup("data"); data != nil && data.Value.String() != "" { // no server is asked
		if cmd.Flags().Changed("context") {
			return usage("--context names a server, and with --data none is asked: leave one of them out")
		}
		return nil
	}
	file, err := readContexts()
	if err != nil {
		return err
	}
	name := firstText(g.context, file.Current)
	if name == "" {
		return nil
	}
	c := file.find(name)
	if c == nil {
		return &failure{code: exitNotFound, what: fmt.Sprintf("there is no context %q", name), todo: "`takt config get-contexts` lists them"}
	}
	given := func(flag string) bool {
		f := cmd.Flags().Lookup(flag)
		return f != nil && (f.Changed || os.Getenv("TAKT_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))) != "")
	}
	if c.Namespace != "" && !given("namespace") {
		g.namespace = c.Namespace
	}
	if given("server") {
		return nil // the token of one server is not shown to another
	}
	g.server = c.Server
	if !given("token-file") && os.Getenv("TAKT_TOKEN") == "" {
		g.tokenFile = c.TokenFile
	}
	if !given("ca-file") {
		g.caFile = c.CAFile
	}
	return nil
}

func (f *contextsFile) find(name string) *savedContext {
	for i := range f.Contexts {
		if f.Contexts[i].Name == name {
			return &f.Contexts[i]
		}
	}
	return nil
}

// contextsPath is TAKT_CONFIG, else takt/config.yaml in XDG_CONFIG_HOME or ~/.config; "" when there is no home.
func contextsPath() string {
	if p := os.Getenv("TAKT_CONFIG"); p != "" {
		return p
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil || home == "" {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "takt", "config.yaml")
}

// readContexts reads the file; one that is missing has no contexts.
func readContexts() (contextsFile, error) {
	none := contextsFile{APIVersion: "takt/v1", Kind: "Config", Contexts: []savedContext{}}
	path := contextsPath()
	if path == "" {
		return none, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, usage(fmt.Sprintf("the contexts cannot be read: %v", err))
	}
	file, _, err := jobfile.ParseOther[contextsFile](path, "Config", text)
	if faults, ok := errors.AsType[jobfile.Errors](err); ok {
		return none, &failure{code: exitUsage, what: "the file of contexts is not valid", why: printable(faults[0].Error()), todo: printable(faults[0].Hint)}
	}
	if err != nil {
		return none, usage(fmt.Sprintf("%s: %v", path, err))
	}
	return file, nil
}

// writeContexts replaces the file in one go; only its owner may read it.
func writeContexts(text []byte) error {
	path := contextsPath()
	if path == "" {
		return usage("there is no home directory to keep contexts in: set TAKT_CONFIG to a file")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return unkept(err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".config-*") // mode 0600
	if err != nil {
		return unkept(err)
	}
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return unkept(errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}

func unkept(err error) error {
	return &failure{code: exitUsage, what: "the contexts cannot be kept", why: err.Error(), todo: "set TAKT_CONFIG to a file that can be written"}
}
