package job

// Reason says why something was decided. It is a value: the engine that decides returns it, and CLI,
// API and journal show the same one (DESIGN R12).
type Reason string

// The reasons.
const (
	ReasonNone Reason = ""

	// why an execution or shard waits
	WaitNoWorker  Reason = "no_worker"  // no live worker in the pool
	WaitSilent    Reason = "silent"     // the pool's workers have not been heard for most of a lease
	WaitNoHandler Reason = "no_handler" // no live worker offers the handler
	WaitNoSlot    Reason = "no_slot"    // every worker that offers the handler is full
	WaitNoPoll    Reason = "no_poll"    // a worker has room and has not asked for work yet
	WaitRetry     Reason = "retry_wait" // waits for its next attempt
	WaitLease     Reason = "lease_open" // waits until the former holder confirms or its lease runs out
	WaitBacklog   Reason = "backlog"    // waits in the database behind others
	WaitDelay     Reason = "not_due"    // waits for the instant that it was asked for
	WaitOverlap   Reason = "overlap"    // waits until another execution of its job has ended
	WaitUpstream  Reason = "upstream"   // waits for the jobs that it runs after
	WaitMove      Reason = "moving"     // on its way to the pool that its job has by now

	// why an execution has its state while its job's overlap policy is minded
	WaitReplace       Reason = "overlap_replace" // waits until the execution that it replaces has ended
	ReasonOverlapTurn Reason = "overlap_turn"    // queued: the one of its job that may run, made by a request
	ReasonOverlapFree Reason = "overlap_free"    // queued: its job lets executions run side by side
	ReasonOverlapSkip Reason = "overlap_skip"    // dropped: another execution of the job had not ended
	ReasonOverlapFull Reason = "overlap_full"    // dropped: as many wait as overlap.maxQueued lets
	ReasonReplaced    Reason = "replaced"        // a newer execution of the job took its place

	// why a shard was given to a worker
	RouteLeastBusy Reason = "least_busy"

	// why an attempt, a shard or an execution ended or went back
	ReasonHandlerError     Reason = "handler_error"     // the handler returned an error that may be retried
	ReasonHandlerFatal     Reason = "handler_fatal"     // the handler returned an error that must not be retried
	ReasonRetriesExhausted Reason = "retries_exhausted" // the last allowed attempt failed
	ReasonAttemptTimeout   Reason = "attempt_timeout"   // timeout.attempt passed
	ReasonStalled          Reason = "stalled"           // timeout.stall passed without progress, although it beat
	ReasonLeaseExpired     Reason = "lease_expired"     // the holder fell silent
	ReasonUndelivered      Reason = "undelivered"       // the assignment was never confirmed
	ReasonWorkerLost       Reason = "worker_lost"       // lost too often (infrastructure bound)
	ReasonReleased         Reason = "released"          // given back by a worker that stops
	ReasonSnoozed          Reason = "snoozed"           // the handler asked to be called later
	ReasonCancelRequested  Reason = "cancel_requested"  // a person asked
	ReasonGraceOver        Reason = "grace_over"        // did not confirm its stop in time
	ReasonRerun            Reason = "rerun"             // a person asked for another go
	ReasonPartial          Reason = "partial"           // some shards succeeded, others did not
	ReasonJobDeleted       Reason = "job_deleted"       // the job was deleted, and its executions with it
	ReasonUpstreamFailed   Reason = "upstream_failed"   // a job that it runs after ended otherwise than it has to
	ReasonUpstreamMissing  Reason = "upstream_missing"  // a job that it runs after did not end in time

	// why a planned instant became no execution (decisions)
	ReasonMissedDown    Reason = "missed_down"      // nobody planned it in time and the misfire policy made no execution of it
	ReasonMissedWindow  Reason = "missed_window"    // missed longer ago than misfire.window
	ReasonMisfireSkip   Reason = "misfire_skip"     // missed, and the misfire policy is skip
	ReasonMisfireLimit  Reason = "misfire_limit"    // missed, and misfire.limit newer ones were missed too
	ReasonMisfireGiven  Reason = "misfire_given_up" // missed, was to run yet, and the job was paused, it or a calendar of it changed, or too many outages came, before
	ReasonClosed        Reason = "calendar_closed"  // a calendar was changed before it was planned, and has it no more
	ReasonPassed        Reason = "passed"           // it had passed when its schedule was enabled or written
	ReasonPaused        Reason = "paused"           // the job was paused
	ReasonAutoPaused    Reason = "auto_paused"      // autoPause.afterFailures executions in a row had failed
	ReasonClockStepBack Reason = "clock_went_back"  // recorded only: wall time stepped
	ReasonBadEntry      Reason = "poison"           // set aside: the store or the engine refuses it

	// ReasonNotScheduled: a request came when its execution did not wait for its instant any more; the caller's answer has this code.
	ReasonNotScheduled Reason = "execution_not_scheduled"
)

var reasonText = map[Reason]string{
	WaitNoWorker:           "no live worker in the pool",
	WaitSilent:             "the pool's workers have fallen silent",
	WaitNoHandler:          "no live worker offers the handler",
	WaitNoSlot:             "every worker that offers the handler is busy",
	WaitNoPoll:             "a worker has room and will take it when it asks next",
	WaitRetry:              "waits for its next attempt",
	WaitLease:              "waits until the former holder confirms its stop or its lease runs out",
	WaitBacklog:            "waits behind other executions",
	WaitDelay:              "waits for its instant",
	WaitOverlap:            "waits until another execution of its job has ended",
	WaitUpstream:           "waits for the jobs that it runs after",
	WaitMove:               "goes to the pool that its job has by now",
	WaitReplace:            "waits until the execution that it replaces has ended",
	ReasonOverlapTurn:      "no other execution of its job is under way",
	ReasonOverlapFree:      "its job lets executions run side by side",
	ReasonOverlapSkip:      "another execution of the job had not ended (overlap.policy skip)",
	ReasonOverlapFull:      "as many executions of the job waited as overlap.maxQueued lets",
	ReasonReplaced:         "a newer execution of the job took its place (overlap.policy replace)",
	RouteLeastBusy:         "the worker with the fewest leases",
	ReasonHandlerError:     "the handler returned an error",
	ReasonHandlerFatal:     "the handler returned an error that must not be retried",
	ReasonRetriesExhausted: "the last allowed attempt failed",
	ReasonAttemptTimeout:   "the attempt took longer than timeout.attempt",
	ReasonStalled:          "no progress for timeout.stall, although the worker was alive",
	ReasonLeaseExpired:     "the worker fell silent and its lease ran out",
	ReasonUndelivered:      "the assignment never reached the worker",
	ReasonWorkerLost:       "workers were lost too often while running it",
	ReasonReleased:         "the worker stopped and gave it back",
	ReasonSnoozed:          "the handler asked to be called later",
	ReasonCancelRequested:  "cancel was requested",
	ReasonGraceOver:        "the handler did not confirm its stop in time",
	ReasonRerun:            "a rerun was requested",
	ReasonPartial:          "some shards succeeded, others did not",
	ReasonJobDeleted:       "the job was deleted",
	ReasonUpstreamFailed:   "a job that it runs after ended otherwise than it has to",
	ReasonUpstreamMissing:  "a job that it runs after did not end in time",
	ReasonClosed:           "a calendar was changed before it was planned, and leaves it out",
	ReasonPaused:           "the job was paused",
	ReasonMissedDown:       "nobody planned it in time",
	ReasonMissedWindow:     "missed longer ago than misfire.window",
	ReasonMisfireSkip:      "missed, and misfire.policy is skip",
	ReasonMisfireLimit:     "missed, and misfire.limit newer ones were missed too",
	ReasonMisfireGiven:     "missed, and before it could be caught up the job was paused, it or a calendar of it was changed, or too many outages came",
	ReasonPassed:           "it had passed when its schedule was enabled or written",
	ReasonAutoPaused:       "the job was paused after failures in a row",
	ReasonClockStepBack:    "the wall clock stepped back",
	ReasonBadEntry:         "set aside: it can not be stored or decided",
	ReasonNotScheduled:     "the execution did not wait for its instant any more",
}

// Text is the reason in words; the value itself when it has none.
func (r Reason) Text() string {
	if t, ok := reasonText[r]; ok {
		return t
	}
	return string(r)
}
