package partition_test

import (
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// Sessions with a meaning to the fake core.
const (
	sessionPanics = job.SessionID("panics")  // its report makes Step panic
	sessionBad    = job.SessionID("bad")     // its report is written with this session, which refusing stores know
	sessionStale  = job.SessionID("stale")   // its report is refused and writes nothing
	sessionHangs  = job.SessionID("hangs")   // its report hangs Step until the rig's hang is closed
	kindPanics    = engine.EntryKind("boom") // an entry that makes Step panic

	schedulePanics = "boom" // a due schedule that makes Step panic
)

// scripted is a core that writes one session row per report and entry, and never wakes.
type scripted struct {
	cfg   engine.Config
	seq   int64
	seen  *[]seen
	gone  *[]engine.ReplyID
	hang  chan struct{}
	eaten map[int64]bool
}

// seen is what a step of a scripted core was given.
type seen struct {
	epoch    job.Epoch
	now      engine.Now
	reports  int
	setAside []engine.SetAside
	loaded   *engine.Loaded
}

func (c *scripted) NextWake() (time.Duration, bool) { return 0, false }

func (c *scripted) Step(now engine.Now, events []engine.Event) engine.Result {
	var res engine.Result
	note := seen{epoch: c.cfg.Epoch, now: now}
	answer := func(id engine.ReplyID, renewal bool, v any) {
		res.Answers = append(res.Answers, engine.Answer{Reply: id, Renewal: renewal, Value: v})
	}
	write := func(id job.SessionID) { res.Batch.Sessions = append(res.Batch.Sessions, job.Session{ID: id}) }
	for _, ev := range events {
		switch ev := ev.(type) {
		case engine.Loaded:
			c.seq, note.loaded = ev.Seq, &ev
			res.Want.Due = &engine.WantDue{Limit: 100}
		case engine.DuePage:
			for _, d := range ev.Items {
				if d.Cursor.Schedule == schedulePanics {
					panic("a bad schedule")
				}
				res.Batch.Cursors = append(res.Batch.Cursors, d.Cursor)
			}
		case engine.Report:
			note.reports++
			if ev.Session == sessionPanics {
				panic("a bad report")
			}
			if ev.Session == sessionHangs {
				<-c.hang
			}
			if ev.Session == sessionStale {
				answer(ev.Reply, false, &engine.Reported{Items: []engine.ItemStatus{engine.ItemStale}})
				continue
			}
			write(ev.Session)
			answer(ev.Reply, false, &engine.Reported{Items: []engine.ItemStatus{engine.ItemAccepted}})
		case engine.SessionOpen:
			write(ev.Session.ID)
			answer(ev.Reply, false, &engine.Opened{})
		case engine.Heartbeat:
			answer(ev.Reply, true, &engine.Beaten{Call: ev.Call})
		case engine.Inspect:
			answer(ev.Reply, false, &engine.Inspected{})
		case engine.PollGone:
			*c.gone = append(*c.gone, ev.Reply)
		case engine.InboxPage:
			for _, e := range ev.Entries {
				if c.eaten[e.ID] {
					continue // the page was read before its commit
				}
				if e.Kind == kindPanics {
					panic("a bad entry")
				}
				if !e.Kind.Known() || e.Kind == engine.EntryBackfill { // which waits for something here
					continue
				}
				c.eaten[e.ID] = true
				res.Batch.Consumed = append(res.Batch.Consumed, e.ID)
			}
		case engine.SetAside:
			note.setAside = append(note.setAside, ev)
			res.Batch.Poison = append(res.Batch.Poison, engine.Poison{Error: ev.Error})
			if pg, ok := ev.Event.(engine.InboxPage); ok {
				for _, e := range pg.Entries {
					c.eaten[e.ID] = true
					res.Batch.Consumed = append(res.Batch.Consumed, e.ID)
				}
			}
		}
	}
	*c.seen = append(*c.seen, note)
	if !res.Batch.Empty() {
		c.seq++
		res.Batch.Seq = c.seq
		res.Batch.Facts = []engine.Fact{{Kind: engine.FactResult}}
	}
	return res
}
