package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/taktsched/takt"
)

const (
	maxControlLine = 512 << 10 // more than the server takes for a result
	maxComplaints  = 10        // about bad lines, per attempt
)

// controlLine is what a command may write on its control descriptor: one JSON object per line, with one
// or more of these.
type controlLine struct {
	Progress *struct {
		Done  int64  `json:"done"`
		Total int64  `json:"total"`
		Note  string `json:"note"`
	} `json:"progress"`
	Checkpoint json.RawMessage `json:"checkpoint"`
	Result     json.RawMessage `json:"result"`
}

// control takes the lines of one attempt in their order. A checkpoint is durable before the next line is
// read.
type control struct {
	ctx        context.Context // of checkpoints
	task       *takt.Task
	log        *slog.Logger
	complaints int
}

func (c *control) writer() *lines { return &lines{max: maxControlLine, line: c.take} }

func (c *control) take(text []byte, cut bool) {
	if len(bytes.TrimSpace(text)) == 0 && !cut {
		return
	}
	if cut {
		c.complain(fmt.Errorf("it has more than %d bytes", maxControlLine))
		return
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var line controlLine
	if err := d.Decode(&line); err != nil {
		c.complain(err)
		return
	}
	if d.More() {
		c.complain(errors.New("it holds more than one JSON value"))
		return
	}
	if p := line.Progress; p != nil {
		if err := c.task.Progress(p.Done, p.Total, p.Note); err != nil && !stopped(err) {
			c.complain(err)
		}
	}
	if line.Result != nil {
		if err := c.task.SetResult(line.Result); err != nil {
			c.complain(err)
		}
	}
	if line.Checkpoint != nil {
		if err := c.task.Checkpoint(c.ctx, line.Checkpoint); err != nil {
			c.complain(err)
		}
	}
}

// complain logs why a line does not count, without the line: it may hold what logs must not.
func (c *control) complain(err error) {
	switch c.complaints++; {
	case c.complaints < maxComplaints:
		c.log.Warn("a line on the control descriptor is ignored", "error", err)
	case c.complaints == maxComplaints:
		c.log.Warn("a line on the control descriptor is ignored; more of them are not told", "error", err)
	}
}
