package engine_test

import (
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/engine"
)

// What is known behind the oldest change of a calendar that was changed too often is what the other calendars said by then, not what they
// said when the job was written.
func TestCalendarForgottenBesideAnother(t *testing.T) {
	for _, unread := range []string{"", " unread"} {
		p := playedBy(t, "config misfire=10s owner=2s", "calendar hol closed=2026-02-02", "calendar ops closed=2026-01-01", "advance 1s quiet", "pages off",
			"job j cron=*/2_*_*_*_*_* calendars=hol,ops misfire=all limit=1000 overlap=allow"+unread, "reload", "pause 3s",
			"calendar hol closed=2026-02-02 unread", "pause 2s", "calendar ops closed=2026-02-02 unread", "pause 4s")
		p.do("calendar hol closed=2026-02-02 unread", "pause 8s") // the oldest that is known
		for range engine.CalendarsMax - 1 {
			p.do("calendar hol closed=2026-02-02 unread", "pause 10ms")
		}
		p.do("pause 10s", "inbox", "pages on", "advance 5s quiet")
		for second := 12; second <= 18; second += 2 {
			if fates := p.fates("j", second); len(fates) == 0 {
				t.Errorf("%d (never planned: %v) has no fate, both calendars were open", second, unread != "")
			}
		}
	}
}

// A job that keeps to no calendar any more is no reason to run what a forgotten one may have closed; what came due since runs.
func TestCalendarForgottenThenDropped(t *testing.T) {
	for _, unread := range []string{"", " unread"} {
		p := playedBy(t, "config misfire=10s owner=2s", "calendar hol closed=2026-01-01", "advance 1s quiet", "pages off",
			"job j cron=*/2_*_*_*_*_* calendars=hol misfire=all limit=1000 overlap=allow"+unread, "reload", "pause 4s",
			"job j cron=*/2_*_*_*_*_* misfire=all limit=1000 overlap=allow unread", "pause 6s")
		for range engine.CalendarsMax + 1 {
			p.do("calendar hol closed=2026-01-01 unread", "pause 10ms")
		}
		p.do("pause 2s", "inbox", "pages on", "advance 5s quiet")
		for second := 2; second <= 14; second += 2 {
			fates := p.fates("j", second)
			missed := len(fates) == 1 && strings.HasPrefix(fates[0], "missed")
			if second > 4 && (missed || len(fates) != 1) || second <= 4 && unread != "" && !missed || second <= 4 && len(fates) > 0 && !missed {
				t.Errorf("%d (never planned: %v) has %v", second, unread != "", fates)
			}
		}
	}
}

// Between the two, a job may have been edited: each revision has its own instants.
func TestJobEditedAmidForgotten(t *testing.T) {
	p := playedBy(t, "config misfire=10s owner=2s", "calendar hol closed=2026-02-02", "advance 1s quiet", "pages off",
		"job j cron=*/20_*_*_*_*_* calendars=hol misfire=all limit=1000 overlap=allow unread", "reload", "pause 3s",
		"calendar hol closed=2026-02-02 unread", "pause 1s",
		"job j cron=1/4_*_*_*_*_* calendars=hol misfire=all limit=1000 overlap=allow unread", "pause 20s")
	for range engine.CalendarsMax {
		p.do("calendar hol closed=2026-02-02 unread", "pause 10ms")
	}
	p.do("pause 10s", "inbox", "pages on", "advance 5s quiet")
	for second := 9; second <= 21; second += 4 {
		if len(p.fates("j", second)) != 1 {
			t.Errorf("%d has %v", second, p.fates("j", second))
		}
	}
}
