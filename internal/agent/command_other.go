//go:build !unix

package agent

import (
	"context"

	"github.com/taktsched/takt"
)

// commandHandler is not reached: a handlers file with a command is refused here.
type commandHandler struct {
	agent *Agent
	spec  Handler
}

func (h *commandHandler) run(context.Context, *takt.Task) error { return takt.Fatal(errNoCommands) }
