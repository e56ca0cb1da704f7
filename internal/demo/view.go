package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/taktsched/takt"
)

// view shows how the run goes on. Its methods are for one goroutine. What cannot be shown is lost: the
// result does not depend on it.
type view struct {
	out      io.Writer
	terminal bool // redraw bars in place; else a line per event
	began    time.Time
	last     []takt.ShardStatus
	drawn    int // lines of bars on the screen
}

// say shows one event.
func (v *view) say(format string, args ...any) {
	v.wipe()
	fmt.Fprintf(v.out, "%6.1fs  %s\n", time.Since(v.began).Seconds(), fmt.Sprintf(format, args...))
	v.draw()
}

// show takes in how the shards stand now.
func (v *view) show(shards []takt.ShardStatus) {
	before := v.last
	v.last = shards
	for i := range shards {
		var old takt.ShardStatus
		if i < len(before) {
			old = before[i]
		}
		for _, line := range changes(&old, &shards[i]) {
			v.say("%s", line)
		}
	}
	v.wipe()
	v.draw()
}

// close leaves the last bars on the screen.
func (v *view) close() {
	v.wipe()
	v.draw()
	v.drawn = 0
	v.last = nil
}

// changes words what happened to a shard between two looks.
func changes(old, now *takt.ShardStatus) []string {
	var lines []string
	for i, a := range now.Attempts {
		if a.Number <= old.Attempt {
			continue
		}
		line := fmt.Sprintf("shard %d: attempt %d on %s, token %d", now.Index, a.Number, a.Worker, a.Token)
		if a.ResumedFrom > 0 {
			line += fmt.Sprintf(", goes on from checkpoint %d", a.ResumedFrom)
		}
		if i > 0 && now.Attempts[i-1].State == "lost" {
			line += fmt.Sprintf(" (%s's lease ran out)", now.Attempts[i-1].Worker)
		}
		lines = append(lines, line)
	}
	if now.EndedAt != nil && old.EndedAt == nil {
		line := fmt.Sprintf("shard %d: %s on %s", now.Index, now.State, now.Worker)
		if now.Error != nil {
			line += ": " + now.Error.Message
		}
		lines = append(lines, line)
	}
	return lines
}

func (v *view) wipe() {
	if v.drawn > 0 {
		fmt.Fprintf(v.out, "\x1b[%dA\x1b[J", v.drawn)
		v.drawn = 0
	}
}

func (v *view) draw() {
	if !v.terminal || len(v.last) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString("\x1b[?7l") // long lines are cut, not wrapped: the lines are counted
	for i := range v.last {
		b.WriteString(barLine(&v.last[i]) + "\n")
	}
	b.WriteString("\x1b[?7h")
	_, _ = io.WriteString(v.out, b.String())
	v.drawn = len(v.last)
}

// barCells leaves a line within 80 columns.
const barCells = 10

func barLine(s *takt.ShardStatus) string {
	done, percent := 0, 0
	switch p := s.Progress; {
	case s.State == "succeeded":
		done, percent = barCells, 100
	case p != nil && p.Total > 0:
		percent = int(min(p.Done, p.Total) * 100 / p.Total)
		done = percent * barCells / 100
	}
	lease := "   -"
	if s.LeaseLeftMs > 0 {
		lease = fmt.Sprintf("%3.1fs", float64(s.LeaseLeftMs)/1000)
	}
	return fmt.Sprintf("%2d %s%s %3d%% %-10s %-2s lease %s attempt %d token %d", s.Index,
		strings.Repeat("█", done), strings.Repeat("░", barCells-done), percent, s.State, s.Worker, lease, s.Attempt, s.Token)
}
