package partition_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/partition"
)

// Once the row of a server that hangs is gone, what it does not know is in force. When it wakes, or starts anew, it gets no
// partition, whether others live or not, nothing moves for its sake, and it says why. A database that let it in would be found out.
func TestOldServersAreNotLetIn(t *testing.T) {
	if got := wakesOld(t, false); got > 0 {
		t.Errorf("the old server owns %d partitions", got)
	}
	if got := wakesOld(t, true); got != 8 {
		t.Errorf("the mutant is not found: the old server owns %d partitions, although its level is not looked at", got)
	}
}

// wakesOld tells how many partitions an old server has that nobody is beside any more. unasked: the database does not hear of its level.
func wakesOld(t *testing.T, unasked bool) (owned int) {
	t.Helper()
	inCity(t, 8, func(c *city) {
		ctx := context.Background()
		var log, others paper
		older := func(cfg *partition.Config) {
			cfg.Self.Level, cfg.Logger = engine.Level-1, slog.New(slog.NewTextHandler(&log, nil))
		}
		newer := func(cfg *partition.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&others, nil)) }
		old := c.join("old", 1, older)
		old.door.setUnasked(unasked)
		c.until(5*time.Second, wanted(8, "old"))
		a, b := c.join("a", 1, newer), c.join("b", 1, newer)
		c.until(90*time.Second, wanted(8, "a", "b", "old"))
		level := func(what string, want int) {
			t.Helper()
			if floor, err := c.st.RaiseFloor(ctx, 0); err != nil || floor != want || a.node.LevelOfAll() != want {
				t.Errorf("%s: floor %d, %v, level of all %d; want %d", what, floor, err, a.node.LevelOfAll(), want)
			}
		}
		level("an old server lives", engine.Level-1)
		old.door.setSilent(true)
		time.Sleep(40 * time.Second)
		level("an old server hangs", engine.Level-1)
		time.Sleep(30 * time.Second)
		level("its row is gone", engine.Level)

		c.until(90*time.Second, wanted(8, "a", "b"))
		old.door.setSilent(false)
		late := c.join("late", 1, older)
		stop := c.track()
		time.Sleep(3 * time.Minute)
		if moves, _ := stop(); !slices.Equal(moves, make([]int, 8)) || !slices.Equal(c.owners(), wanted(8, "a", "b")) {
			t.Errorf("partitions moved for servers that get none: %v, owners %q", moves, c.owners())
		}
		level("it is back", engine.Level)
		if n := strings.Count(others.String(), "is too old for what newer ones have written"); n != 4 {
			t.Errorf("two servers tell %d times of two old ones:\n%s", n, &others)
		}

		c.leave(late)
		c.die(a)
		c.die(b)
		time.Sleep(time.Minute)
		owned = len(old.node.Stats())
		if said := strings.Count(log.String(), "takes nothing any more"); !unasked && (said != 1 || old.node.Ready() == nil) {
			t.Errorf("it says %d times that it is too old, ready: %v\n%s", said, old.node.Ready(), &log)
		}
		if unasked {
			return
		}
		c.join("a", 2, newer)
		c.until(20*time.Second, wanted(8, "a"))
	})
	return owned
}
