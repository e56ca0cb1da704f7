package sqlite

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// queued waits at the gate and notes its name when it is let in.
func queued(g *gate, wg *sync.WaitGroup, r rank, name string, order *[]string) {
	wg.Go(func() {
		if err := g.enter(context.Background(), r); err == nil {
			*order = append(*order, name) // under the gate
			g.leave()
		}
	})
	synctest.Wait() // it stands in its queue
}

// The best rank comes first, and within a rank who came first.
func TestGateOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		var wg sync.WaitGroup
		var order []string
		if err := g.enter(t.Context(), rankCommit); err != nil {
			t.Fatal(err)
		}
		queued(&g, &wg, rankSweep, "sweep", &order)
		queued(&g, &wg, rankPeople, "people 1", &order)
		queued(&g, &wg, rankPeople, "people 2", &order)
		queued(&g, &wg, rankOwnership, "ownership", &order)
		g.leave()
		wg.Wait()
		if want := []string{"ownership", "people 1", "people 2", "sweep"}; !slices.Equal(order, want) {
			t.Errorf("%v, want %v", order, want)
		}
	})
}

// A load that never ends starves nobody, and ownership waits for nobody.
func TestGateStarvesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		var wg sync.WaitGroup
		var order []string
		if err := g.enter(t.Context(), rankCommit); err != nil {
			t.Fatal(err)
		}
		queued(&g, &wg, rankSweep, "sweep", &order)
		queued(&g, &wg, rankLogs, "logs", &order)
		for range 4 * passedOver {
			queued(&g, &wg, rankCommit, "commit", &order)
		}
		queued(&g, &wg, rankOwnership, "ownership", &order)
		g.leave()
		wg.Wait()
		logs, sweep := slices.Index(order, "logs"), slices.Index(order, "sweep")
		if order[0] != "ownership" || logs < passedOver/2 || logs > passedOver+2 || sweep < logs-1 || sweep > passedOver+2 {
			t.Errorf("ownership is let in as number %d, logs as %d, the sweep as %d", slices.Index(order, "ownership"), logs, sweep)
		}
	})
}

// One that stops waiting leaves nothing behind, also when its turn comes at that moment.
func TestGateGivesUp(t *testing.T) {
	for range 200 {
		var g gate
		if err := g.enter(t.Context(), rankCommit); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			err := g.enter(ctx, rankLogs)
			if err == nil {
				g.leave()
			}
			done <- err
		}()
		go cancel()
		g.leave()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if g.taken || len(g.queues[rankLogs]) > 0 {
			t.Fatal("the gate stays taken")
		}
	}
}

func TestGateTry(t *testing.T) {
	var g gate
	if !g.try() {
		t.Fatal("nobody is in, and it does not open")
	}
	if g.try() {
		t.Fatal("two are in")
	}
	g.leave()
	if err := g.enter(t.Context(), rankPeople); err != nil {
		t.Fatal(err)
	}
	if g.try() {
		t.Fatal("two are in")
	}
}
