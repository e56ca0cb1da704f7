package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taktsched/takt"
)

// held is a shard under the lease that a worker had when it was hit.
type held struct {
	shard int
	token int64
}

// killOne kills a worker in the middle of its shards and waits until others have them.
func (d *Demo) killOne(ctx context.Context) error {
	victim, err := d.pick(ctx, "a worker to kill", 0.20, 2)
	if err != nil {
		return err
	}
	// Between an effect and its checkpoint, so that the next owner repeats a batch: the sink holds its
	// answer back until the worker is dead.
	sent, dead := make(chan struct{}), make(chan struct{})
	defer close(dead)
	d.sink.Trap(victim.name, func() { close(sent); <-dead })
	var began time.Time
	err = d.poll(ctx, 30*time.Second, "worker "+victim.name+" to send a batch", func() (bool, error) {
		select {
		case <-sent:
			began = time.Now()
			return true, victim.kill()
		default:
			return false, nil
		}
	})
	if err != nil {
		return err
	}
	hit := d.heldBy(victim.name)
	d.view.say("kill -9 of worker %s, which runs shards %s; their leases run out by themselves", victim.name, numbers(hit))
	return d.takenOver(ctx, victim.name, hit, began)
}

// freezeOne stops a worker past its lease, wakes it when others have written under newer tokens, and waits
// until the sink and the server have refused it.
func (d *Demo) freezeOne(ctx context.Context) error {
	victim, err := d.pick(ctx, "a worker to freeze", 0.40, 1)
	if err != nil {
		return err
	}
	before, refused := d.sink.Stats().Stale, d.staleServer
	began := time.Now()
	if err := victim.freeze(); err != nil {
		return err
	}
	hit := d.heldBy(victim.name)
	d.view.say("SIGSTOP of worker %s, which runs shards %s; it will not notice the end of its leases", victim.name, numbers(hit))
	if err := d.takenOver(ctx, victim.name, hit, began); err != nil {
		return err
	}
	if err := victim.thaw(); err != nil {
		return err
	}
	d.view.say("SIGCONT of worker %s: its handlers write once more with their old tokens", victim.name)
	return d.await(ctx, d.cfg.TTL+20*time.Second, "the refusal of the woken worker by sink and server", func([]takt.ShardStatus) (bool, error) {
		if err := d.countStale(ctx); err != nil {
			return false, err
		}
		sink := d.sink.Stats().Stale
		if sink == before || d.staleServer == refused {
			return false, nil
		}
		d.view.say("refused for an old token: %d batches by the sink, %d reports by the server", sink, d.staleServer)
		return true, nil
	})
}

// countStale reads how many reports the server has refused for their token.
func (d *Demo) countStale(ctx context.Context) error {
	stats, err := d.client.Stats(ctx)
	if err != nil {
		return err
	}
	d.staleServer = 0
	for _, p := range stats.Partitions {
		d.staleServer += p.Stale
	}
	return nil
}

// pick waits until a living worker with at least `least` shards is in the middle of all of them, past
// `share` of their files on average and with a checkpoint in each.
func (d *Demo) pick(ctx context.Context, what string, share float64, least int) (*process, error) {
	var chosen *process
	err := d.await(ctx, d.pace.takes+30*time.Second, what, func(shards []takt.ShardStatus) (bool, error) {
		count, sum := map[string]int{}, map[string]float64{}
		unready := map[string]bool{}
		for _, s := range shards {
			if s.State != "running" {
				if s.EndedAt == nil {
					unready[s.Worker] = true
				}
				continue
			}
			if s.CheckpointSeq < 2 || s.Progress == nil || s.Progress.Total == 0 {
				unready[s.Worker] = true
				continue
			}
			count[s.Worker]++
			sum[s.Worker] += float64(s.Progress.Done) / float64(s.Progress.Total)
		}
		for _, p := range d.procs.list {
			n := count[p.name]
			if n < least || unready[p.name] || !p.alive() || sum[p.name]/float64(n) < share {
				continue
			}
			if chosen == nil || n > count[chosen.name] {
				chosen = p
			}
		}
		return chosen != nil, nil
	})
	return chosen, err
}

// heldBy lists the shards that a worker held at the last look.
func (d *Demo) heldBy(worker string) []held {
	var hit []held
	for _, s := range d.shards {
		if s.Worker == worker && s.EndedAt == nil {
			hit = append(hit, held{s.Index, s.Token})
		}
	}
	return hit
}

// takenOver waits until every shard that was hit has a newer lease on another worker, or has ended by a
// report that was on its way, and the sink has met the newer token. It notes how long each take-over took.
func (d *Demo) takenOver(ctx context.Context, victim string, hit []held, began time.Time) error {
	return d.await(ctx, d.cfg.TTL+30*time.Second, "the take-over of worker "+victim+"'s shards", func(shards []takt.ShardStatus) (bool, error) {
		var took []float64
		for _, h := range hit {
			s := &shards[h.shard]
			next := slices.IndexFunc(s.Attempts, func(a takt.Attempt) bool { return a.Token > h.token })
			switch {
			case next >= 0 && (d.sink.Highest(h.shard) > h.token || s.EndedAt != nil):
				if at := s.Attempts[next].StartedAt; at != nil {
					took = append(took, seconds(at.Sub(began)))
				}
			case next < 0 && s.EndedAt != nil: // its report was on the way
			default:
				return false, nil
			}
		}
		if len(took) == 0 {
			return false, fmt.Errorf("no shard of worker %s had to be taken over: all had ended", victim)
		}
		d.takeovers = append(d.takeovers, took...)
		d.view.say("taken over after %.3v s", took)
		return true, nil
	})
}

func numbers(hit []held) string {
	var s []string
	for _, h := range hit {
		s = append(s, fmt.Sprint(h.shard))
	}
	return strings.Join(s, ", ")
}
