package takt

import (
	"testing"
	"time"
)

func TestHolderEnd(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name                           string
		ttl, margin, sent, taken, back time.Duration // back: when the answer arrived
	}{
		{"at once", 15 * s, 1500 * time.Millisecond, 10 * s, 10 * s, 10 * s},
		{"slow request", 15 * s, 1500 * time.Millisecond, 10 * s, 14 * s, 14 * s},
		{"slow answer", 15 * s, 1500 * time.Millisecond, 10 * s, 10 * s, 30 * s},
		{"no margin asked for", 3 * s, 0, 1 * s, 2 * s, 3 * s},
	} {
		t.Run(tt.name, func(t *testing.T) {
			end := terms{ttl: tt.ttl, margin: tt.margin}.holderEnd(tt.sent, tt.back)
			if want := tt.sent + tt.ttl - tt.margin; end != want {
				t.Errorf("end %v, want %v", end, want)
			}
			if judge := tt.taken + tt.ttl; end+tt.margin > judge {
				t.Errorf("the holder stops at %v, less than the margin before the judge's %v", end, judge)
			}
		})
	}
}

func TestLease(t *testing.T) {
	l := lease{end: 5}
	for now, want := range map[time.Duration]bool{4: false, 5: true, 6: true} {
		if l.over(now) != want {
			t.Errorf("over(%d) is not %v", now, want)
		}
	}
	if l.extend(3); l.end != 5 {
		t.Errorf("the end moved back to %d", l.end)
	}
	if l.extend(9); l.end != 9 {
		t.Errorf("the end did not move to 9 but to %d", l.end)
	}
}

func TestSends(t *testing.T) {
	s := sends{keep: 10}
	if _, ok := s.sent(1); ok {
		t.Error("knows a call before any was made")
	}
	for i := range time.Duration(5) {
		if n := s.next(i * 5); n != int64(i)+1 { // at 0, 5, 10, 15, 20
			t.Fatalf("call %d got number %d", i+1, n)
		}
	}
	for call, want := range map[int64]time.Duration{3: -1, 4: 15, 5: 20, 0: -1, 6: -1, 1: -1, 2: -1} {
		at, ok := s.sent(call)
		if ok != (want >= 0) || ok && at != want {
			t.Errorf("call %d was sent at %d (%v), want %d", call, at, ok, want)
		}
	}
	if n := s.next(1000); n != 6 {
		t.Errorf("the number after a long silence is %d", n)
	}
	if at, ok := s.sent(6); !ok || at != 1000 || len(s.at) != 1 {
		t.Errorf("remembers %v", s.at)
	}
}
