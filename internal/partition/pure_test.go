package partition_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

func servers(t *rapid.T) []string {
	n := rapid.IntRange(1, 8).Draw(t, "servers")
	var live []string
	for i := range n {
		live = append(live, fmt.Sprintf("server-%d", i))
	}
	return live
}

// Ranks of one partition over the live servers are 0..n-1, each once, in whatever order they are listed.
func TestRanksAreAPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live := servers(t)
		p := rapid.IntRange(0, 100).Draw(t, "partition")
		shuffled := rapid.Permutation(live).Draw(t, "order")
		var ranks []int
		for _, srv := range live {
			r := partition.Rank(p, srv, live)
			if again := partition.Rank(p, srv, shuffled); again != r {
				t.Fatalf("rank of %s is %d or %d, by the order of the list", srv, r, again)
			}
			ranks = append(ranks, r)
		}
		slices.Sort(ranks)
		for i, r := range ranks {
			if i != r {
				t.Fatalf("ranks %v", ranks)
			}
		}
	})
}

// When a server leaves, nobody's partition moves but its own.
func TestLeavingMovesOnlyItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live := append(servers(t), "leaver")
		left := live[:len(live)-1]
		for p := range 64 {
			for _, srv := range left {
				if partition.Rank(p, srv, live) == 0 && partition.Rank(p, srv, left) != 0 {
					t.Fatalf("partition %d moved away from %s although another one left", p, srv)
				}
			}
		}
	})
}

func TestRankSpreads(t *testing.T) {
	live := []string{"a", "b", "c", "d"}
	count := map[string]int{}
	for p := range 4096 {
		for _, srv := range live {
			if partition.Rank(p, srv, live) == 0 {
				count[srv]++
			}
		}
	}
	for _, srv := range live {
		if count[srv] < 900 || count[srv] > 1150 {
			t.Errorf("%s owns %d of 4096 partitions, want about 1024", srv, count[srv])
		}
	}
	if r := partition.Rank(0, "stranger", live); r != len(live) {
		t.Errorf("a server that is not listed has rank %d, want the last one, %d", r, len(live))
	}
}

func TestLeaseDefaultsAreTheDesign(t *testing.T) {
	l := partition.Lease{}.Filled()
	want := partition.Lease{
		TTL: 15 * s, Beat: 3 * s, Margin: 1500 * ms, OwnerTTL: 5 * s, OwnerMargin: 500 * ms, Renew: 1500 * ms, Look: 500 * ms,
		Load: 2 * s, Retry: 1 * s, CallTimeout: 2 * s, RoundTrip: 200 * ms,
	}
	if l != want {
		t.Errorf("defaults\n%+v, want\n%+v", l, want)
	}
	if err := l.Check(false); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	if got := partition.HolderDeadline(l, 100*s); got != 104500*ms {
		t.Errorf("deadline of a renewal sent at 100 s is %v, want the instant before the call + P − 0.5 s", got)
	}
}

func TestLeaseCheck(t *testing.T) {
	tests := []struct {
		name  string
		lease partition.Lease
		sole  bool
		says  string // "": accepted
	}{
		{"shorter leases shrink their reserves", partition.Lease{TTL: 6 * s}, true, ""},
		{"the classic run on a sole server", partition.Lease{TTL: 3 * s, Beat: 1 * s, Margin: 600 * ms}, true, ""},
		{"the classic run among several servers", partition.Lease{TTL: 3 * s, Beat: 1 * s, Margin: 600 * ms}, false, "beat 1s"},
		{"a slow beat", partition.Lease{Beat: 4 * s}, false, "lower ownerTTL"},
		{"a wide margin", partition.Lease{Margin: 9 * s}, false, "lower margin"},
		{"a long partition lease", partition.Lease{OwnerTTL: 9 * s}, false, "lower ownerTTL"},
		{"for a sole server P does not count", partition.Lease{OwnerTTL: 9 * s}, true, ""},
		{"a slow call", partition.Lease{CallTimeout: 8 * s}, false, "lower max(retry, callTimeout)"},
		{"negative", partition.Lease{Beat: -1}, true, "beat"},
		{"no time to renew", partition.Lease{OwnerTTL: 2 * s, Renew: 2 * s}, true, "no time for one renewal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.lease.Filled().Check(tt.sole)
			if tt.says == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if job.KindOf(err) != job.KindInvalid {
				t.Fatalf("got %v, want a refusal", err)
			}
			e := err.(*job.Error)
			if text := e.Error() + "; " + e.Hint; !strings.Contains(text, tt.says) {
				t.Errorf("%q does not say %q", text, tt.says)
			}
		})
	}
}

func row(owner string, epoch job.Epoch, beat int64) store.PartitionRow {
	return store.PartitionRow{Fence: store.Fence{Owner: owner, Epoch: epoch}, Beat: beat}
}

// A row stands still from the end of the first read that showed it like this to the start of the last.
func TestWatch(t *testing.T) {
	var w partition.Watch
	steps := []struct {
		row        store.PartitionRow
		asked, got time.Duration
		still      time.Duration
	}{
		{row("a", 1, 1), 0, 10 * ms, 0},
		{row("a", 1, 1), 500 * ms, 520 * ms, 490 * ms},
		{row("a", 1, 2), 1 * s, 1010 * ms, 0}, // renewed
		{row("a", 1, 2), 9 * s, 9010 * ms, 7990 * ms},
		{row("a", 2, 2), 10 * s, 10010 * ms, 0}, // acquired again, by itself
		{row("b", 2, 2), 11 * s, 11010 * ms, 0}, // by another
	}
	for i, st := range steps {
		if got := w.See(st.row, st.asked, st.got); got != st.still {
			t.Errorf("step %d: stood still for %v, want %v", i, got, st.still)
		}
	}
}

func TestMayTake(t *testing.T) {
	l := partition.Lease{}.Filled()
	tests := []struct {
		name  string
		owner string
		still time.Duration
		rank  int
		sole  bool
		want  bool
	}{
		{"its own", "me", 0, 3, false, true},
		{"released", "", 0, 0, false, true},
		{"released, second in order", "", 499 * ms, 1, false, false},
		{"released, second in order, later", "", 500 * ms, 1, false, true},
		{"held", "other", 4999 * ms, 0, false, false},
		{"stood still for P", "other", 5 * s, 0, false, true},
		{"stood still for P, third in order", "other", 5999 * ms, 2, false, false},
		{"stood still for P, third in order, later", "other", 6 * s, 2, false, true},
		{"held, but ours by the lock", "other", 0, 0, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := partition.MayTake(l, row(tt.owner, 7, 1), tt.still, "me", tt.rank, tt.sole); got != tt.want {
				t.Errorf("may take: %v, want %v", got, tt.want)
			}
		})
	}
}

// Now.Wall never runs back within an engine, however the clock is set.
func TestWallIsMonotone(t *testing.T) {
	base := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	mono, off := time.Duration(0), time.Duration(0)
	now := partition.Wall(func() time.Time { return base.Add(mono + off) })
	read := func() time.Duration { return time.Duration(now(mono)-base.UnixMilli()) * ms }
	steps := []struct {
		after, set time.Duration // time that passes, then how far the clock is set
		want       time.Duration
	}{
		{0, 0, 0},
		{10 * s, 0, 10 * s},
		{1 * s, -time.Hour, 10 * s}, // stands still
		{10 * s, 0, 10 * s},
		{1 * s, time.Hour, 22 * s},
		{1 * s, time.Hour, time.Hour + 23*s},
		{1 * s, -time.Hour, time.Hour + 23*s},
		{time.Hour, 0, time.Hour + 24*s},
	}
	for i, st := range steps {
		mono += st.after
		off += st.set
		if got := read(); got != st.want {
			t.Errorf("step %d: the engine sees %v, want %v", i, got, st.want)
		}
	}
}
