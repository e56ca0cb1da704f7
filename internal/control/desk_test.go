package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errRefused = errors.New("refused")

func newNumberDesk() *desk[int, string] {
	return &desk[int, string]{most: 5, bytes: 100, timeout: time.Minute, size: func(n *int) int { return *n },
		alone: func(err error) bool { return errors.Is(err, errRefused) }}
}

// writer writes numbers in a second; none of a set with a negative one.
type writer struct {
	mu   sync.Mutex
	sets [][]int
}

func (w *writer) write(_ context.Context, all []int) (out []string, err error) {
	time.Sleep(time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sets = append(w.sets, slices.Clone(all))
	for _, n := range all {
		if n < 0 {
			return nil, errRefused
		}
		out = append(out, fmt.Sprint(n))
	}
	return out, nil
}

// put hands a set in after a while, and tells what came of it.
func put(ctx context.Context, d func(context.Context, []int) ([]string, error), after time.Duration, items ...int) func() string {
	type result struct {
		out []string
		err error
	}
	got := make(chan result, 1)
	go func() {
		time.Sleep(after)
		out, err := d(ctx, items)
		got <- result{out, err}
	}()
	return func() string {
		r := <-got
		return fmt.Sprint(r.out, r.err)
	}
}

func TestDesk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newNumberDesk(), &writer{}
		use := func(ctx context.Context, items []int) ([]string, error) { return d.put(ctx, items, w.write) }
		gone, cancel := context.WithCancel(t.Context())
		calls := []func() string{
			put(t.Context(), use, 0, 1),
			put(t.Context(), use, 100*time.Millisecond, 2, 3),
			put(t.Context(), use, 200*time.Millisecond, -4),
			put(t.Context(), use, 300*time.Millisecond, 5),
			put(t.Context(), use, 400*time.Millisecond, 6, 7), // does not fit into the set before
			put(gone, use, 500*time.Millisecond, 8),
		}
		time.Sleep(900 * time.Millisecond)
		cancel()
		want := []string{"[1] <nil>", "[2 3] <nil>", "[] refused", "[5] <nil>", "[6 7] <nil>"}
		for i := range want {
			if got := calls[i](); got != want[i] {
				t.Errorf("call %d: %s, want %s", i, got, want[i])
			}
		}
		if got := calls[5](); got == "[8] <nil>" {
			t.Error("a call whose caller went before its turn was written")
		}
		if got, want := fmt.Sprint(w.sets), "[[1] [2 3 -4 5] [2 3] [-4 5] [-4] [5] [6 7]]"; got != want {
			t.Errorf("sets %s, want %s", got, want)
		}
	})
}

// One that is refused among many holds the others up for a few transactions, not for one each.
func TestRefusedAmongMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newNumberDesk(), &writer{}
		d.most = 256
		use := func(ctx context.Context, items []int) ([]string, error) { return d.put(ctx, items, w.write) }
		calls := []func() string{put(t.Context(), use, 0, 0)}
		for i := range 128 {
			n := 0
			if i == 77 {
				n = -1
			}
			calls = append(calls, put(t.Context(), use, time.Duration(i+1)*time.Millisecond, n))
		}
		for i, c := range calls {
			if got, want := c(), map[bool]string{false: "[0] <nil>", true: "[] refused"}[i == 78]; got != want {
				t.Errorf("call %d: %s, want %s", i, got, want)
			}
		}
		if n := len(w.sets); n != 1+1+2*7 {
			t.Errorf("%d transactions", n)
		}
	})
}

// When a transaction had a crowd the next one lets more come; a few callers wait for nobody.
func TestDeskOfACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newNumberDesk(), &writer{}
		d.gather = 500 * time.Millisecond
		use := func(ctx context.Context, items []int) ([]string, error) { return d.put(ctx, items, w.write) }
		began := time.Now()
		calls := []func() string{put(t.Context(), use, 0, 1)}
		for i, after := range []int{100, 200, 300, 1900, 2400, 2600} { // written from 1 s, from 2.5 s, from 3.5 s on
			calls = append(calls, put(t.Context(), use, time.Duration(after)*time.Millisecond, i+2))
		}
		for _, c := range calls {
			c()
		}
		if got, want := fmt.Sprint(w.sets), "[[1] [2 3 4] [5 6] [7]]"; got != want {
			t.Errorf("sets %s, want %s", got, want)
		}
		if took := time.Since(began); took != 4500*time.Millisecond {
			t.Errorf("it took %v, want 4.5s: half a second of it behind the crowd", took)
		}
		d.gather = time.Hour
		if got := put(t.Context(), use, 0, 8)(); got != "[8] <nil>" || time.Since(began) > 10*time.Second {
			t.Errorf("a lone caller has %s after %v", got, time.Since(began))
		}
	})
}

// Who waits for one name holds up nobody at another, and nothing is left of desks that nobody is at.
func TestDesks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := &desks[int, string]{create: newNumberDesk}, &writer{}
		began := time.Now()
		var calls []func() string
		for i, name := range []string{"a", "b", "a", "a"} {
			use := func(ctx context.Context, items []int) ([]string, error) { return d.put(ctx, name, items, w.write) }
			calls = append(calls, put(t.Context(), use, time.Duration(i)*time.Millisecond, i))
		}
		for _, c := range calls {
			c()
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %v, want 2s: b beside a, the later ones of a together behind the first", took)
		}
		if len(d.of) != 0 {
			t.Errorf("%d desks are left", len(d.of))
		}
	})
}

// A crowd that fills a transaction already waits for nobody: no more would fit.
func TestDeskOfAFullCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newNumberDesk(), &writer{}
		d.gather, d.most = 500*time.Millisecond, 3
		use := func(ctx context.Context, items []int) ([]string, error) { return d.put(ctx, items, w.write) }
		began := time.Now()
		calls := []func() string{put(t.Context(), use, 0, 1)}
		for i := range 6 {
			calls = append(calls, put(t.Context(), use, time.Duration(100*(i+1)), i+2))
		}
		for _, c := range calls {
			c()
		}
		if got, want := fmt.Sprint(w.sets), "[[1] [2 3 4] [5 6 7]]"; got != want {
			t.Errorf("sets %s, want %s", got, want)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %v, want 3s: nobody is waited for", took)
		}
	})
}

// When as many wait as the newest transaction had, all of a crowd are back that asks again and again: nobody is waited for.
func TestDeskOfACrowdThatIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newNumberDesk(), &writer{}
		d.gather = 500 * time.Millisecond
		use := func(ctx context.Context, items []int) ([]string, error) { return d.put(ctx, items, w.write) }
		began := time.Now()
		first := put(t.Context(), use, 0, 1)
		var crowd sync.WaitGroup
		for i := range 3 {
			crowd.Go(func() {
				for range 3 {
					put(t.Context(), use, 100, i+2)()
				}
			})
		}
		first()
		crowd.Wait()
		if took := time.Since(began).Round(time.Second / 10); len(w.sets) != 4 || took != 4*time.Second {
			t.Errorf("%v took %v, want four sets in 4s", w.sets, took)
		}
	})
}
