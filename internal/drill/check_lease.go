package drill

import (
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// wire is the workers' side of the leases, as the network saw it.
type wire struct {
	sent  map[string]map[int64]time.Time // session, call
	named map[job.Token][]WireNote       // by arrival
}

func (ix *index) wire() wire {
	w := wire{sent: map[string]map[int64]time.Time{}, named: map[job.Token][]WireNote{}}
	for _, n := range ix.Wire {
		switch n.Kind {
		case WireSent:
			if w.sent[n.Session] == nil {
				w.sent[n.Session] = map[int64]time.Time{}
			}
			if _, again := w.sent[n.Session][n.Call]; !again {
				w.sent[n.Session][n.Call] = n.At
			}
		case WireNamed:
			w.named[n.Token] = append(w.named[n.Token], n)
		}
	}
	return w
}

// deadline is the holder's own, from the answers that reached it by at: the latest over them of the
// instant before the named call was sent + TTL − margin.
func (ix *index) deadline(w wire, t job.Token, at time.Time) time.Time {
	var d time.Time
	for _, n := range w.named[t] {
		sent, known := w.sent[n.Session][n.Call]
		if !known || n.At.After(at) {
			continue
		}
		if x := sent.Add(ix.TTL - ix.Margin); x.After(d) {
			d = x
		}
	}
	return d
}

// checkTakeover: a lease is not called expired before the call that it rests on is TTL old, and it does
// not stay open long after (R7: TTL + P more for each owner that took over).
func checkTakeover(ix *index, fail failFunc) {
	w := ix.wire()
	for _, l := range ix.order {
		last := ix.lastSign(l)
		end, seq := ix.End, int64(0)
		if l.end >= 0 {
			end, seq = ix.Events[l.end].when(), ix.Events[l.end].Seq
		}
		late := last.when().Add(ix.TTL + ix.Slack)
		for _, i := range l.owners {
			if o := ix.Events[i].when().Add(ix.TTL + ix.OwnerTTL + ix.Slack); o.After(late) {
				late = o
			}
		}
		if (l.end < 0 || l.expired) && end.After(late) {
			fail(seq, "token %d of shard %s: last sign at %s, still open at %s", l.id.token, l.shard, stamp(last.when()), stamp(end))
		}
		if !l.expired {
			continue
		}
		for _, n := range w.named[l.id.token] {
			sent, known := w.sent[n.Session][n.Call]
			if known && !n.At.After(end) && end.Before(sent.Add(ix.TTL)) {
				fail(seq, "token %d of shard %s expired at %s, although call %d was sent at %s", l.id.token, l.shard, stamp(end), n.Call, stamp(sent))
			}
		}
	}
}

// checkNoRobbery: between the last renewal that the owner itself gave and its verdict lies a whole TTL. One engine is judged by
// the instants of its own steps: a renewal whose step has a commit is seen only when that has landed, which may be later than the
// renewal by more than the verdict's commit took. Between two engines lies a whole grace, beside which that is nothing.
func checkNoRobbery(ix *index, fail failFunc) {
	for _, l := range ix.order {
		if !l.expired || len(l.renewed) == 0 {
			continue
		}
		last, end := ix.lastSign(l), &ix.Events[l.end]
		apart := end.when().Sub(last.when())
		if last.Mono != 0 && end.Mono != 0 && last.Epoch == end.Epoch {
			apart = end.Mono - last.Mono
		}
		if apart < ix.TTL {
			fail(end.Seq, "token %d of shard %s expired at %s, %s after its renewal", l.id.token, l.shard, stamp(end.when()), apart)
		}
	}
}

// checkSelfFencing judges handlers that ask their Task before each effect: none begins at or after the
// holder's own deadline, none lands after the shard was granted to somebody else.
func checkSelfFencing(ix *index, fail failFunc) {
	w := ix.wire()
	granted := map[shardID][]*Event{}
	for i := range ix.Events {
		if e := &ix.Events[i]; e.Kind == engine.FactLeaseGranted {
			s := shardID{e.Execution, e.Shard}
			granted[s] = append(granted[s], e)
		}
	}
	for _, x := range ix.Effects {
		began := x.Began
		if began.IsZero() {
			began = x.At
		}
		if d := ix.deadline(w, x.Token, began); !began.Before(d) {
			fail(0, "%s began an effect of %s with token %d at %s, its own deadline was %s", x.Worker, x.Key, x.Token, stamp(began), stamp(d))
		}
		id, err := job.ParseExecutionID(x.Execution)
		if err != nil {
			fail(0, "effect of an unreadable execution %q", x.Execution)
			continue
		}
		for _, g := range granted[shardID{id, x.Shard}] {
			if g.Token > x.Token && x.At.After(g.when()) {
				fail(g.Seq, "%s made an effect of %s with token %d at %s, after token %d had been granted", x.Worker, x.Key, x.Token, stamp(x.At), g.Token)
			}
		}
	}
}

func stamp(t time.Time) string { return t.UTC().Format("15:04:05.000000000") }
