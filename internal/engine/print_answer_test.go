package engine_test

import (
	"fmt"
	"strings"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

func (n *names) answer(a engine.Answer) string {
	var s words
	switch v := a.Value.(type) {
	case *engine.Opened:
		s.add(true, "opened, newest call %d", v.Call)
	case *engine.Polled:
		for i := range v.Assignments {
			s.add(true, "%s", n.assignment(&v.Assignments[i]))
		}
		s = append(s, n.cancels(v.Cancels)...)
		s.add(v.Superseded, "superseded")
		s.add(len(s) == 0, "nothing")
	case *engine.Beaten:
		s.add(len(v.Renewed) > 0, "renewed %v by call %d", v.Renewed, v.Call)
		s.add(len(v.Lost) > 0, "lost %v", v.Lost)
		s = append(s, n.cancels(v.Cancels)...)
		s.add(len(s) == 0, "nothing held")
	case *engine.Reported:
		s.add(true, "%v", v.Items)
	case *engine.Closed:
		s.add(true, "closed")
	case *engine.Inspected:
		return n.inspected(v)
	case *job.Error:
		s.add(true, "%s %s", v.Kind, v.Code)
	}
	text := strings.Join(s, "; ")
	if a.Renewal {
		text += " (waits for no commit)"
	}
	return text
}

func (n *names) assignment(a *engine.Assignment) string {
	var s words
	s.add(true, "run %s/%d token=%d attempt=%d call=%d", n.exec(a.Execution.ID), a.Shard, a.Token, a.Attempt, a.LeaseCall)
	s.add(a.TimeoutIn > 0, "timeoutIn=%v", a.TimeoutIn)
	s.add(a.CheckpointSeq > 0, "ckpt=%d:%s", a.CheckpointSeq, a.Checkpoint)
	s.add(a.RunsAfter, "after")
	s.add(true, "key=%s", strings.ReplaceAll(a.Key, a.Execution.ID.String(), n.exec(a.Execution.ID)))
	return strings.Join(s, " ")
}

func (n *names) cancels(cancels []engine.Cancel) (s words) {
	for _, c := range cancels {
		s.add(true, "stop %s/%d token=%d (%s) grace=%v", n.exec(c.Execution), c.Shard, c.Token, c.Reason, c.Grace)
	}
	return s
}

func (n *names) inspected(v *engine.Inspected) string {
	var b strings.Builder
	for _, s := range v.Sessions {
		fmt.Fprintf(&b, "\n    session %s free=%d polling=%t lastBeat=%v", n.session(s.Session.ID), s.Free, s.Polling, s.LastBeat)
		for _, h := range s.Held {
			fmt.Fprintf(&b, " [%s/%d token=%d %s left=%v]", n.exec(h.Execution), h.Shard, h.Token, h.State, h.Left)
		}
	}
	for _, p := range v.Pools {
		fmt.Fprintf(&b, "\n    pool %s/%s workers=%d slots=%d busy=%d queued=%d", p.Namespace, p.Pool, p.Workers, p.Slots, p.Busy, p.Queued)
	}
	if x := v.Execution; x != nil {
		fmt.Fprintf(&b, "\n    %s %s", n.exec(x.Row.Execution.ID), x.Row.Execution.State)
		for i, s := range x.Row.Shards {
			fmt.Fprintf(&b, "\n    shard %d %s waits=%q left=%v", i, s.State, x.Waits[i], x.Left[i])
		}
	}
	if b.Len() == 0 {
		return "nothing in memory"
	}
	return b.String()
}
