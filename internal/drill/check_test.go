package drill_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

var (
	origin = job.Instant(1_800_000_000_000)
	planA  = job.PlannedID(job.UID{1}, origin)
)

func at(ms int) time.Time { return origin.Add(time.Duration(ms) * time.Millisecond).Time() }

func fact(seq int64, ms int, f engine.Fact) drill.Event {
	f.Execution = planA
	trace := f.Kind == engine.FactLeaseRenewed || f.Kind == engine.FactRejected
	return drill.Event{Seq: seq, At: origin.Add(time.Duration(ms) * time.Millisecond), Trace: trace, Fact: f}
}

// goodHistory is a history without a fault: one shard, granted to a as token 11, renewed once, lost at 6 s,
// granted to b as token 12, done.
func goodHistory() *drill.History {
	state := func(from, to string) engine.Fact { return engine.Fact{Kind: engine.FactShardState, From: from, To: to} }
	whole := func(from, to string) engine.Fact {
		return engine.Fact{Kind: engine.FactExecutionState, From: from, To: to}
	}
	return &drill.History{
		TTL: 3 * time.Second, Margin: 600 * time.Millisecond, OwnerTTL: time.Second, Slack: 100 * time.Millisecond, End: at(9000),
		Executions: []job.Execution{{ID: planA, Job: "j", JobUID: job.UID{1}, Trigger: job.TriggerSchedule, PlannedAt: origin, ShardTotal: 1}},
		Events: []drill.Event{
			fact(1, 0, engine.Fact{Kind: engine.FactExecutionCreated, Job: "d/j", To: "queued", Count: 1}),
			fact(1, 0, engine.Fact{Kind: engine.FactPlanned, Job: "d/j"}),
			fact(2, 10, whole("queued", "running")),
			fact(2, 10, state("queued", "leased")),
			fact(2, 10, engine.Fact{Kind: engine.FactLeaseGranted, Token: 11, Attempt: 1, Worker: "a"}),
			fact(3, 20, engine.Fact{Kind: engine.FactStarted, Token: 11, Attempt: 1}),
			fact(3, 20, state("leased", "running")),
			fact(4, 1000, engine.Fact{Kind: engine.FactCheckpoint, Token: 11, Attempt: 1, Checkpoint: 1}),
			fact(5, 3000, engine.Fact{Kind: engine.FactLeaseRenewed, Token: 11}),
			fact(5, 6000, engine.Fact{Kind: engine.FactLeaseExpired, Token: 11}),
			fact(5, 6000, state("running", "queued")),
			fact(6, 6001, engine.Fact{Kind: engine.FactLeaseGranted, Token: 12, Attempt: 2, Worker: "b", Checkpoint: 1}),
			fact(6, 6001, state("queued", "leased")),
			fact(7, 7000, engine.Fact{Kind: engine.FactResult, Token: 12, Attempt: 2}),
			fact(7, 7000, engine.Fact{Kind: engine.FactLeaseEnded, Token: 12, Attempt: 2}),
			fact(7, 7000, state("leased", "succeeded")),
			fact(7, 7000, whole("running", "succeeded")),
		},
		Wire: []drill.WireNote{
			{At: at(5), Kind: drill.WireSent, Worker: "a", Session: "A", Call: 1},
			{At: at(15), Kind: drill.WireNamed, Worker: "a", Session: "A", Call: 1, Token: 11},
			{At: at(2999), Kind: drill.WireSent, Worker: "a", Session: "A", Call: 2},
			{At: at(3001), Kind: drill.WireNamed, Worker: "a", Session: "A", Call: 2, Token: 11},
			{At: at(5000), Kind: drill.WireSent, Worker: "b", Session: "B", Call: 1},
			{At: at(6002), Kind: drill.WireNamed, Worker: "b", Session: "B", Call: 1, Token: 12},
			{At: at(6500), Kind: drill.WireRefused, Worker: "a", Session: "A", Token: 11},
			{At: at(1001), Kind: drill.WireAccepted, Worker: "a", Session: "A", Token: 11, First: at(999)},
		},
		Effects: []drill.Effect{
			{At: at(5398), Worker: "a", Execution: planA.String(), Token: 11, Key: "k1"},
			{At: at(6900), Worker: "b", Execution: planA.String(), Token: 12, Key: "k2"},
		},
	}
}

// put inserts an event at position i; drop removes those of a kind.
func put(h *drill.History, i int, e drill.Event) { h.Events = slices.Insert(h.Events, i, e) }
func drop(h *drill.History, kind engine.FactKind) {
	h.Events = slices.DeleteFunc(h.Events, func(e drill.Event) bool { return e.Kind == kind })
}

const whileRunning, afterLoss, afterGrant, atEnd = 8, 11, 13, 17 // positions in goodHistory

var faults = []struct {
	invariant, name string
	do              func(h *drill.History)
}{
	{"I01", "the same execution is created twice", func(h *drill.History) {
		put(h, whileRunning, fact(4, 1000, engine.Fact{Kind: engine.FactExecutionCreated, To: "queued"}))
	}},
	{"I01", "two executions for one instant", func(h *drill.History) {
		x := h.Executions[0]
		x.ID = job.PlannedID(job.UID{2}, origin)
		h.Executions = append(h.Executions, x)
	}},
	{"I04", "created early", func(h *drill.History) { h.Events[0].At -= 1 }},
	{"I04", "granted early", func(h *drill.History) { h.Events[4].At -= 11 }},
	{"I02", "an instant without a fate", func(h *drill.History) {
		h.Due = map[string][]job.Instant{"/j": {origin, origin.Add(time.Second)}}
	}},
	{"I02", "an execution and a decision for one instant", func(h *drill.History) {
		h.Due = map[string][]job.Instant{"/j": {origin}}
		put(h, 2, fact(1, 0, engine.Fact{Kind: engine.FactDecided, Job: "/j", PlannedAt: origin.Add(-time.Second), Until: origin.Add(time.Second), Count: 3}))
	}},
	{"I05", "the same instant is planned again", func(h *drill.History) {
		put(h, whileRunning, fact(5, 2000, engine.Fact{Kind: engine.FactPlanned, Job: "d/j"}))
	}},
	{"I05", "the next instant is not later", func(h *drill.History) {
		h.Events[1].PlannedAt, h.Events[1].Until = origin, origin
	}},
	{"I30", "an epoch again", func(h *drill.History) {
		put(h, 0, fact(1, 0, engine.Fact{Kind: engine.FactOwned, Token: 7}))
		put(h, 10, fact(5, 3000, engine.Fact{Kind: engine.FactOwned, Token: 7}))
	}},
	{"I30", "a commit under an old epoch", func(h *drill.History) {
		put(h, 0, fact(1, 0, engine.Fact{Kind: engine.FactOwned, Token: 7}))
		h.Events[15].Epoch = 6
	}},
	{"I30", "a renewal by somebody who was replaced", func(h *drill.History) {
		put(h, 0, fact(1, 0, engine.Fact{Kind: engine.FactOwned, Token: 7}))
		put(h, 0, fact(1, 2999, engine.Fact{Kind: engine.FactOwned, Token: 8}))
		h.Events[0], h.Events[1] = h.Events[1], h.Events[0]
		h.Events[10].Epoch = 7
	}},
	{"I14", "expired within TTL by the engine's own clock", func(h *drill.History) {
		h.Events[8].Mono, h.Events[9].Mono = time.Second, 4*time.Second-1
	}},
	{"I08", "granted while open", func(h *drill.History) { drop(h, engine.FactLeaseExpired) }},
	{"I08", "granted before it expired", func(h *drill.History) {
		h.Events[9], h.Events[11] = h.Events[11], h.Events[9]
	}},
	{"I09", "a token again", func(h *drill.History) { h.Events[11].Token = 11 }},
	{"I09", "a lower token for another shard", func(h *drill.History) {
		put(h, whileRunning, fact(4, 1000, engine.Fact{Kind: engine.FactLeaseGranted, Shard: 1, Token: 10}))
	}},
	{"I10", "a checkpoint of the old token", func(h *drill.History) {
		put(h, afterGrant, fact(7, 6500, engine.Fact{Kind: engine.FactCheckpoint, Token: 11, Checkpoint: 2}))
	}},
	{"I10", "a result of the old token", func(h *drill.History) { h.Events[13].Token = 11 }},
	{"I10", "a checkpoint after giving back", func(h *drill.History) {
		put(h, atEnd, fact(8, 7100, engine.Fact{Kind: engine.FactCheckpoint, Token: 12, Checkpoint: 2}))
	}},
	{"I10", "a stale item is answered accepted", func(h *drill.History) {
		h.Wire = append(h.Wire, drill.WireNote{At: at(6600), Kind: drill.WireAccepted, Worker: "a", Session: "A", Token: 11, First: at(6500)})
	}},
	{"I10", "a valid item is refused", func(h *drill.History) {
		h.Wire = append(h.Wire, drill.WireNote{At: at(5500), Kind: drill.WireRefused, Worker: "a", Session: "A", Token: 11})
	}},
	{"I11", "two results of one attempt", func(h *drill.History) { put(h, 14, h.Events[13]) }},
	{"I11", "two successes of one shard", func(h *drill.History) { put(h, 16, h.Events[15]) }},
	{"I12", "renewed after it was given away", func(h *drill.History) {
		put(h, afterGrant, fact(7, 6500, engine.Fact{Kind: engine.FactLeaseRenewed, Token: 11}))
	}},
	{"I12", "renewed by an owner of the past", func(h *drill.History) {
		e := fact(4, 6500, engine.Fact{Kind: engine.FactLeaseRenewed, Token: 11})
		put(h, whileRunning, e)
	}},
	{"I12", "renewed after it was given back", func(h *drill.History) {
		put(h, atEnd, fact(8, 7100, engine.Fact{Kind: engine.FactLeaseRenewed, Token: 12}))
	}},
	{"I13", "expired long after", func(h *drill.History) { h.Events[9].At += 101 }},
	{"I13", "never expired", func(h *drill.History) {
		drop(h, engine.FactLeaseEnded)
		h.End = at(6001 + 3101)
	}},
	{"I13", "expired before the named call was TTL old", func(h *drill.History) {
		drop(h, engine.FactLeaseRenewed)
		h.Events[8].At -= 10
	}},
	{"I14", "expired within TTL of its renewal", func(h *drill.History) { h.Events[9].At -= 1 }},
	{"I15", "an effect at the holder's deadline", func(h *drill.History) { h.Effects[0].At = at(5399) }},
	{"I15", "an effect that rests on a call never answered", func(h *drill.History) {
		h.Wire = slices.Delete(h.Wire, 3, 4)
	}},
	{"I15", "an effect lands after the next grant", func(h *drill.History) {
		h.Effects[0].At, h.Effects[0].Began = at(6500), at(5000)
	}},
	{"I17", "success with a shard that is not", func(h *drill.History) { h.Events[15].To = "failed" }},
	{"I17", "an end with a live lease", func(h *drill.History) { drop(h, engine.FactLeaseEnded) }},
	{"I17", "an end with a shard missing", func(h *drill.History) { h.Executions[0].ShardTotal = 2 }},
	{"I18", "a checkpoint goes back", func(h *drill.History) {
		put(h, whileRunning, fact(5, 1100, engine.Fact{Kind: engine.FactCheckpoint, Token: 11, Checkpoint: 1}))
	}},
	{"I18", "the next attempt is not handed the last checkpoint", func(h *drill.History) { h.Events[11].Checkpoint = 0 }},
	{"I19", "an edge that is not in the table", func(h *drill.History) { h.Events[10].To = "leased" }},
	{"I19", "from another state than it was in", func(h *drill.History) { h.Events[12].From = "retry_wait" }},
	{"I19", "out of an end without a rerun", func(h *drill.History) {
		h.Events[15].To, h.Events[16].To = "failed", "failed"
		put(h, atEnd, fact(8, 8000, engine.Fact{Kind: engine.FactShardState, From: "failed", To: "queued"}))
	}},
	{"I19", "an execution out of its end without a rerun", func(h *drill.History) {
		h.Events[16].To = "failed"
		put(h, atEnd, fact(8, 8000, engine.Fact{Kind: engine.FactExecutionState, From: "failed", To: "queued"}))
	}},
	{"I25", "another execution of the job begins", func(h *drill.History) {
		other := job.PlannedID(job.UID{1}, origin+1)
		h.Executions = append(h.Executions, job.Execution{ID: other, Job: "j", JobUID: job.UID{1}, Trigger: job.TriggerSchedule, PlannedAt: origin + 1, ShardTotal: 1})
		made := fact(3, 20, engine.Fact{Kind: engine.FactExecutionCreated, Job: "d/j", To: "queued", Count: 1})
		begun := fact(3, 20, engine.Fact{Kind: engine.FactExecutionState, From: "queued", To: "running"})
		made.Execution, begun.Execution = other, other
		put(h, whileRunning, begun)
		put(h, whileRunning, made)
	}},
}

// TestCheckerCatches shows each check a history that breaks it: a check that cannot fail proves nothing.
func TestCheckerCatches(t *testing.T) {
	if v := drill.Check(goodHistory()); len(v) > 0 {
		t.Fatalf("the sound history is refused: %v", v)
	}
	caught := map[string]bool{}
	for _, f := range faults {
		t.Run(f.invariant+" "+f.name, func(t *testing.T) {
			h := goodHistory()
			f.do(h)
			v := drill.Check(h)
			if !slices.ContainsFunc(v, func(v drill.Violation) bool { return v.Invariant == f.invariant }) {
				t.Errorf("not caught; found %v", v)
			}
			caught[f.invariant] = true
		})
	}
	for _, line := range drill.Invariants() {
		if id, _, _ := strings.Cut(line, " "); !caught[id] {
			t.Errorf("no fault shows that the check of %s can fail", line)
		}
	}
}

func TestRerunIsTheWayOutOfAnEnd(t *testing.T) {
	h := goodHistory()
	h.Events[15].To, h.Events[16].To = "failed", "failed"
	put(h, atEnd, fact(8, 8000, engine.Fact{Kind: engine.FactRerun}))
	put(h, atEnd+1, fact(8, 8000, engine.Fact{Kind: engine.FactExecutionState, From: "failed", To: "queued"}))
	put(h, atEnd+2, fact(8, 8000, engine.Fact{Kind: engine.FactShardState, From: "failed", To: "queued"}))
	if v := drill.Check(h); len(v) > 0 {
		t.Errorf("a rerun is refused: %v", v)
	}
}

func TestTakeoverMayWaitForANewOwner(t *testing.T) {
	h := goodHistory()
	h.Events[9].At += 1500 // 7.5 s: TTL + P after the owner came at 3.5 s
	for i := 10; i < len(h.Events); i++ {
		h.Events[i].At += 1500
	}
	h.Effects, h.Wire = nil, nil
	if v := drill.Check(h); len(v) == 0 {
		t.Fatal("late without a new owner: not caught")
	}
	put(h, 9, fact(5, 3500, engine.Fact{Kind: engine.FactOwned}))
	if v := drill.Check(h); len(v) > 0 {
		t.Errorf("late with a new owner: %v", v)
	}
}
