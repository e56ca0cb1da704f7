package main

import "strings"

// afterOfFiles is the part of docs/JOBFILE.md about jobs that run after others.
var afterOfFiles = strings.NewReplacer("^", "`", "~~~", "```").Replace(`
## After other jobs

~~~yaml
spec:
  after:
    - {job: load}                                   # succeeded, of the same planned instant
    - {job: check, on: finished, within: 2h}
~~~

A job without a schedule runs when all the jobs that it names have ended as it says: once for each planned instant, whatever its parents do at the same moment
and whichever server dies meanwhile. The first end makes an execution that is ^scheduled^ with the reason ^upstream^; the last one lets it run. One that
waits longer than ^within^ for a parent ends ^cancelled^, reason ^upstream_missing^; one whose parent ended otherwise does so at once, reason ^upstream_failed^. When
that parent is run again (^takt rerun^) and then does as wanted, the child runs after all, once. A parent's newest round is what counts. The child obeys its overlap policy: by default one runs and up to 1,000 wait; what
its policy drops is a decision (^blocked^).

- ^match: planned^ (default): the parent's execution of the same planned instant. A backfill of another date is another instant, and never counts for this one. What a person
  triggers has no planned instant: it leads on to a child that has this one parent only, once for each such execution.
- ^match: latest^: of each parent the execution with the newest planned instant that has ended (looked for among the 16 whose first instants are the newest: reschedules change it). The child runs once for each set of them. Without a schedule all parents
  match latest, or none does.
- ^match: day^, for a child with a schedule: the newest execution of the parent whose planned instant falls on the same date as the child's, in ^timeZone^, which is
  one and named: "01:00 in Shanghai" and "02:00 in New York" may be of one day in one zone and not in the other.

With a schedule, a job waits at its own instants for the jobs that it names, each at most ^within^ (24h). A failed parent of ^latest^ or ^day^ does not end the
wait: another run of it may still succeed.

^on: failed^ is for jobs that clean up or tell somebody; when the parent succeeds, nothing of them is seen. What a person triggers waits for nobody. A paused job that
would have run is a decision (skipped, paused); a disabled one does not run. Parents are jobs of the same namespace and have to be there, or come in the same set; circles are
refused; a parent can not be deleted as long as others name it (^job_has_children^). Taking a parent off a job lets what waits for it alone run. ^takt describe execution^ shows
the executions that it was decided by, ^takt describe job^ what it runs after and what runs after it.

The handler gets the same executions, in the order of ^after^, with what their shards gave as results: ^Task.Parents^ and ^Task.ParentResults^ in Go, a file for commands
([AGENT.md](AGENT.md#what-a-command-finds)), ^parents^ of the assignment in other languages. It is the same on every attempt, on every shard and after a rerun: a rerun
of a parent adds nothing for a child that was decided before. A parent whose execution was deleted is named without results.

^schedule: {delay: 5m}^ is a delay after the end of the last execution that the schedule made, whatever became of it; the first one comes that long after the job's
creation. While one waits or runs there is no next instant. One that comes due while no server runs is late, not missed.

## Edits while nobody plans

An edit of a job or of a calendar may be written while no server plans the job: right after a crash, or while its partition is handed over. Each instant is judged by
what was written before it. What came due under an older revision is recorded as missed (^takt missed JOB^ lists it); what comes due under the newest one is
on time or caught up, as ^misfire^ says; a schedule whose instants the edits leave as they were catches up all that it missed.
`)
