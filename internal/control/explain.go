package control

import (
	"fmt"
	"strings"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/schedule"
)

// Verdict is what became, or becomes, of an instant of a job.
type Verdict string

// The verdicts.
const (
	VerdictRan         Verdict = "ran"            // an execution of it began and has ended
	VerdictRunning     Verdict = "running"        // an execution of it runs
	VerdictWaits       Verdict = "waits"          // an execution of it has not begun
	VerdictNotRun      Verdict = "not_run"        // an execution of it ended before it began
	VerdictSkipped     Verdict = "skipped"        // the decision's kind
	VerdictMissed      Verdict = "missed"         // likewise
	VerdictBlocked     Verdict = "blocked"        // likewise
	VerdictHeld        Verdict = "held"           // a pause holds it, or will
	VerdictDue         Verdict = "due"            // its time has come, and its owner has not decided it yet
	VerdictWillRun     Verdict = "will_run"       // it lies ahead
	VerdictNotPlanned  Verdict = "not_planned"    // it is no instant of the schedules that were in force
	VerdictClosed      Verdict = "closed"         // a calendar closes it for a schedule that would have it
	VerdictDisabled    Verdict = "disabled"       // the job was disabled
	VerdictNotThere    Verdict = "not_created"    // it lies before the job
	VerdictDeleted     Verdict = "deleted"        // it lies behind the job's end
	VerdictNotInForce  Verdict = "not_in_force"   // the revision had been written, and its owner had not taken it in
	VerdictSwept       Verdict = "swept"          // what was known is not kept so long
	VerdictUnexplained Verdict = "unexplained"    // neither an execution nor a decision: this should not be
	VerdictAfterOthers Verdict = "follows_others" // the job has no schedule of its own
	VerdictUsedUp      Verdict = "used_up"        // its schedules had made all their runs, or will have
)

// Evidence is all that is known of one instant of a job.
type Evidence struct {
	At, Now   job.Instant
	Asked     job.Instant     // the whole second in which At lies, when that was asked for; 0: At was
	Newest    *job.Definition // of the job, or of the last one of its name that was deleted
	InForce   *job.Definition // the newest revision at At, with its calendars as they were then; nil: At lies before the first
	Today     *job.Definition // that revision with its calendars as they are now; nil: they are the same
	Cursors   []job.Cursor
	Execution *ExecutionView  // nil: none
	Decisions []job.Decision  // whose ranges hold At
	Backfill  job.ExecutionID // that has At in its range and has not ended; zero: none
	Reached   bool            // it has come to At
	Earlier   *ExecutionView  // of At, by a job that had the name before; nil: none
	Before    *job.Decision   // about At, of such a job; nil: none
	Reading   string          // what a step of the clocks made of the reading that was asked for; "": nothing
	Dropped   bool            // no clock showed that reading, and no schedule fires in its place: At is the first instant behind it
	Kept      job.Instant     // what ended before it may be swept
	Unowned   string          // why the owner of the job cannot be asked; "": it can
	Moving    string          // where the job moves, and what that waits for; "": nowhere
}

// Explanation is the one answer to "why did it (not) run at T?".
type Explanation struct {
	Verdict  Verdict
	Text     string // one sentence
	Reason   job.Reason
	At       job.Instant // the planned instant; of one that was spread, where the spread moved it
	Schedule string      // that has the instant; several are joined by commas
	Revision int64       // that was in force; 0: none
	Zone     *time.Location
	Note     string // what a step of the clock, a calendar or the spread did
	Late     time.Duration
	Evidence Evidence

	Previous, Next time.Time // around an instant that is none; the zero time: there is none
}

// settling is how long the owner of a job may take until a revision, or a calendar's, that was written is in force, as far as an
// explanation calls it that.
const settling = time.Minute

// line is one schedule of a revision.
type line struct {
	id      string
	s       schedule.Schedule
	maxRuns int64
}

func linesOf(d *job.Definition) (all []line) {
	if d == nil {
		return nil
	}
	for _, x := range d.Spec.Schedules {
		if s, err := d.Parse(x.Spec); err == nil { // it was checked when it was written
			all = append(all, line{x.ID, s, x.MaxRuns})
		}
	}
	return all
}

// having names the schedules that have an instant.
func having(lines []line, at job.Instant) (names []string, is bool) {
	for _, l := range lines {
		if schedule.Matches(l.s, at.Time()) {
			names = append(names, l.id)
		}
	}
	return names, len(names) > 0
}

// Explain judges what is known. It never guesses: what is not known is said.
func (ev *Evidence) Explain() Explanation {
	lines := linesOf(ev.InForce)
	out := Explanation{At: ev.At, Zone: zoneOf(ev.Newest), Evidence: *ev}
	names, is := having(lines, ev.At)
	if !is {
		names, is = ev.delayed(lines)
	}
	if ev.Dropped {
		names, is = nil, false
	}
	out.Schedule = strings.Join(names, ",")
	if ev.InForce != nil {
		out.Revision = ev.InForce.Revision
	}
	for i, l := range lines {
		if i == 0 || is && l.id == names[0] {
			out.Zone = schedule.Zone(l.s)
		}
		if is && l.id == names[0] {
			out.Note = schedule.Note(l.s, ev.At.Time())
		}
	}
	decision := ev.decision(lines)
	switch {
	case ev.Execution != nil:
		out.ofExecution(ev.Execution)
		if decision != nil {
			out.Text = fmt.Sprintf("%s; then %s", decisionText(decision, ev.At), out.Text)
		}
	case decision != nil:
		out.Verdict, out.Reason, out.Text = Verdict(decision.Kind), decision.Reason, decisionText(decision, ev.At)
		if out.Schedule == "" {
			out.Schedule = decision.Schedule
		}
	case ev.InForce == nil:
		out.beforeJob()
	case ev.Newest.Deleted != nil && ev.At >= ev.Newest.Deleted.At:
		out.say(VerdictDeleted, "the job was deleted at %s%s", stamp(ev.Newest.Deleted.At), because(ev.Newest.Deleted.By, ev.Newest.Deleted.Reason))
	case ev.InForce.Spec.Disabled:
		out.say(VerdictDisabled, "revision %d, which was in force, had disabled the job", out.Revision)
	case !is:
		out.notPlanned(lines)
	case ev.At > ev.Now:
		out.ahead(lines, names)
	default:
		out.silent(lines, names)
	}
	out.addWords()
	return out
}

// addWords says what else is to be known, whatever the verdict.
func (x *Explanation) addWords() {
	ev := &x.Evidence
	if ev.Reading != "" {
		x.Text += "; " + ev.Reading
	}
	if !ev.Backfill.IsZero() && !ev.Reached && (ev.Execution == nil || ev.Execution.State.Ended()) {
		x.Text += fmt.Sprintf("; backfill %s has it in its range and has not come to it yet", ev.Backfill)
	}
	if ev.Asked != 0 {
		x.Text += fmt.Sprintf("; of the second that was asked for, this is the planned instant %s", ev.At)
	}
}

// beforeJob tells what became of an instant that lies before the newest job of the name: what an earlier one made of it, if that is known.
func (x *Explanation) beforeJob() {
	ev := &x.Evidence
	switch e, d := ev.Earlier, ev.Before; {
	case e != nil:
		x.At = e.PlannedAt
		x.ofExecution(e)
	case d != nil && (d.From == ev.At || d.To == ev.At):
		x.Verdict, x.Reason, x.Schedule, x.Text = Verdict(d.Kind), d.Reason, d.Schedule, decisionText(d, ev.At)
	default:
		x.say(VerdictNotThere, "the job was created at %s, after this instant", stamp(ev.Newest.CreatedAt))
		if d != nil { // whether the instant was one of its schedule is not known any more
			x.Text += "; of what an earlier job of this name had around it, it was decided: " + decisionText(d, ev.At)
		}
		return
	}
	x.Text += "; that was an earlier job of this name: this one was created at " + stamp(ev.Newest.CreatedAt)
}

func (x *Explanation) say(v Verdict, format string, args ...any) {
	x.Verdict, x.Text = v, fmt.Sprintf(format, args...)
}

// decision is the one that is about the instant itself: a range may lie around an instant that no schedule has.
func (ev *Evidence) decision(lines []line) *job.Decision {
	for i := range ev.Decisions {
		d := &ev.Decisions[i]
		if d.From == ev.At || d.To == ev.At {
			return d
		}
		for _, l := range lines {
			if l.id == d.Schedule && schedule.Matches(l.s, ev.At.Time()) {
				return d
			}
		}
	}
	return nil
}

func decisionText(d *job.Decision, at job.Instant) string {
	text := fmt.Sprintf("%s: %s", d.Kind, d.Reason.Text())
	if d.Count > 1 {
		text += fmt.Sprintf("; with %d others from %s to %s", d.Count-1, stamp(d.From), stamp(d.To))
	}
	if d.Reason == job.ReasonMissedDown {
		text += fmt.Sprintf("; no server planned the job from %s to %s", stamp(d.From), stamp(d.At))
	}
	return text + fmt.Sprintf("; decided at %s, %s after it", stamp(d.At), schedule.Span(d.At.Sub(at)))
}

func (x *Explanation) ofExecution(e *ExecutionView) {
	x.Reason = e.Reason
	if e.StartedAt != 0 {
		x.Late = e.StartedAt.Sub(e.PlannedAt)
	}
	how := ""
	switch e.Trigger {
	case job.TriggerBackfill:
		how = " by a backfill"
	case job.TriggerCatchUp:
		how = " when it was caught up"
	}
	begun := fmt.Sprintf("began %s after its instant", schedule.Span(x.Late))
	switch {
	case e.State.Ended() && e.StartedAt == 0:
		x.say(VerdictNotRun, "execution %s was made%s and ended %s before it began: %s", e.ID, how, e.State, e.Reason.Text())
	case e.State.Ended():
		x.say(VerdictRan, "ran%s as execution %s: %s; it %s and took %s", how, e.ID, strings.TrimSuffix(string(e.State)+", "+e.Reason.Text(), ", "), begun, schedule.Span(e.EndedAt.Sub(e.StartedAt)))
	case e.StartedAt != 0 && e.State != job.ExecutionQueued:
		x.say(VerdictRunning, "runs%s as execution %s; it %s", how, e.ID, begun)
	default:
		if e.Waits != "" {
			x.Reason = e.Waits
		}
		x.say(VerdictWaits, "waits%s as execution %s: %s", how, e.ID, firstOf(x.Reason.Text(), string(e.State)))
	}
}

// notPlanned names the instants around one that is none, and what took it away.
func (x *Explanation) notPlanned(lines []line) {
	at := x.At.Time()
	behind := at
	if x.Evidence.Dropped {
		behind = at.Add(-time.Nanosecond) // that At itself may be one says nothing about the reading
	}
	for _, l := range lines {
		if prev, ok := schedule.Prev(l.s, at); ok && prev.After(x.Previous) {
			x.Previous = prev
		}
		if next, ok := l.s.Next(behind); ok && (x.Next.IsZero() || next.Before(x.Next)) {
			x.Next = next
		}
	}
	if len(x.Evidence.InForce.Spec.Schedules) == 0 {
		x.say(VerdictNotPlanned, "revision %d, which was in force, has no schedule: the job runs when it is asked to", x.Revision)
		if after := x.Evidence.InForce.Spec.After; len(after) > 0 {
			x.say(VerdictAfterOthers, "the job has no schedule of its own: it runs after other jobs, and has no execution of this instant")
		}
		return
	}
	if x.Evidence.Dropped {
		x.say(VerdictNotPlanned, "no schedule of revision %d, which was in force, has this reading", x.Revision)
	} else if !x.closed() {
		x.say(VerdictNotPlanned, "no schedule of revision %d, which was in force, has this instant", x.Revision)
		for _, l := range lines {
			if by := closer(x.Evidence.InForce, l.s, x.At); by != "" {
				x.Text += fmt.Sprintf("; %s is closed then, for schedule %s", by, l.id)
			}
		}
		x.droppedHere(lines)
	}
	if !x.Previous.IsZero() {
		x.Text += "; the one before is " + x.Previous.In(x.Zone).Format(time.RFC3339)
	}
	if !x.Next.IsZero() {
		x.Text += "; the one after is " + x.Next.In(x.Zone).Format(time.RFC3339)
	}
}

// ahead is for an instant to come.
func (x *Explanation) ahead(lines []line, names []string) {
	ev := &x.Evidence
	if why := autoPaused(ev.Newest, ev.Cursors); why != "" {
		x.Reason = job.ReasonAutoPaused
		x.say(VerdictHeld, "%s; it will be recorded as skipped unless that comes before", why)
		return
	}
	if p := ev.Newest.Pause; p.Covers(ev.At) {
		x.Reason = job.ReasonPaused
		x.say(VerdictHeld, "the job is paused%s, %s: it will be recorded as skipped unless the pause ends before", because(p.By, p.Reason), untilText(p))
		return
	}
	if ev.usedUp(lines, names) {
		x.say(VerdictUsedUp, "%s will have made all its runs by then (maxRuns)", x.Schedule)
		return
	}
	x.say(VerdictWillRun, "will run in %s", schedule.Span(ev.At.Sub(ev.Now)))
	if x.Note != "" {
		x.Text += "; " + x.Note
	}
	if ev.Moving != "" {
		x.Text += "; " + ev.Moving
	}
}

// silent is for an instant of the past, of a schedule, of which nothing is known.
func (x *Explanation) silent(lines []line, names []string) {
	ev := &x.Evidence
	held := ev.first(names, func(c *job.Cursor) bool { return c.Held != 0 && ev.At >= c.Held && (c.Next == 0 || ev.At < c.Next) })
	owing := ev.first(names, func(c *job.Cursor) bool { return c.Owes(ev.At) })
	due := ev.first(names, func(c *job.Cursor) bool { return c.Next != 0 && c.Next <= ev.At })
	autoPaused := autoPaused(ev.Newest, ev.Cursors)
	what, written := lastWritten(ev.InForce, ev.At)
	newest := ev.InForce.Revision == ev.Newest.Revision && ev.Newest.Deleted == nil
	switch p := ev.Newest.Pause; {
	case newest && held != nil:
		if x.Reason = job.ReasonPaused; autoPaused != "" {
			x.Reason = job.ReasonAutoPaused
			x.say(VerdictHeld, "%s; it is recorded as skipped then", autoPaused)
			return
		}
		x.say(VerdictHeld, "a pause holds it%s, %s; it is recorded as skipped when the pause ends", byPause(p), untilText(p))
	case owing != nil:
		x.say(VerdictDue, "it was missed and is being caught up; the oldest that is still owed is %s", stamp(owing.Owed))
	case newest && due != nil:
		x.say(VerdictDue, "it is due and has not been decided yet, %s after its time", schedule.Span(ev.Now.Sub(ev.At)))
		if why := firstOf(ev.Moving, ev.Unowned); why != "" {
			x.Text += ": " + why
		}
	case ev.usedUp(lines, names):
		x.say(VerdictUsedUp, "%s had made all its runs (maxRuns)", x.Schedule)
	case ev.At < ev.Kept:
		x.say(VerdictSwept, "what was known of it is not kept so long: only what is newer than %s", stamp(ev.Kept))
	case ev.At.Sub(written) < settling:
		x.say(VerdictNotInForce, "%s was written %s before, and the owner of the job had not taken it in: a revision fires nothing of the past", what, schedule.Span(ev.At.Sub(written)))
	case ev.closedSince():
		x.say(VerdictClosed, "closed by a calendar that was changed after this instant; %s, which was in force, has it, and nobody planned it in time: that is judged by the calendars of when an owner is back", x.keeps())
	default:
		x.say(VerdictUnexplained, "revision %d has this instant, and there is neither an execution nor a decision: this should not be", x.Revision)
	}
}

func because(by, why string) string {
	text := ""
	if by != "" {
		text = " by " + by
	}
	if why != "" {
		text += fmt.Sprintf(" (%s)", why)
	}
	return text
}

func byPause(p *job.Pause) string {
	if p == nil {
		return ""
	}
	return because(p.By, p.Reason)
}

func untilText(p *job.Pause) string {
	if p == nil || p.Until == 0 {
		return "until it is resumed"
	}
	return "until " + stamp(p.Until)
}

func stamp(at job.Instant) string { return at.Time().Format("2006-01-02T15:04:05Z07:00") }

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
