package main

// overlapOfFiles says what the engine does (internal/engine/overlap.go).
const overlapOfFiles = `
## Runs that overlap

` + "`spec.overlap`" + ` says what becomes of an execution that comes while another one of the job has not ended: while it stands in line, runs, waits for
its next attempt or is being stopped. It is decided for the whole cluster, and what is decided stays decided when servers die.

| policy | while another one has not ended, what comes |
|---|---|
| ` + "`queue`" + ` (default) | waits (state ` + "`scheduled`" + `, reason ` + "`overlap`" + `), at most ` + "`maxQueued`" + ` (default 1), in the order of planned time; when one ends, however it ends, the next one starts. What comes to a full queue is dropped (` + "`overlap_full`" + `) |
| ` + "`skip`" + ` | is dropped (` + "`overlap_skip`" + `) |
| ` + "`replace`" + ` | takes its place: the other one is cancelled (` + "`replaced`" + `), and the new one starts when the old one's handler has really returned, or its lease has run out. One that waited to replace it ends ` + "`cancelled`" + `, too |
| ` + "`allow`" + ` | runs beside it |

A planned instant that is dropped is a decision (` + "`takt get decisions`" + `: blocked). A request that is dropped has its execution, which ends ` + "`cancelled`" + ` at once;
so has an instant that had waited for the jobs that it runs after, and finds no room then. ` + "`takt missed`" + ` lists both kinds of dropped instants.

- A job that declares nothing lets what schedules make queue; requests run at once and are in nobody's way. With ` + "`overlap`" + ` in the document, requests obey it too.
- ` + "`takt rerun`" + ` is never dropped: unless the policy is allow, the execution waits for its turn, beyond ` + "`maxQueued`" + `.
- Catch-up after an outage and backfills wait until nothing of the job runs or waits: the places of the queue are left to what is due, and with ` + "`replace`" + ` the past replaces nothing, but what is due replaces a catch-up that still runs: that one ends ` + "`cancelled`" + ` (` + "`replaced`" + `), as an execution, and ` + "`takt missed`" + ` does not list it. What is not later than ` + "`misfire.grace`" + ` is no catch-up: it comes at once, and what finds no place is dropped.
- An edit decides about what comes from then on; what waits keeps waiting, but for ` + "`allow`" + `: then it starts.
- ` + "`takt describe job`" + ` shows what runs, how many wait and since when; ` + "`takt describe execution`" + ` what one waits for. ` + "`takt cancel`" + ` ends either.
- A run that hangs blocks the next ones for as long as it hangs: give it ` + "`timeout.attempt`" + ` or ` + "`timeout.stall`" + `. A worker that dies blocks nothing for longer than its lease.
`
