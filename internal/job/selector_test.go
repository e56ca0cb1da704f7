package job_test

import (
	"testing"

	"github.com/taktsched/takt/internal/job"
)

func TestSelector(t *testing.T) {
	labels := map[string]string{"team": "pay", "tier": "1", "empty": ""}
	const spaced = " team = pay , tier=1"
	for text, want := range map[string]bool{
		"": true, "team=pay": true, "team==pay": true, spaced: true, "team": true, "empty": true, "empty=": true,
		"team!=ops": true, "none!=x": true, "team=pay,tier=2": false, "team!=pay": false, "none": false, "none=": false, "team=": false,
	} {
		s, err := job.ParseSelector(text)
		if err != nil || s.Matches(labels) != want {
			t.Errorf("%q: %v, %v", text, s.Matches(labels), err)
		}
		if s.Empty() != (text == "") {
			t.Errorf("%q: empty %v", text, s.Empty())
		}
	}
	for _, bad := range []string{",", "=x", "a,,b", "!a", "a in (b)", "!=x"} {
		if _, err := job.ParseSelector(bad); job.KindOf(err) != job.KindInvalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestPauseCovers(t *testing.T) {
	var none *job.Pause
	open, until := &job.Pause{At: 10}, &job.Pause{At: 10, Until: 20}
	for _, x := range []struct {
		p    *job.Pause
		at   job.Instant
		want bool
	}{{none, 10, false}, {open, 9, false}, {open, 10, true}, {open, 1 << 40, true}, {until, 19, true}, {until, 20, false}} {
		if x.p.Covers(x.at) != x.want {
			t.Errorf("%+v covers %d: %v", x.p, x.at, !x.want)
		}
	}
}
