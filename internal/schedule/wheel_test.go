package schedule_test

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/schedule"
)

// wheelTwin is a wheel beside a plain list of what it holds.
type wheelTwin struct {
	*schedule.Wheel[int]
	now    int64
	held   []heldTimer
	serial int
}

type heldTimer struct {
	at    int64
	value int
	timer schedule.Timer
}

func (w *wheelTwin) insert(at int64) {
	w.held = append(w.held, heldTimer{at, w.serial, w.Insert(at, w.serial)})
	w.serial++
}

func (w *wheelTwin) cancel(t *rapid.T) {
	if len(w.held) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.held)-1).Draw(t, "which")
	if !w.Cancel(w.held[i].timer) || w.Cancel(w.held[i].timer) {
		t.Fatal("a value that is held is cancelled once")
	}
	w.held = slices.Delete(w.held, i, i+1)
}

func (w *wheelTwin) wait(t *rapid.T, d int64) {
	before := w.now
	w.now += d
	var got []heldTimer
	w.Advance(w.now, func(at int64, value int) { got = append(got, heldTimer{at: at, value: value}) })
	want := map[int]heldTimer{}
	w.held = slices.DeleteFunc(w.held, func(e heldTimer) bool {
		if e.at <= w.now {
			want[e.value] = e
		}
		return e.at <= w.now
	})
	for i, e := range got {
		if want[e.value].at != e.at {
			t.Fatalf("%d came, due at %d: not awaited", e.value, e.at)
		}
		if i > 0 && e.at < got[i-1].at && e.at >= before { // what was late when it came is first
			t.Fatalf("%d came behind %d", e.at, got[i-1].at)
		}
		if w.Cancel(want[e.value].timer) {
			t.Fatal("what was given out cannot be cancelled")
		}
		delete(want, e.value)
	}
	if len(want) > 0 {
		t.Fatalf("did not come: %v", want)
	}
}

// The wheel gives out what a plain list gives out, at the same advance and by instant, whatever is
// inserted, cancelled and waited in between.
func TestWheelAgainstList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.SampledFrom([]int64{0, 63, 64, 4095, 1_700_000_000_123, 1<<36 - 1}).Draw(t, "start")
		w := &wheelTwin{Wheel: schedule.NewWheel[int](start), now: start}
		far := rapid.SampledFrom([]int64{4095, 4096, 1<<30 - 1, 1 << 30, 1<<36 - 1, 1 << 36, 1<<36 + 77, 1 << 37, 3<<36 + 5}) // rapid draws small numbers mostly
		distance := rapid.OneOf(rapid.Int64Range(-5, 200), rapid.Int64Range(0, 10_000), rapid.Int64Range(0, 1<<38), far)
		length := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 100_000), far)
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			switch rapid.IntRange(0, 3).Draw(t, "operation") {
			case 0, 1:
				w.insert(w.now + distance.Draw(t, "distance"))
			case 2:
				w.cancel(t)
			case 3:
				w.wait(t, length.Draw(t, "wait"))
			}
			next, ok := w.Next()
			if ok != (len(w.held) > 0) || w.Len() != len(w.held) {
				t.Fatalf("%d are held, the wheel says %d, %v", len(w.held), w.Len(), ok)
			}
			for _, e := range w.held {
				if next > max(e.at, w.now) {
					t.Fatalf("wakes at %d for %d", next, e.at)
				}
			}
		}
	})
}

// A loop that sleeps until Next wakes for each value at its very millisecond, and wakes seldom without need.
func TestWheelWakes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	w := schedule.NewWheel[int64](0)
	for range 1000 {
		at := r.Int64N(10_000_000)
		w.Insert(at, at)
	}
	wakes, given := 0, 0
	for at, ok := w.Next(); ok; at, ok = w.Next() {
		wakes++
		w.Advance(at, func(due, value int64) {
			given++
			if due != value || due != at {
				t.Fatalf("%d came at %d", value, at)
			}
		})
	}
	if given != 1000 || wakes > 5000 {
		t.Errorf("%d of 1000 came, with %d wakes", given, wakes)
	}
}

// What is inserted while others are given out is in time too.
func TestWheelInsertWhileAdvancing(t *testing.T) {
	t.Parallel()
	w := schedule.NewWheel[int](0)
	w.Insert(10, 0)
	var got []int64
	w.Advance(100, func(at int64, value int) {
		got = append(got, at)
		if value < 5 {
			w.Insert(at+20, value+1) // of which the last lies behind 100
		}
	})
	if want := []int64{10, 30, 50, 70, 90}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

const many = 1_000_000

func BenchmarkWheel(b *testing.B) {
	instants := instantsOf(many)
	for b.Loop() {
		w := schedule.NewWheel[int32](0)
		timers := make([]schedule.Timer, many)
		for i, at := range instants {
			timers[i] = w.Insert(at, int32(i))
		}
		for i := 0; i < many; i += 2 {
			w.Cancel(timers[i])
		}
		n := 0
		w.Advance(1<<40, func(int64, int32) { n++ })
		if n != many/2 {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*many), "ns/op-of-a-timer")
}

func BenchmarkHeap(b *testing.B) {
	instants := instantsOf(many)
	for b.Loop() {
		h := &timerHeap{place: make([]int, many)}
		for i, at := range instants {
			heap.Push(h, heapTimer{at, i})
		}
		for i := 0; i < many; i += 2 {
			heap.Remove(h, h.place[i])
		}
		n := 0
		for h.Len() > 0 {
			heap.Pop(h)
			n++
		}
		if n != many/2 {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*many), "ns/op-of-a-timer")
}

func instantsOf(n int) []int64 {
	r := rand.New(rand.NewPCG(3, 4))
	all := make([]int64, n)
	for i := range all {
		all[i] = r.Int64N(60_000)
	}
	return all
}

type heapTimer struct {
	at int64
	id int
}

type timerHeap struct {
	items []heapTimer
	place []int
}

func (h *timerHeap) Len() int           { return len(h.items) }
func (h *timerHeap) Less(i, j int) bool { return h.items[i].at < h.items[j].at }
func (h *timerHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.place[h.items[i].id], h.place[h.items[j].id] = i, j
}
func (h *timerHeap) Push(x any) {
	h.place[x.(heapTimer).id] = len(h.items)
	h.items = append(h.items, x.(heapTimer))
}
func (h *timerHeap) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return last
}
