package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/engine"
)

// When a calendar is changed more often than is remembered while nobody plans, whether it was open at an instant before the oldest
// change that is known can not be told: nothing of then runs, and nothing of it is without a fate.
func TestCalendarForgottenWhileNobodyPlans(t *testing.T) {
	const open, shut = "calendar hol closed=2026-02-02 unread", "calendar hol closed=2026-01-01 unread"
	for name, first := range map[string][]string{
		"the oldest that is known is closed": {"pause 3s", shut},
		"the oldest that is known is open":   {"pause 3s", shut, "pause 6s", open},
		"the job was never planned":          nil,
	} {
		lines := []string{"config misfire=10s owner=2s", "calendar hol closed=2026-02-02", "advance 1s quiet", "pages off",
			"job j cron=*/2_*_*_*_*_* calendars=hol cron2=*/5_*_*_*_*_* misfire=all limit=1000 overlap=allow"}
		if first == nil {
			lines[len(lines)-1] += " unread"
			first = []string{"pause 3s", shut}
		}
		p := playedBy(t, slices.Concat(lines, []string{"reload"}, first)...)
		for n := range engine.CalendarsMax {
			change := open
			if name == "the oldest that is known is closed" && n%2 == 1 {
				change = shut
			}
			p.do(change, "pause 10ms")
		}
		p.do(open, "pause 20s", "inbox", "pages on", "advance 5s quiet")
		for second := 2; second <= 24; second++ {
			fates := p.fates("j", second)
			switch ran := len(fates) == 1 && !strings.HasPrefix(fates[0], "missed"); {
			case second%2 != 0 && second%5 != 0: // it is none of an instant
			case name == "the oldest that is known is closed" && (second == 5 || second == 6): // amid the changes
			case len(slices.Compact(fates)) != 1:
				t.Errorf("%s: %d has %v", name, second, fates)
			case ran && second <= 10 && name == "the oldest that is known is open", ran && second < 4:
				t.Errorf("%s: %d ran, nobody knows whether it was closed", name, second)
			case !ran && second > 10:
				t.Errorf("%s: %d has %v, it was open", name, second, fates)
			}
		}
	}
}
