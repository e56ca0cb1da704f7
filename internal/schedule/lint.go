package schedule

import (
	"fmt"
	"strings"
	"time"
)

// Finding is something about an expression that is allowed and may surprise.
type Finding struct {
	Rule string `json:"rule"` // stable, for machines: "uneven_step", "either_day", "clock_step", "step_one_value", "never_again"
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// Lint looks for what may surprise in a schedule, in the two years after from where the clocks matter.
func Lint(s Schedule, from time.Time) []Finding {
	c, ok := base(s).(*cron)
	if !ok {
		return nil
	}
	found := append(c.lintPast(from), c.expr.lintSteps()...)
	day, week := c.expr.words[3], c.expr.words[5]
	if c.expr.either {
		found = append(found, Finding{"either_day",
			fmt.Sprintf("day of month %s and day of week %s: it runs on days that match either of them", day, week),
			"for days that match both, begin one of the fields with *, such as */1"})
	}
	return append(found, c.lintClock(from)...)
}

// lintPast finds that all instants have passed.
func (c *cron) lintPast(from time.Time) []Finding {
	if _, ok := c.Next(from); ok {
		return nil
	}
	last, ok := Prev(c, from)
	if !ok {
		return nil
	}
	_, hint := PassedText("cron")
	return []Finding{{"never_again", fmt.Sprintf("it never fires again: the last time was %s", last.In(c.zone).Format(time.RFC3339)), hint}}
}

// lintSteps finds steps that do not divide their field: the last pause of each round is another one.
func (e *Expression) lintSteps() (found []Finding) {
	for i, f := range []field{secondField, minuteField, hourField, dayField, monthField} {
		for item := range strings.SplitSeq(e.words[i], ",") {
			span, text, stepped := strings.Cut(item, "/")
			step, ok := number(text)
			first, all := f.whole(span, step)
			if !stepped || !ok || step == 0 || !all {
				continue
			}
			size, more := f.max-f.min+1, (f.max-first)/step
			pause := size - more*step // from the last one to the first of the next round
			switch {
			case more == 0:
				found = append(found, Finding{"step_one_value", fmt.Sprintf("%s: the step %s leaves one value only, %d", f.name, item, first),
					fmt.Sprintf("write %d if that is meant", first)})
			case f.name == dayField.name && step > 1:
				found = append(found, Finding{"uneven_step", fmt.Sprintf("%s: %s begins anew on the 1st of each month: the last pause is as long as the month leaves", f.name, item),
					"for an even pause use every instead of cron"})
			case pause != step:
				found = append(found, Finding{"uneven_step", fmt.Sprintf("%s: %s does not divide %d: the pause at the end of each round is %d, not %d", f.name, item, size, pause, step),
					"for an even pause use every instead of cron"})
			}
		}
	}
	return found
}

// whole tells that a step over a span goes through all of a field, and from which value on; H is taken for the smallest one.
func (f field) whole(span string, step int) (first int, is bool) {
	if span == "*" || strings.EqualFold(span, "H") || span == fmt.Sprintf("%d-%d", f.min, f.max) {
		return f.min, true
	}
	first, is = number(span)
	return first, is && first >= f.min && first <= f.max && first-f.min < step
}

// lintClock finds the first step of the clock within two years that touches the schedule.
func (c *cron) lintClock(from time.Time) []Finding {
	until := from.AddDate(2, 0, 0).Unix()
	for s := spanAt(c.zone, from.Unix()); s.end < until; {
		s = spanAt(c.zone, s.end)
		shown, begin := s.shownBefore(c.zone), wall(s.start+s.offset)
		low, high := min(shown, begin), max(shown, begin)
		w, ok := c.expr.first(low, high)
		if !ok || c.expr.interval && c.expr.hour == spread(0, 23) {
			continue // a pattern over all hours goes on as people expect
		}
		day := time.Unix(int64(w), 0).UTC().Format(time.DateOnly)
		if shown < begin {
			return []Finding{{"clock_step", fmt.Sprintf("%s does not exist on %s in %s: %s", w, day, c.zone, c.gapText()), "choose another hour, UTC, or dst.gap"}}
		}
		return []Finding{{"clock_step", fmt.Sprintf("%s comes twice on %s in %s: %s", w, day, c.zone, c.overlapText()), "choose another hour, UTC, or dst.overlap"}}
	}
	return nil
}

func (c *cron) gapText() string {
	switch {
	case c.expr.interval || c.dst.Gap == GapSkip:
		return "it does not run then"
	case c.dst.Gap == GapShift:
		return "it runs later by the length of the step"
	default:
		return "it runs at the first instant after the step"
	}
}

func (c *cron) overlapText() string {
	switch {
	case c.expr.interval || c.dst.Overlap == OverlapBoth:
		return "it runs twice"
	case c.dst.Overlap == OverlapLast:
		return "it runs the last time only"
	default:
		return "it runs the first time only"
	}
}
