package drill

import (
	"fmt"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// check is one invariant of the list in docs; fail records where it breaks.
type check struct {
	id   string
	text string
	run  func(ix *index, fail func(seq int64, format string, args ...any))
}

// checks is the list. I03, I06, I07 and I16, I20–I24, I26–I29 belong to later parts of the scheduler.
var checks = []check{
	{"I01", "one planned instant, one execution", checkOneExecution},
	{"I02", "nothing planned is forgotten", checkFates},
	{"I04", "never early", checkNeverEarly},
	{"I05", "the next time moves forward", checkForward},
	{"I08", "one live lease per shard", checkOneLease},
	{"I09", "tokens only grow", checkTokensGrow},
	{"I10", "no stale write is accepted", checkNoStaleWrite},
	{"I10", "no stale item is answered accepted", checkNoStaleAnswer},
	{"I10", "no valid item is refused", checkNothingValidRefused},
	{"I11", "one accepted result", checkOneResult},
	{"I12", "no renewal after the lease was given away", checkNoLateRenewal},
	{"I13", "take-over when the lease is over: not before, not much later", checkTakeover},
	{"I14", "no robbery of the living", checkNoRobbery},
	{"I15", "the holder fences itself", checkSelfFencing},
	{"I17", "success is total, an end leaves no lease", checkTotalSuccess},
	{"I18", "checkpoints never go back", checkCheckpoints},
	{"I19", "states follow the table", checkStates},
	{"I25", "executions of schedules run one by one", checkSerial},
	{"I30", "one owner at a time, under rising epochs", checkTerms},
}

// Invariants lists what Check checks, as "I01 one planned instant, one execution".
func Invariants() []string {
	var out []string
	for _, c := range checks {
		out = append(out, c.id+" "+c.text)
	}
	return out
}

// Check returns every violation in the history, in the order of the invariants.
func Check(h *History) []Violation {
	ix := newIndex(h)
	var out []Violation
	for _, c := range checks {
		c.run(ix, func(seq int64, format string, args ...any) {
			out = append(out, Violation{Invariant: c.id, Seq: seq, Text: fmt.Sprintf(format, args...)})
		})
	}
	return out
}

type failFunc = func(seq int64, format string, args ...any)

func checkOneExecution(ix *index, fail failFunc) {
	created := map[job.ExecutionID]int64{}
	for _, e := range ix.Events {
		if e.Kind != engine.FactExecutionCreated {
			continue
		}
		if first, twice := created[e.Execution]; twice {
			fail(e.Seq, "execution %s of %s was created at seq %d already", e.Execution, e.Job, first)
		}
		created[e.Execution] = e.Seq
	}
	type instant struct {
		job job.UID
		at  job.Instant
	}
	planned := map[instant]job.ExecutionID{}
	for _, x := range ix.Executions {
		if !Planned(&x) {
			continue
		}
		k := instant{x.JobUID, x.PlannedAt}
		if other, twice := planned[k]; twice {
			fail(0, "executions %s and %s are both for %s at %s", other, x.ID, x.Job, x.PlannedAt)
		}
		planned[k] = x.ID
	}
}

// checkNeverEarly compares with the owner's wall time, by which instants are planned (R9).
func checkNeverEarly(ix *index, fail failFunc) {
	rows := map[job.ExecutionID]job.Execution{}
	for _, x := range ix.Executions {
		rows[x.ID] = x
	}
	for _, e := range ix.Events {
		x, known := rows[e.Execution]
		if !known || !Planned(&x) {
			continue
		}
		switch e.Kind {
		case engine.FactExecutionCreated, engine.FactLeaseGranted:
			if e.At < x.PlannedAt {
				fail(e.Seq, "%s of %s at %s, planned for %s", e.Kind, x.ID, e.At, x.PlannedAt)
			}
		}
	}
}

func checkOneLease(ix *index, fail failFunc) {
	for _, l := range ix.order {
		for _, before := range ix.byShard[l.shard] {
			if before.grant < l.grant && (before.end < 0 || before.end > l.grant) {
				fail(ix.Events[l.grant].Seq, "shard %s was granted as token %d while token %d was open", l.shard, l.id.token, before.id.token)
			}
		}
	}
}

// checkTokensGrow is stricter than the list: R6 wants them to grow over all shards of a partition.
func checkTokensGrow(ix *index, fail failFunc) {
	highest := map[int]job.Token{}
	for _, e := range ix.Events {
		if e.Kind != engine.FactLeaseGranted {
			continue
		}
		if e.Token <= highest[e.Partition] {
			fail(e.Seq, "token %d of shard %s/%d is not above %d", e.Token, e.Execution, e.Shard, highest[e.Partition])
		}
		highest[e.Partition] = max(highest[e.Partition], e.Token)
	}
}

func checkNoStaleWrite(ix *index, fail failFunc) {
	newest := map[shardID]job.Token{}
	for i, e := range ix.Events {
		s := shardID{e.Execution, e.Shard}
		switch e.Kind {
		case engine.FactLeaseGranted:
			newest[s] = max(newest[s], e.Token)
		case engine.FactStarted, engine.FactCheckpoint, engine.FactResult:
			if e.Token != newest[s] {
				fail(e.Seq, "%s of shard %s with token %d was accepted, the newest is %d", e.Kind, s, e.Token, newest[s])
				continue
			}
			l := ix.byToken[tokenID{e.Partition, e.Token}]
			if l != nil && l.end >= 0 && l.end < i && !l.expired && ix.Events[l.end].Seq < e.Seq {
				fail(e.Seq, "%s of shard %s with token %d was accepted after the lease had been given back", e.Kind, s, e.Token)
			}
		}
	}
}

// checkNoStaleAnswer is the workers' side of I10: what was sent first after somebody else had been granted
// the shard is not answered accepted.
func checkNoStaleAnswer(ix *index, fail failFunc) {
	for _, n := range ix.Wire {
		if n.Kind != WireAccepted {
			continue
		}
		for _, l := range ix.order {
			if l.id.token != n.Token {
				continue
			}
			for _, newer := range ix.byShard[l.shard] {
				if g := &ix.Events[newer.grant]; newer.id.token > n.Token && g.when().Before(n.First) {
					fail(g.Seq, "an item of token %d of shard %s, sent at %s, was accepted after token %d had been granted", n.Token, l.shard,
						stamp(n.First), newer.id.token)
				}
			}
		}
	}
}

// checkNothingValidRefused is the other side of I10: who was told stale or lost had indeed lost the token,
// by something that was durable when the answer came (R1).
func checkNothingValidRefused(ix *index, fail failFunc) {
	for _, n := range ix.Wire {
		if n.Kind != WireRefused {
			continue
		}
		for _, l := range ix.order {
			if l.id.token == n.Token && !ix.overBy(l, n.At) {
				fail(ix.Events[l.grant].Seq, "token %d of shard %s was refused at %s, although it was the newest and not closed", n.Token, l.shard, stamp(n.At))
			}
		}
	}
}

// overBy tells whether l's token could write no more at the given instant: its lease was over, or it was
// closed, or somebody else had a newer one.
func (ix *index) overBy(l *lease, at time.Time) bool {
	for i := l.grant + 1; i < len(ix.Events); i++ {
		e := &ix.Events[i]
		if e.when().After(at) || e.Execution != l.shard.exec {
			continue
		}
		switch e.Kind {
		case engine.FactCancelRequested:
			return true
		case engine.FactLeaseEnded, engine.FactLeaseExpired, engine.FactTimedOut, engine.FactLeaseGranted:
			if e.Shard == l.shard.index {
				return true
			}
		}
	}
	return false
}

func checkOneResult(ix *index, fail failFunc) {
	type attempt struct {
		shardID
		n int
	}
	results := map[attempt]int64{}
	succeeded := map[shardID]int64{}
	for _, e := range ix.Events {
		s := shardID{e.Execution, e.Shard}
		switch {
		case e.Kind == engine.FactResult:
			a := attempt{s, e.Attempt}
			if first, twice := results[a]; twice {
				fail(e.Seq, "attempt %d of shard %s has a second result, the first was at seq %d", e.Attempt, s, first)
			}
			results[a] = e.Seq
		case e.Kind == engine.FactShardState && e.To == string(job.ShardSucceeded):
			if first, twice := succeeded[s]; twice {
				fail(e.Seq, "shard %s succeeded a second time, the first was at seq %d", s, first)
			}
			succeeded[s] = e.Seq
		}
	}
}

func checkNoLateRenewal(ix *index, fail failFunc) {
	newest := map[shardID]*Event{}
	for i := range ix.Events {
		e := &ix.Events[i]
		s := shardID{e.Execution, e.Shard}
		switch e.Kind {
		case engine.FactLeaseGranted:
			if n := newest[s]; n == nil || n.Token < e.Token {
				newest[s] = e
			}
		case engine.FactLeaseRenewed:
			l := ix.byToken[tokenID{e.Partition, e.Token}]
			switch {
			case l == nil:
				fail(e.Seq, "token %d was renewed and never granted", e.Token)
			case newest[l.shard] != nil && newest[l.shard].Token > e.Token && newest[l.shard].precedes(e):
				fail(e.Seq, "token %d of shard %s was renewed after token %d had been granted", e.Token, l.shard, newest[l.shard].Token)
			case l.end >= 0 && l.end < i && !l.expired && ix.Events[l.end].precedes(e):
				fail(e.Seq, "token %d of shard %s was renewed after its lease had ended", e.Token, l.shard)
			}
			for _, newer := range ix.leasesOf(l) { // owners that do not know of each other have no common order but time
				if g := &ix.Events[newer.grant]; newer.id.token > e.Token && g.when().Before(e.when()) {
					fail(e.Seq, "token %d of shard %s was renewed at %s, token %d had been granted at %s", e.Token, l.shard,
						stamp(e.when()), g.Token, stamp(g.when()))
				}
			}
		}
	}
}

// precedes tells of an event that stands before another one whether it was before it: one owner's events are in order, but what
// an owner did while a commit of its was on the way, which then failed, stands behind what the next owner committed in its place.
func (e *Event) precedes(o *Event) bool { return e.Epoch == o.Epoch || e.when().Before(o.when()) }
