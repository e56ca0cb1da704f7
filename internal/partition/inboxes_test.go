package partition_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/partition"
)

// looking is a store that tells which inboxes have something.
type looking struct {
	*memory
	asked int
	fails error
}

func (l *looking) InboxesFilled(_ context.Context, partitions []int) ([]int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.fails != nil || len(l.inbox) == 0 {
		return nil, l.fails
	}
	return partitions, nil
}

func (l *looking) lookedAt() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// fail lets looks end with an error from now on.
func (l *looking) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails = err
}

// Where many inboxes are looked at at once, an empty one is not read, and what nobody told of is found by the next look. When a look
// fails each runner reads for itself.
func TestLookAtInboxes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &looking{memory: &memory{}}
		r := newRig(t, st.memory, func(c *partition.Config) { c.Store = st })
		time.Sleep(time.Second + 100*time.Millisecond) // the first read is the load's
		before := st.looks()
		time.Sleep(5 * time.Second)
		if read := st.looks() - before; read != 0 || st.lookedAt() < 10 {
			t.Errorf("an empty inbox was read %d times in 5 s, looked at %d times in 6 s", read, st.lookedAt())
		}
		silent := func(id int64) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
			defer cancel()
			st.put(id, engine.EntryTrigger)
			if !r.node.AwaitEntry(ctx, 0, id) {
				t.Errorf("entry %d, which nobody told of, was not found within a look", id)
			}
		}
		silent(1)
		st.fail(errors.New("no answer"))
		silent(2)
		before = st.looks()
		time.Sleep(2 * time.Second)
		if read := st.looks() - before; read < 3 {
			t.Errorf("%d reads in two seconds in which looks fail", read)
		}
		r.end()
	})
}

// A look that hangs does not keep a runner from its inbox for good.
func TestLookHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &hanging{memory: &memory{}}
		r := newRig(t, st.memory, func(c *partition.Config) { c.Store = st })
		time.Sleep(5 * time.Second)
		st.put(1, engine.EntryTrigger)
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond) // a look's time is P/2
		defer cancel()
		if !r.node.AwaitEntry(ctx, 0, 1) {
			t.Error("not found")
		}
		r.end()
	})
}

// hanging is a store whose looks end with their context only.
type hanging struct{ *memory }

func (h *hanging) InboxesFilled(ctx context.Context, _ []int) ([]int, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
