package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"

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
		c.complain(worded(err))
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

// worded says what is wrong with a line for those who write handlers, not for those who write Go.
func worded(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		must := "an object such as {\"done\": 3, \"total\": 9, \"note\": \"text\"}"
		switch {
		case e.Type.Kind() == reflect.Int64:
			must = "a whole number"
		case e.Type.Kind() == reflect.String:
			must = "a text"
		case e.Field == "":
			must = "an object with progress, checkpoint or result"
		}
		return fmt.Errorf("%s must be %s, and is a %s", firstOf(e.Field, "the line"), must, e.Value)
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("%s is no field: progress, checkpoint and result are", field)
	}
	return fmt.Errorf("it is not JSON: %w", err)
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
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
