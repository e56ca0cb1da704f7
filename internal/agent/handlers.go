package agent

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/jobfile"
)

// Handlers is the content of a handlers file.
type Handlers struct {
	APIVersion string             `json:"apiVersion" enum:"takt/v1"`
	Kind       string             `json:"kind" enum:"Handlers"`
	Handlers   map[string]Handler `json:"handlers" doc:"By the name that jobs use."`

	First string `json:"-"` // the name that stands first in the file
}

// Handler is what runs for a handler's name: a command or an HTTP call.
type Handler struct {
	Command *Command      `json:"command,omitempty"`
	HTTP    *HTTP         `json:"http,omitempty"`
	Grace   takt.Duration `json:"grace,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"From SIGTERM to SIGKILL; default 10s."`
}

// Command is a process to run. Exactly one of Argv and Shell is given.
type Command struct {
	Argv      []string          `json:"argv,omitempty" minItems:"1" maxItems:"1000" doc:"Program and arguments; nothing in them is expanded."`
	Shell     string            `json:"shell,omitempty" maxLength:"65536" doc:"Text for /bin/sh -c."`
	Dir       string            `json:"dir,omitempty" doc:"Absolute path of the working directory; default: a private one that is removed at the end."`
	Env       *Env              `json:"env,omitempty"`
	ExitCodes map[string]string `json:"exitCodes,omitempty" doc:"Exit code to success, retry, fatal or snooze; adds to the table."`
	Snooze    takt.Duration     `json:"snooze,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"How much later a snoozed shard runs again; default 1m."`
}

// Env is the environment of a command, beside the TAKT_ variables of the attempt.
type Env struct {
	Allow []string          `json:"allow,omitempty" doc:"Variables of the agent that the command gets; default PATH, HOME, USER, LANG, LC_ALL, TZ and TMPDIR."`
	Set   map[string]string `json:"set,omitempty"`
}

// HTTP is a call to make.
type HTTP struct {
	URL          string            `json:"url" maxLength:"2048"`
	Headers      map[string]string `json:"headers,omitempty"`
	Timeout      takt.Duration     `json:"timeout,omitempty" pattern:"^(0|([0-9]{1,9}(\\.[0-9]{1,6})?(ms|s|m|h|d|w))+)$" doc:"Of the whole call; default 10s."`
	AllowPrivate bool              `json:"allowPrivate,omitempty" doc:"Private, loopback and link-local addresses may be called."`
	Allow        []string          `json:"allow,omitempty" doc:"Networks that may be called although they are private, such as 10.1.0.0/16."`
}

const (
	defaultGrace       = 10 * time.Second
	defaultSnooze      = time.Minute
	defaultHTTPTimeout = 10 * time.Second
	maxFile            = jobfile.MaxSize
)

var (
	defaultAllow = []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"}

	handlerName = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,128}$`)
	variable    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	headerName  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
	exitCode    = regexp.MustCompile(`^(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])$`)
)

// Load reads a handlers file. The error is jobfile.Errors when the file's content is at fault.
func Load(name string) (*Handlers, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	return Parse(name, data)
}

// Parse reads the content of a handlers file; file names it in errors, which are jobfile.Errors and hold
// every fault that was found, with line and column.
func Parse(file string, data []byte) (*Handlers, error) {
	h, doc, err := jobfile.ParseOther[Handlers](file, "Handlers", data)
	if err != nil {
		return nil, err
	}
	c := checker{doc: doc}
	if len(h.Handlers) == 0 {
		c.at("handlers", "there is no handler", "name at least one")
	}
	var first *jobfile.Error // its place
	for name, one := range h.Handlers {
		c.handler("handlers."+name, name, one)
		if p := doc.At("handlers."+name, "", ""); first == nil || before(p, first) < 0 {
			first, h.First = p, name
		}
	}
	if len(c.faults) > 0 {
		slices.SortStableFunc(c.faults, before)
		return nil, c.faults
	}
	return &h, nil
}

func before(a, b *jobfile.Error) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) }

// checker finds what the types' tags cannot say.
type checker struct {
	doc    *jobfile.Doc
	faults jobfile.Errors
}

func (c *checker) at(field, message, hint string) {
	c.faults = append(c.faults, c.doc.At(field, message, hint))
}

func (c *checker) handler(at, name string, h Handler) {
	if !handlerName.MatchString(name) {
		c.at(at, fmt.Sprintf("%.80q is no name of a handler", name), "at most 128 of A-Z a-z 0-9 _ . : / -")
	}
	switch {
	case (h.Command == nil) == (h.HTTP == nil):
		c.at(at, "a handler is either a command or an http call", "give one of command and http")
	case h.Command != nil:
		c.command(at+".command", h.Command)
	default:
		c.http(at+".http", h.HTTP)
	}
}

func (c *checker) command(at string, cmd *Command) {
	switch {
	case !canCommand:
		c.at(at, "commands cannot be run on this system", "use http, or run the agent on a unix system")
	case (len(cmd.Argv) == 0) == (cmd.Shell == ""):
		c.at(at, "a command is either an argv or a text for the shell", "give one of argv and shell")
	case len(cmd.Argv) > 0 && cmd.Argv[0] == "":
		c.at(at+".argv", "the program's name is empty", "")
	}
	for i, arg := range append(slices.Clone(cmd.Argv), cmd.Shell) {
		if strings.Contains(arg, "\x00") {
			c.at(fmt.Sprintf("%s.argv[%d]", at, i), "an argument cannot hold NUL", "")
		}
	}
	if cmd.Dir != "" && (!strings.HasPrefix(cmd.Dir, "/") || strings.Contains(cmd.Dir, "\x00")) {
		c.at(at+".dir", fmt.Sprintf("%.80q is no absolute path", cmd.Dir), "begin it with /")
	}
	for code, outcome := range cmd.ExitCodes {
		field := at + ".exitCodes." + code
		if !exitCode.MatchString(code) {
			c.at(field, fmt.Sprintf("%.20q is no exit code", code), "exit codes are 0 to 255")
		}
		if !slices.Contains(verdicts, outcome) {
			c.at(field, fmt.Sprintf("%.40q is no outcome", outcome), "one of "+strings.Join(verdicts, ", "))
		}
	}
	if cmd.Env != nil {
		c.env(at+".env", cmd.Env)
	}
}

func (c *checker) env(at string, env *Env) {
	name := func(field, name string) {
		switch {
		case !variable.MatchString(name):
			c.at(field, fmt.Sprintf("%.80q is no name of a variable", name), "letters, digits and _")
		case strings.HasPrefix(name, "TAKT_"):
			c.at(field, fmt.Sprintf("%.80s: names that begin with TAKT_ are the agent's own", name),
				"the command gets the variables of its attempt anyway, and never the agent's token")
		}
	}
	for i, allowed := range env.Allow {
		name(fmt.Sprintf("%s.allow[%d]", at, i), allowed)
	}
	for set, value := range env.Set {
		name(at+".set."+set, set)
		if strings.Contains(value, "\x00") {
			c.at(at+".set."+set, "a variable cannot hold NUL", "")
		}
	}
}

func (c *checker) http(at string, h *HTTP) {
	u, err := url.Parse(h.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		c.at(at+".url", "it is no http or https address", "such as https://example.com/hook")
	case u.User != nil:
		c.at(at+".url", "an address with a user's name would show the password in logs", "send it as a header")
	}
	for name, value := range h.Headers {
		field := at + ".headers." + name
		switch {
		case !headerName.MatchString(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			c.at(field, "it cannot be a header", "a name, and a value in one line")
		case slices.Contains(ownHeaders, strings.ToLower(name)):
			c.at(field, "the agent sets this header itself", "leave it out")
		}
	}
	for i, network := range h.Allow {
		if _, err := netip.ParsePrefix(network); err != nil {
			c.at(fmt.Sprintf("%s.allow[%d]", at, i), fmt.Sprintf("%.80q is no network", network), "such as 10.1.0.0/16 or 127.0.0.1/32")
		}
	}
}
