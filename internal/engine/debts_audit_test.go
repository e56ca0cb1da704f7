package engine_test

import "testing"

// TestAuditOfDebts: what a step looks at does not grow with what lies between the oldest debt and now. It once walked all of
// that at each write of the cursor, for hours of debts that find no room.
func TestAuditOfDebts(t *testing.T) {
	s := newScenario()
	do := func(line string) {
		t.Helper()
		if _, err := s.run(line); err != nil {
			t.Fatal(err)
		}
	}
	do("config misfire=60s owner=2s")
	do("job j cron=*_*_*_*_*_* misfire=all limit=1000 overlap=skip")
	do("worker A slots=4 lives work=1000h") // there is never room
	do("advance 3s quiet")
	for range 15 {
		do("pause 70s")
		do("reload")
		do("advance 1s quiet")
	}
	begin := s.e.Audited()
	do("pause 59s")
	do("advance 1s quiet")
	first := s.e.Audited() - begin
	for range 59 {
		do("pause 59s")
		do("advance 1s quiet")
	}
	begin = s.e.Audited()
	do("pause 59s")
	do("advance 1s quiet")
	if n := s.e.Audited() - begin; first == 0 || n > first {
		t.Errorf("the audits of a minute looked at %d instants, and an hour later at %d", first, n)
	}
}
