package engine_test

import "testing"

// TestCalendarChangedInAPause: what a pause held when a calendar closed it stays held by the pause: it was due by the calendar of then.
func TestCalendarChangedInAPause(t *testing.T) {
	for name, lines := range map[string][]string{
		"live":    {"advance 20s quiet", "calendar hol closed=2026-01-01", "advance 20s quiet", "resume j"},
		"nobody":  {"pages off", "reload", "pause 20s", "calendar hol closed=2026-01-01 unread", "pause 20s", "inbox", "pages on", "advance 1s quiet", "resume j"},
		"resumed": {"pages off", "reload", "pause 20s", "calendar hol closed=2026-01-01 unread", "pause 20s", "resume j unread", "inbox", "pages on", "advance 1s quiet"},
		"twice":   {"pages off", "reload", "pause 20s", "calendar hol closed=2026-01-01 unread", "pause 20s", "calendar hol closed=2026-01-01,2026-01-02 unread", "inbox", "pages on", "advance 1s quiet", "resume j"},
		"deleted": {"pages off", "reload", "pause 20s", "calendar hol closed=2026-01-01 unread", "pause 20s", "delete j", "pages on", "advance 1s quiet"},
	} {
		p := playedBy(t, "config misfire=10s owner=2s", "calendar hol closed=2026-02-02",
			"job j cron=*/2_*_*_*_*_* calendars=hol overlap=allow", "advance 3s quiet", "suspend j")
		p.do(append(lines, "advance 5s quiet")...)
		for second := 4; second <= 22; second += 2 {
			if fates := p.fates("j", second); len(fates) != 1 || fates[0] != "paused" {
				t.Errorf("%s: %d has %v", name, second, fates)
			}
		}
	}
}

// TestCalendarOpenedInAPause: what a calendar opens in a pause is held from the change on.
func TestCalendarOpenedInAPause(t *testing.T) {
	for name, lines := range map[string][]string{
		"live":    {"advance 20s quiet", "calendar hol closed=2026-02-01", "advance 21s quiet", "resume j"},
		"nobody":  {"pages off", "reload", "pause 20s", "calendar hol closed=2026-02-01 unread", "pause 20s", "inbox", "pages on", "advance 1s quiet", "resume j"},
		"resumed": {"pages off", "reload", "pause 20s", "calendar hol closed=2026-02-01 unread", "pause 21s", "resume j unread", "inbox", "pages on", "advance 1s quiet"},
	} {
		p := playedBy(t, "config misfire=10s owner=2s", "calendar hol closed=2026-01-01",
			"job j cron=*/2_*_*_*_*_* calendars=hol overlap=allow", "advance 3s quiet", "suspend j")
		p.do(append(lines, "advance 5s quiet")...)
		for second := 24; second <= 42; second += 2 {
			if fates := p.fates("j", second); len(fates) != 1 || fates[0] != "paused" {
				t.Errorf("%s: %d has %v", name, second, fates)
			}
		}
	}
}
