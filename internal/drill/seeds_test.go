package drill_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/partition"
)

var (
	oneSeed   = flag.Int64("seed", -1, "play this seed alone")
	dump      = flag.String("dump", "", "where TestReplay writes what it compares, for a diff")
	manySeeds = flag.Int("seeds", 20, "how many seeds TestSeeds plays")
)

// playSeed runs ten virtual minutes of storm and returns their history.
func playSeed(t *testing.T, seed uint64) *drill.History {
	var h *drill.History
	synctest.Test(t, func(t *testing.T) {
		s := newStorm(t, seed)
		s.play(10 * time.Minute)
		h = s.c.close()
		s.checkEnds(h)
	})
	return h
}

func newStorm(t *testing.T, seed uint64) *storm {
	return &storm{c: newCluster(t, seed, partition.Lease{}), dice: rand.New(rand.NewPCG(seed, 1)), acked: map[string]string{}}
}

// TestSeedsCatch plays storms on engines that lack a part of the model: the checker must notice, else it
// would notice nothing in TestSeeds either.
func TestSeedsCatch(t *testing.T) {
	for name, sw := range map[string]engine.Switches{
		"grace after take-over":        {NoTakeoverGrace: true},
		"deadline from the named call": {DeadlineFromReceipt: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range []uint64{3, 0, 1, 2, 4, 5, 6, 7} {
				var h *drill.History
				synctest.Test(t, func(t *testing.T) {
					s := newStorm(t, seed)
					s.c.tune = func(p *partition.Config) {
						p.Engine = engine.Default()
						p.Engine.Switches = sw
					}
					s.rage(3 * time.Minute)
					s.asks.Wait()
					h = s.c.close()
				})
				if v := drill.Check(h); len(v) > 0 {
					t.Logf("seed %d: %d violations, the first: %s", seed, len(v), v[0])
					return
				}
			}
			t.Error("eight storms without this part, and nothing was found")
		})
	}
}

// TestSeeds plays storms and checks the invariants over each. A failing seed is the subtest's name:
// go test ./internal/drill -run Seeds -seed N plays it alone.
func TestSeeds(t *testing.T) {
	seeds := []uint64{}
	n := *manySeeds
	if testing.Short() || raceOn {
		n = min(n, 3)
	}
	for i := range n {
		seeds = append(seeds, uint64(i)+1)
	}
	if *oneSeed >= 0 {
		seeds = []uint64{uint64(*oneSeed)}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := playSeed(t, seed)
			sound(t, h)
			if t.Failed() {
				t.Logf("replay: go test ./internal/drill -run Seeds -seed %d", seed)
			}
		})
	}
}

// TestReplay plays one seed five times: the journals must be equal, else a failing seed is worth nothing.
func TestReplay(t *testing.T) {
	replays(t, 4, func(t *testing.T, seed uint64) []drill.Event { return playSeed(t, seed).Events })
}

// replays plays a seed five times, and compares what was decided, and when.
// One processor: what still happens at one virtual instant (connections that drop together) then runs in
// one order. The race detector shuffles goroutines on purpose, so there is nothing to compare under it.
func replays(t *testing.T, seed uint64, play func(t *testing.T, seed uint64) []drill.Event) {
	t.Helper()
	if raceOn {
		t.Skip("the race detector shuffles goroutines: `make test` plays this one without it")
	}
	procs := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(procs) })
	if *oneSeed >= 0 {
		seed = uint64(*oneSeed)
	}
	var first [32]byte
	for i := range 5 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, 1)
			var text []byte
			for _, e := range play(t, seed) {
				text = fmt.Appendf(text, "%d %d %d %v %v %+v\n", e.Partition, e.Seq, e.At, e.When, e.Trace, e.Fact)
			}
			if *dump != "" {
				if err := os.WriteFile(fmt.Sprintf("%s.%d", *dump, i), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			sum := sha256.Sum256(text)
			if i == 0 {
				first = sum
			}
			if sum != first {
				t.Errorf("run %d differs from run 0", i)
			}
		})
	}
}
