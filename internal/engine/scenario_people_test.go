package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// doJob writes a new revision of a job and its inbox entry.
func (s *scenario) doJob(c *command) error {
	name := c.arg(0)
	def := &job.Definition{Namespace: "default", Name: name, CreatedAt: s.wall(), UpdatedAt: s.wall(), Revision: 1}
	if old := s.jobs[name]; old != nil {
		def.UID, def.CreatedAt, def.Revision, def.Pause = old.UID, old.CreatedAt, old.Revision+1, old.Pause
	} else {
		def.UID = job.UID{15: byte(len(s.db.revisions) + 1)}
		s.db.homes[def.UID] = place(c.str("pool", "files"))
	}
	p := &def.Spec
	p.Pool, p.Handler, p.Shards = c.str("pool", "files"), c.str("handler", "index"), c.num("shards", 0)
	p.Retry = job.Retry{MaxAttempts: c.num("attempts", 0), Initial: c.dur("initial", 0), Jitter: c.str("jitter", "none")}
	p.Timeout = job.Timeout{Attempt: c.dur("timeout", 0), Stall: c.dur("stall", 0), Grace: c.dur("grace", 0)}
	p.Disabled, p.Overlap = c.has("disabled"), c.overlap()
	after, bad := c.after()
	if p.After = after; bad != nil {
		return bad
	}
	p.Misfire = job.Misfire{Policy: job.MisfirePolicy(c.str("misfire", "")), Grace: c.dur("late", 0), Window: c.dur("window", 0), Limit: c.num("limit", 0)}
	p.AutoPause.AfterFailures = c.num("autopause", 0)
	for _, n := range []string{"", "2"} {
		spec := schedule.Spec{Cron: strings.ReplaceAll(c.str("cron"+n, ""), "_", " "), TimeZone: c.str("tz"+n, ""), Every: c.dur("every"+n, 0), Delay: c.dur("delay"+n, 0)}
		if at := c.dur("at"+n, 0); at > 0 {
			spec.At = wallStart.Add(at).Time()
		}
		if names := c.str("calendars"+n, ""); names != "" {
			spec.Calendars, spec.Closed = strings.Split(names, ","), schedule.ClosedPolicy(c.str("closed"+n, ""))
		}
		if spec.Cron != "" || spec.Every > 0 || spec.Delay > 0 || !spec.At.IsZero() {
			p.Schedules = append(p.Schedules, job.Schedule{ID: c.str("id"+n, "main"+n), Spec: spec, MaxRuns: int64(c.num("runs"+n, 0))})
		}
	}
	def.Calendars = s.calendarsOf(def)
	s.jobs[name], s.names.jobs[def.UID] = def, name
	s.db.revisions[def.UID] = append(s.db.revisions[def.UID], def)
	return cmpErr(c.err, s.posted(c, engine.Entry{Kind: engine.EntryJobChanged, Job: def.UID}))
}

// overlap is what overlap= and queued= say; nil without them.
func (c *command) overlap() *job.Overlap {
	policy, n := c.str("overlap", ""), c.num("queued", -1)
	if policy == "" && n < 0 {
		return nil
	}
	o := &job.Overlap{Policy: job.OverlapPolicy(policy)}
	if n >= 0 {
		o.MaxQueued = &n
	}
	return o
}

// doSuspend pauses a job; doResume ends that. Both leave its revision alone.
func (s *scenario) doSuspend(c *command) error {
	p := &job.Pause{At: s.wall()}
	if d := c.dur("until", 0); d > 0 {
		p.Until = wallStart.Add(d)
	}
	return s.amend(c, engine.EntryJobChanged, func(d *job.Definition) { d.Pause = p })
}

func (s *scenario) doResume(c *command) error {
	kind := engine.EntryJobChanged
	if c.has("failures") {
		kind = engine.EntryJobResumed
	}
	return s.amend(c, kind, func(d *job.Definition) { d.Pause = nil })
}

// doDelete deletes a job; another one may have its name then.
func (s *scenario) doDelete(c *command) error {
	defer delete(s.jobs, c.arg(0))
	if def := s.jobs[c.arg(0)]; def != nil && c.has("cancel") {
		for _, p := range slices.Sorted(maps.Keys(s.db.mates)) {
			s.db.mates[p].post(engine.Entry{Kind: engine.EntryCancelJob, Job: def.UID})
		}
	}
	return s.amend(c, engine.EntryJobDeleted, func(d *job.Definition) {
		d.Deleted = &job.Deletion{At: s.wall(), Cancel: c.has("cancel")}
	})
}

// amend changes what belongs to a job and not to a revision, in all of them.
func (s *scenario) amend(c *command, kind engine.EntryKind, change func(*job.Definition)) error {
	def := s.jobs[c.arg(0)]
	if def == nil {
		return fmt.Errorf("no job %q", c.arg(0))
	}
	all := slices.Clone(s.db.revisions[def.UID])
	for i := range all {
		d := *all[i]
		change(&d)
		all[i] = &d
	}
	s.db.revisions[def.UID], s.jobs[c.arg(0)] = all, all[len(all)-1]
	return cmpErr(c.err, s.posted(c, engine.Entry{Kind: kind, Job: def.UID}))
}

// posted writes an entry; it is read at once unless the command says unread.
func (s *scenario) posted(c *command, e engine.Entry) error {
	to := s.db
	if !e.Job.IsZero() {
		to = s.db.mate(s.db.planner(e.Job))
	}
	to.post(e)
	if c.has("unread") || to != s.db {
		return nil
	}
	return s.take(s.db.inboxPage(inboxLimit))
}

func (s *scenario) doTrigger(c *command) error {
	def := s.jobs[c.arg(0)]
	if def == nil {
		return fmt.Errorf("no job %q", c.arg(0))
	}
	for range c.num("times", 1) {
		s.requests++
		req := &engine.Request{At: s.wall(), Key: c.str("key", "")}
		if in := c.dur("in", 0); in > 0 {
			req.At, req.Delayed, s.names.delays = req.At.Add(in), true, true
		}
		if p := c.str("params", ""); p != "" {
			req.Params = json.RawMessage(p)
		}
		e := engine.Entry{Kind: req.TriggerKind(), Job: def.UID, Request: req, Execution: job.RequestedID(req.At, [10]byte{8: byte(s.requests >> 8), 9: byte(s.requests)})}
		s.names.exec(e.Execution)
		s.db.mate(place(def.Spec.Pool)).post(e)
	}
	if c.has("unread") || place(def.Spec.Pool) != s.db.partition {
		return c.err
	}
	return cmpErr(c.err, s.take(s.db.inboxPage(inboxLimit)))
}

func (s *scenario) doAsk(c *command) error {
	id, _ := s.shardOf(c, c.arg(0))
	e := engine.Entry{Kind: engine.EntryKind(c.name), Execution: id}
	if e.Kind == engine.EntryReschedule {
		e.Request = &engine.Request{At: s.wall().Add(c.dur("in", 0))}
	}
	return cmpErr(c.err, s.posted(c, e))
}

func (s *scenario) doEntry(c *command) error {
	return s.posted(c, engine.Entry{Kind: engine.EntryKind(c.arg(0))})
}

func (s *scenario) doInbox(c *command) error {
	return cmpErr(c.err, s.take(s.db.inboxPage(c.num("limit", inboxLimit))))
}

// doPartition goes over to the owner of another partition, which has nothing done since it was left.
func (s *scenario) doPartition(c *command) error {
	n, err := strconv.Atoi(c.arg(0))
	s.worlds[s.db.partition] = s.world
	from, to := s.world, s.worlds[n]
	s.world = to
	if to == nil {
		s.world = newWorld(from.cfg)
		s.cfg.Partition, s.db, s.show = n, from.db.mate(n), from.show
	}
	s.mono, s.skew = from.mono, from.skew
	if to == nil {
		return cmpErr(err, s.load(false))
	}
	return cmpErr(err, s.step())
}

func (s *scenario) doSetAside(c *command) error {
	return s.take(engine.SetAside{Event: s.db.inboxPage(1), Error: "it made a step fail"})
}

func (s *scenario) doAdvance(c *command) error {
	d, err := time.ParseDuration(c.arg(0))
	s.quiet = c.has("quiet")
	err = cmpErr(err, s.advance(s.mono+d))
	s.quiet = false
	return err
}

// doPause lets time pass while nobody runs the engine.
func (s *scenario) doPause(c *command) error {
	d, err := time.ParseDuration(c.arg(0))
	s.mono += d
	if c.has("together") { // the calls that follow arrive in the step after the pause
		s.gathers, s.together = true, nil
		return err
	}
	return cmpErr(err, s.step())
}

// doWall steps the wall clock; the monotonic one stays.
func (s *scenario) doWall(c *command) error {
	d, err := time.ParseDuration(strings.TrimPrefix(c.arg(0), "+"))
	s.skew += d
	return cmpErr(err, s.step())
}

// doReload builds a new engine from the committed rows. Hanging polls are cut; living workers poll again.
func (s *scenario) doReload(c *command) error {
	for _, k := range s.workers {
		k.polling = false
	}
	return s.load(c.has("takeover"))
}

// doBackup keeps a copy of the database; doRestore sets the database back to it.
func (s *scenario) doBackup(*command) error {
	s.backup = s.db.copy()
	return nil
}

func (s *scenario) doRestore(*command) error {
	s.db = s.backup.copy()
	s.check.forget()
	return nil
}

// doPages: with pages off, what the engine wants is read and given by command, each in its own time.
func (s *scenario) doPages(c *command) error {
	s.deaf = c.arg(0) == "off"
	return nil
}

func (s *scenario) doRead(c *command) error {
	s.deaf = false
	defer func() { s.deaf = true }()
	want := s.want
	s.want = engine.Want{}
	switch kind := c.arg(0); kind {
	case "due":
		s.want.Due, want.Due = want.Due, nil
	case "backlog":
		s.want.Backlog, want.Backlog = want.Backlog, nil
	case "scheduled":
		s.want.Scheduled, want.Scheduled = want.Scheduled, nil
	case "executions":
		s.want.Executions, want.Executions = want.Executions, nil
	case "shards":
		s.want.Shards, want.Shards = want.Shards, nil
		if n := c.num("limit", len(s.want.Shards)); n < len(s.want.Shards) {
			want.Shards, s.want.Shards = s.want.Shards[n:], s.want.Shards[:n]
		}
	case "inbox":
		s.want.Inbox, want.Inbox = true, false
	}
	page := s.read()
	s.want = want
	if page == nil {
		return fmt.Errorf("no %s page is wanted", c.arg(0))
	}
	s.pages[c.arg(0)] = page
	return nil
}

func (s *scenario) doGive(c *command) error {
	page := s.pages[c.arg(0)]
	delete(s.pages, c.arg(0))
	if page == nil {
		return fmt.Errorf("no %s page was read", c.arg(0))
	}
	return s.take(page)
}

func (s *scenario) doTogether(*command) error {
	s.gathers, s.together = true, nil
	return nil
}

func (s *scenario) doEnd(*command) error {
	s.gathers = false
	return s.step(s.together...)
}

func (s *scenario) doInspect(c *command) error {
	q := engine.InspectQuery{}
	if c.arg(0) != "" {
		q.Execution, _ = s.shardOf(c, c.arg(0))
	}
	return cmpErr(c.err, s.take(engine.Inspect{Reply: s.call("inspect", func(any) {}), Query: q}))
}

// doExpect compares committed rows, whatever the file's answers say.
func (s *scenario) doExpect(c *command) error {
	if c.arg(0) == "executions" {
		if n := len(s.db.live) + len(s.db.history); strconv.Itoa(n) != c.arg(1) {
			return fmt.Errorf("there are %d executions", n)
		}
		return nil
	}
	id, index := s.shardOf(c, c.arg(0))
	r := s.db.live[id]
	if r == nil {
		r = s.db.history[id]
	}
	if r == nil {
		if c.arg(1) == "nowhere" {
			return nil
		}
		return fmt.Errorf("%s is nowhere", c.arg(0))
	}
	have := []string{string(r.row.State)}
	if strings.Contains(c.arg(0), "/") {
		x := &r.shards[index]
		have = []string{string(x.State), s.names.session(x.Session), string(bytes.TrimSpace(x.Checkpoint))}
	}
	for i, want := range c.args[1:] {
		if i >= len(have) || want != "-" && want != have[i] {
			return fmt.Errorf("%s is %v, expected %v", c.arg(0), have, c.args[1:])
		}
	}
	return c.err
}
