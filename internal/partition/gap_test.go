package partition_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
)

// curious asks for every kind of pages whose rows act by themselves, as soon as it is loaded.
type curious struct{ *scripted }

func (c curious) Step(now engine.Now, events []engine.Event) engine.Result {
	res := c.scripted.Step(now, events)
	for _, ev := range events {
		if _, is := ev.(engine.Loaded); is {
			res.Want.Scheduled, res.Want.Backlog = &engine.WantScheduled{}, &engine.WantBacklog{}
		}
	}
	return res
}

// What is due, or queued, is read after what people asked while nobody owned the partition; an inbox that cannot be read does not keep
// it for more than a second.
func TestInboxIsReadFirst(t *testing.T) {
	for name, answers := range map[string]bool{"an inbox that is slow": true, "an inbox that does not answer": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				st := &memory{onInbox: func(ctx context.Context) {
					select {
					case <-gate:
					case <-ctx.Done():
					}
				}}
				r := newRigOf(t, st, nil, func(c *scripted) partition.Core { return curious{c} })
				read := func() int {
					synctest.Wait()
					st.mu.Lock()
					defer st.mu.Unlock()
					return st.others
				}
				time.Sleep(500 * time.Millisecond)
				if n := read(); n != 0 {
					t.Errorf("%d other pages are read before the inbox", n)
				}
				if answers {
					close(gate)
				} else {
					time.Sleep(600 * time.Millisecond)
				}
				if n := read(); n != 2 {
					t.Errorf("%d other pages are read, want 2", n)
				}
				r.end()
			})
		})
	}
}

// wanting asks for the inbox with each report.
type wanting struct{ *scripted }

func (w wanting) Step(now engine.Now, events []engine.Event) engine.Result {
	res := w.scripted.Step(now, events)
	for _, ev := range events {
		if _, is := ev.(engine.Report); is {
			res.Want.Inbox = true
		}
	}
	return res
}

// An engine that asks for the inbox hears that there is nothing for it, and nothing of what was left out.
func TestAskedPageLeavesOutWhatIsBad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &memory{onCommit: func(_ context.Context, _ int, b *engine.Batch) error {
			if len(b.Poison) > 0 {
				return job.Errorf(job.KindRejected, "bad_data", "the database refuses the record")
			}
			return nil
		}}
		st.put(1, kindPanics)
		r := newRigOf(t, st, nil, func(c *scripted) partition.Core { return wanting{c} })
		time.Sleep(time.Minute)
		before := r.node.Stats()[0].Engines
		for range 3 {
			if res := <-r.report("a"); res.err != nil {
				t.Errorf("a report: %v", res.err)
			}
			time.Sleep(5 * time.Second)
		}
		if after := r.node.Stats()[0].Engines; after != before {
			t.Errorf("%d more engines: the bad entry comes again", after-before)
		}
		r.end()
	})
}
