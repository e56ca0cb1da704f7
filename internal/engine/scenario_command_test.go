package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// command is a parsed line: name, words, options (k=v; an underscore in a cron expression is a blank).
type command struct {
	name string
	args []string
	opts map[string]string
	used map[string]bool
	err  error
}

func parseCommand(line string) *command {
	c := &command{opts: map[string]string{}, used: map[string]bool{}}
	for i, w := range strings.Fields(line) {
		k, v, is := strings.Cut(w, "=")
		switch {
		case i == 0:
			c.name = w
		case is:
			c.opts[k] = v
		default:
			c.args = append(c.args, w)
		}
	}
	return c
}

func (c *command) arg(i int) string {
	if i < len(c.args) {
		return c.args[i]
	}
	return ""
}

func (c *command) has(word string) bool { return slices.Contains(c.args, word) }

func (c *command) str(key, def string) string {
	c.used[key] = true
	if v, ok := c.opts[key]; ok {
		return v
	}
	return def
}

func (c *command) num(key string, def int) int {
	n, err := strconv.Atoi(c.str(key, strconv.Itoa(def)))
	c.fail(err)
	return n
}

func (c *command) dur(key string, def time.Duration) time.Duration {
	d, err := time.ParseDuration(c.str(key, def.String()))
	c.fail(err)
	return d
}

func (c *command) fail(err error) {
	if c.err == nil && err != nil {
		c.err = fmt.Errorf("%s: %w", c.name, err)
	}
}

// commands are the words of the scenarios; testdata/README.md tells them.
var commands map[string]func(s *scenario, c *command) error

func init() { // it refers to functions that refer to it
	commands = map[string]func(s *scenario, c *command) error{
		"config": (*scenario).doConfig, "worker": (*scenario).doWorker, "kill": (*scenario).doKill, "freeze": (*scenario).doFreeze, "forget": (*scenario).doForget,
		"open": (*scenario).doOpen, "poll": (*scenario).doPoll, "gone": (*scenario).doGone, "beat": (*scenario).doBeat,
		"report": (*scenario).doReport, "close": (*scenario).doClose,
		"job": (*scenario).doJob, "trigger": (*scenario).doTrigger, "cancel": (*scenario).doAsk, "rerun": (*scenario).doAsk, "reschedule": (*scenario).doAsk,
		"calendar": (*scenario).doCalendar,
		"suspend":  (*scenario).doSuspend, "resume": (*scenario).doResume, "delete": (*scenario).doDelete,
		"entry": (*scenario).doEntry, "inbox": (*scenario).doInbox, "setaside": (*scenario).doSetAside,
		"advance": (*scenario).doAdvance, "wall": (*scenario).doWall, "pause": (*scenario).doPause, "reload": (*scenario).doReload,
		"partition": (*scenario).doPartition,
		"backup":    (*scenario).doBackup, "restore": (*scenario).doRestore,
		"pages": (*scenario).doPages, "read": (*scenario).doRead, "give": (*scenario).doGive,
		"together": (*scenario).doTogether, "end": (*scenario).doEnd,
		"inspect": (*scenario).doInspect, "expect": (*scenario).doExpect,
	}
}

func (s *scenario) doConfig(c *command) error {
	k := &s.cfg
	k.LeaseTTL, k.Beat, k.Margin = c.dur("ttl", k.LeaseTTL), c.dur("beat", k.Beat), c.dur("margin", k.Margin)
	k.OwnerTTL, k.MisfireGrace, k.Horizon = c.dur("owner", k.OwnerTTL), c.dur("misfire", k.MisfireGrace), c.dur("horizon", k.Horizon)
	k.SessionKeep = c.dur("keep", k.SessionKeep)
	k.ReadyMax, k.PageSize, k.LossMax = c.num("ready", k.ReadyMax), c.num("page", k.PageSize), c.num("losses", k.LossMax)
	k.AnswerMax, k.ReadyBytes = c.num("answer", k.AnswerMax), c.num("bytes", k.ReadyBytes)
	k.SoonMax, k.Behind = c.num("soon", k.SoonMax), c.num("behind", k.Behind)
	if k.Behind > 0 {
		k.Behind += engine.Level - 3 // scenarios count from level 3
	}
	k.CatchUpMax, k.CatchUpRate = c.num("catchup", k.CatchUpMax), c.num("rate", k.CatchUpRate)
	return c.err
}

func (s *scenario) doWorker(c *command) error {
	name := c.arg(0)
	life := 1
	if old := s.workers[name]; old != nil {
		life = old.life + 1
	}
	k := newWorker(s.world, name, life, c.num("slots", 4), strings.Split(c.str("handlers", "index"), ",")...)
	if life > 1 {
		s.names.sessions[k.session.ID] = fmt.Sprintf("%s/%d", name, life)
	} else {
		s.names.sessions[k.session.ID] = name
	}
	s.workers[name] = k
	if err := s.send(k.open()); err != nil {
		return err
	}
	if c.has("lives") {
		s.lives[name] = &living{worker: k, beatAt: s.mono + s.cfg.Beat, work: c.dur("work", 0), ckpt: c.dur("ckpt", 0),
			ckptAt: map[job.Token]time.Duration{}}
	}
	if c.has("idle") {
		return c.err
	}
	return cmpErr(c.err, s.send(k.poll(k.session.Slots, 20*time.Second)))
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) who(c *command) *worker {
	k := s.workers[c.arg(0)]
	if k == nil {
		c.fail(fmt.Errorf("no worker %q", c.arg(0)))
		return newWorker(s.world, "?", 0, 0)
	}
	return k
}

// doKill ends a worker without a word; doFreeze stops its calls while its handlers may go on.
func (s *scenario) doKill(c *command) error {
	s.who(c).die()
	delete(s.lives, c.arg(0))
	return c.err
}

func (s *scenario) doFreeze(c *command) error {
	s.who(c)
	delete(s.lives, c.arg(0))
	return c.err
}

// doForget: the answers with what the worker was given got lost on their way.
func (s *scenario) doForget(c *command) error {
	k := s.who(c)
	for token := range k.held {
		k.drop(token)
		delete(k.begun, token)
	}
	return c.err
}

func (s *scenario) doOpen(c *command) error { return cmpErr(s.send(s.who(c).open()), c.err) }

func (s *scenario) doPoll(c *command) error {
	k := s.who(c)
	if n := c.num("number", 0); n > 0 {
		k.polls = int64(n) - 1
	}
	r := k.poll(c.num("free", k.session.Slots-k.busy()), c.dur("wait", 20*time.Second))
	if c.has("overtaken") { // by a later call
		if err := s.send(k.beat(k.tokens(), nil)); err != nil {
			return err
		}
	}
	return cmpErr(c.err, s.send(r))
}

// doGone tells that nobody waits for the worker's hanging poll any more.
func (s *scenario) doGone(c *command) error {
	k := s.who(c)
	for id, w := range s.replies {
		if strings.HasPrefix(w.what, k.name+" poll ") {
			delete(s.replies, id)
			k.polling = false
			return s.take(engine.PollGone{Reply: id})
		}
	}
	return fmt.Errorf("%s does not poll", k.name)
}

func (s *scenario) doBeat(c *command) error {
	k := s.who(c)
	named := k.tokens()
	if only, is := c.opts["only"]; is {
		c.used["only"] = true
		named = nil
		for _, t := range strings.Split(only, ",") {
			if n, err := strconv.Atoi(t); err == nil {
				named = append(named, job.Token(n))
			}
		}
	}
	var p *job.Progress
	if n := c.num("progress", 0); n > 0 {
		p = &job.Progress{Done: int64(n)}
	}
	return cmpErr(c.err, s.send(k.beat(named, p)))
}

func (s *scenario) doClose(c *command) error {
	r := s.who(c).close()
	delete(s.lives, c.arg(0))
	return cmpErr(c.err, s.send(r))
}

// shardOf reads "e1/0".
func (s *scenario) shardOf(c *command, text string) (job.ExecutionID, int) {
	name, index, _ := strings.Cut(text, "/")
	n, _ := strconv.Atoi(index)
	for id, e := range s.names.execs {
		if e == name {
			return id, n
		}
	}
	c.fail(fmt.Errorf("no execution %q", name))
	return job.ExecutionID{}, 0
}

func (s *scenario) doReport(c *command) error {
	k := s.who(c)
	id, index := s.shardOf(c, c.arg(1))
	var t *task
	for _, x := range k.held { // the newest, when it knows of several
		if x.exec == id && x.shard == index && (t == nil || x.token > t.token) {
			t = x
		}
	}
	if t == nil { // it holds nothing of the kind any more, and reports all the same
		t = &task{exec: id, shard: index, token: job.Token(c.num("token", 0)), seq: int64(c.num("seq", 1)) - 1}
	}
	if n := c.num("seq", 0); n > 0 {
		t.seq = int64(n) - 1
	}
	var it engine.ReportItem
	switch kind := engine.ItemKind(c.arg(2)); kind {
	case engine.ItemDone:
		it = k.done(t, engine.Outcome(c.arg(3)), c.dur("after", 0))
	case engine.ItemCheckpoint:
		it = k.item(t, kind)
		it.Checkpoint = []byte(c.arg(3))
	default:
		it = k.item(t, kind)
		it.Progress.Done = it.Seq
	}
	it.Token = job.Token(c.num("token", int(it.Token)))
	return cmpErr(c.err, s.send(k.report(it)))
}
