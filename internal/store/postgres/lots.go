package postgres

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// Most executions that are granted end within seconds, and a row of them costs many indexes each time it comes, changes and goes.
// So the unsharded ones that one commit grants lie in a lot: one row without an index of theirs. A member of such a lot is running, its
// shard leased. When it ends it goes to history, and the lot notes that it is gone; whatever else becomes of it, it gets a row of
// its own in that commit. A partition has few lots: what is left of the oldest gets rows of its own before there is one more.
//
// Requested ones that one commit puts in line lie in a waiting lot, likewise: its members are queued, as their shards are. Who is granted
// goes from there to another lot. The first in line are the first to go: when a partition has enough waiting lots, what comes gets rows.

const (
	lotsMost  = 16      // commits of a partition that have lots of what is granted, at most
	lotsWait  = 32      // waiting lots of a partition, at most
	lotMember = 8 << 10 // bytes of a member, at most: what is large costs more than its indexes

	// Who reads one member by its id unpacks the arrays of all.
	lotMembers = 256
	lotBytes   = 256 << 10
)

// lots keeps what lies in the lots of partitions, for who commits there. Small lots are not worth a row (least).
type lots struct {
	mu    sync.Mutex
	of    map[int]*holding
	least int // members
	most  int // commits
	wait  int // waiting lots
}

// holding is what lies in the lots of a partition as of one commit. Only its owner writes there, so that it is right as long as
// one commit under one epoch follows the other.
type holding struct {
	owner string
	epoch job.Epoch
	seq   int64
	all   []*lot // oldest first
	at    map[job.ExecutionID]place
}

// lot is a row of lots.
type lot struct {
	seq  int64 // of the commit that made it
	part int
	ids  [][16]byte
	gone []byte // a bit for each
	left int

	waits bool // its members do: they are queued
}

// states are those of its members and of their shards.
func (l *lot) states() (job.ExecutionState, job.ShardState) {
	if l.waits {
		return job.ExecutionQueued, job.ShardQueued
	}
	return job.ExecutionRunning, job.ShardLeased
}

// place is that of a member.
type place struct {
	*lot
	n int
}

func isGone(gone []byte, n int) bool { return gone[n/8]>>(n%8)&1 == 1 }

func markGone(gone []byte, n int) { gone[n/8] |= 1 << (n % 8) } // as get_bit counts

func (h *holding) add(l *lot) {
	h.all = append(h.all, l)
	for n, id := range l.ids {
		if !isGone(l.gone, n) {
			h.at[id] = place{l, n}
		}
	}
}

// take gives what is known as of the commit before seq, for one commit; nil when that is not known.
func (l *lots) take(f store.Fence, seq int64) *holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.of[f.Partition]
	if h == nil || h.owner != f.Owner || h.epoch != f.Epoch || h.seq != seq-1 {
		return nil
	}
	delete(l.of, f.Partition)
	return h
}

func (l *lots) keep(partition int, h *holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[int]*holding{}
	}
	l.of[partition] = h
}

var (
	qLots = statement(`SELECT p.owner, p.epoch, p.seq, coalesce(l.seq, 0), coalesce(l.part, 0), coalesce(l.state = 'queued', false), l.gone, l.ids
		FROM partitions p LEFT JOIN lots l ON l.partition = p.id WHERE p.id = $1`)
	// What was read is of another commit than it should be: behind the fence, which says so if it is still so.
	qMovedOn = statement(`WITH done AS (SELECT 1 WHERE false)` + guard(guardFence, `1`, `NULL`))
)

// findLots finds out what lies in lots: from memory, or by a read when this is the first commit of an epoch, or follows one that
// failed.
func (c *commit) findLots(ctx context.Context) (moved bool, err error) {
	f, seq := c.fence, c.batch.Seq
	if c.held = c.store.lots.take(f, seq); c.held != nil {
		return false, nil
	}
	c.held = &holding{owner: f.Owner, epoch: f.Epoch, seq: seq - 1, at: map[job.ExecutionID]place{}}
	moved = true
	var all []*lot
	err = c.store.askOf(ctx, c.store.commits, "read lots", question{qLots, []any{f.Partition}, func(rows pgx.Rows) error {
		var owner string
		var epoch, at int64
		var l lot
		err := rows.Scan(&owner, &epoch, &at, &l.seq, &l.part, &l.waits, &l.gone, &l.ids)
		moved = owner != f.Owner || epoch != int64(f.Epoch) || at != seq-1
		if len(l.ids) > 0 {
			all = append(all, &l)
		}
		return err
	}})
	slices.SortFunc(all, func(a, b *lot) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.part, b.part)) })
	for _, l := range all {
		for n := range l.ids {
			if !isGone(l.gone, n) {
				l.left++
			}
		}
		c.held.add(l)
	}
	return moved, err
}

// lotChange is what a commit does to a lot.
type lotChange struct {
	*lot
	gone []byte           // as it will be
	went []int            // who goes
	out  []int64          // of them those that get a row of their own, counted from 1
	told []store.RowWrite // by place: what the shard becomes on its way there
}

// leave takes a member out of its lot, into a row of its own unless it ends. told is what its shard becomes with that; nil: what
// it is.
func (c *commit) leave(p place, ends bool, told *engine.ShardWrite) {
	i := slices.IndexFunc(c.lots, func(ch *lotChange) bool { return ch.lot == p.lot })
	if i < 0 {
		i = len(c.lots)
		c.lots = append(c.lots, &lotChange{lot: p.lot, gone: bytes.Clone(p.gone)})
	}
	ch := c.lots[i]
	if isGone(ch.gone, p.n) {
		return
	}
	markGone(ch.gone, p.n)
	ch.went = append(ch.went, p.n)
	if !ends {
		ch.out = append(ch.out, int64(p.n)+1)
	}
	if told != nil {
		if n := p.n + 1 - len(ch.told); n > 0 {
			ch.told = append(ch.told, make([]store.RowWrite, n)...)
		}
		ch.told[p.n].Shard = told
	}
}

// leaves takes who is written out of its lot. done: it goes to history from there, or its shard alone changes, and it was as
// all members are; everything else is a change of the row that it gets. Of who is granted grants decides.
func (c *commit) leaves(w *store.RowWrite) (done bool) {
	p, lies := c.held.at[w.ID()]
	if !lies {
		return false
	}
	state, shard := p.states()
	switch {
	case w.ShardFrom() != shard:
	case w.ExecutionWrite == nil:
		c.leave(p, false, w.Shard)
		return true
	case w.From == state && w.Row.State.Ended():
		c.leave(p, true, nil)
		return true
	case p.waits && c.isGrant(w):
		return false
	}
	c.leave(p, false, nil)
	return false
}

// isGrant tells that an execution of this partition becomes what all members of lots are, as it comes or out of the queue.
func (c *commit) isGrant(w *store.RowWrite) bool {
	return c.mayLie(w) && w.Row.State == job.ExecutionRunning && w.Shard.Row.State == job.ShardLeased &&
		(w.From == "" || w.From == job.ExecutionQueued && w.Shard.From == job.ShardQueued)
}

func (c *commit) mayLie(w *store.RowWrite) bool {
	return w.Shard != nil && w.Row.ShardTotal == 1 && w.Row.Partition == c.fence.Partition &&
		store.SizeOf(&w.Row)+store.SizeOfShard(&w.Shard.Row) <= lotMember
}

// waitsInLine tells that an execution comes as all members of waiting lots are. (What else is queued may count for overlap policies,
// whose reads know rows only.)
func (c *commit) waitsInLine(w *store.RowWrite) bool {
	return c.mayLie(w) && w.From == "" && w.Row.State == job.ExecutionQueued && w.Shard.Row.State == job.ShardQueued &&
		w.Row.Trigger == job.TriggerRequest && w.Row.Reason == job.ReasonNone
}

// intoLots takes those that come into lots away from the rows that are made and changed.
func (c *commit) intoLots(k *rowKinds) []store.CommonRows {
	var granted, rest []store.CommonRows
	if c.batch.Level >= engine.LevelLots {
		if granted = c.alike(c.isGrant, &k.fresh, &k.changed); len(granted) > 0 {
			c.makeRoom()
		}
	}
	for _, g := range granted {
		c.leaveAll(g.Rows, true)
	}
	c.leaveAll(k.changed, false) // of who is granted, those that are not many
	if c.batch.Level >= engine.LevelWaitingLots {
		waiting := c.alike(c.waitsInLine, &k.fresh)
		most := max(c.store.lots.wait-c.held.waiting(), 0)
		waiting = divided(waiting)
		waiting, rest = waiting[:min(len(waiting), most)], waiting[min(len(waiting), most):]
		for _, g := range rest {
			k.fresh = append(k.fresh, g.Rows...)
		}
		return append(divided(granted), waiting...)
	}
	return divided(granted)
}

// leaveAll takes those that still lie in lots out of them.
func (c *commit) leaveAll(rows []store.RowWrite, ends bool) {
	for i := range rows {
		if p, lies := c.held.at[rows[i].ID()]; lies {
			c.leave(p, ends, nil)
		}
	}
}

// alike takes the rows that lie in lots out of some, in groups.
func (c *commit) alike(lies func(*store.RowWrite) bool, from ...*rowWrites) []store.CommonRows {
	var found rowWrites
	for _, of := range from {
		*of = slices.DeleteFunc(*of, func(w store.RowWrite) bool {
			if !lies(&w) {
				return false
			}
			found = append(found, w)
			return true
		})
	}
	groups, rest := store.GroupCommon(found, c.store.lots.least)
	for _, w := range rest {
		of := from[0]
		if w.From != "" {
			of = from[1]
		}
		*of = append(*of, w)
	}
	return groups
}

func (h *holding) waiting() (n int) {
	for _, l := range h.all {
		if l.waits {
			n++
		}
	}
	return n
}

// divided makes of large groups several.
func divided(groups []store.CommonRows) (all []store.CommonRows) {
	for _, g := range groups {
		from, size := 0, 0
		for i := range g.Rows {
			w := &g.Rows[i]
			more := store.SizeOf(&w.Row) + store.SizeOfShard(&w.Shard.Row)
			if i > from && (i-from == lotMembers || size+more > lotBytes) {
				all = append(all, store.CommonRows{Common: g.Common, Rows: g.Rows[from:i]})
				from, size = i, 0
			}
			size += more
		}
		all = append(all, store.CommonRows{Common: g.Common, Rows: g.Rows[from:]})
	}
	return all
}

// makeRoom gives what is left of the oldest lots rows of its own, when there are as many as there may be.
func (c *commit) makeRoom() {
	var commits []int64
	for _, l := range c.held.all {
		if !l.waits {
			commits = append(commits, l.seq)
		}
	}
	commits = slices.Compact(commits)
	for _, l := range c.held.all {
		if over := len(commits) - c.store.lots.most; over >= 0 && !l.waits && l.seq <= commits[over] {
			for n := range l.ids {
				if !isGone(l.gone, n) {
					c.leave(place{l, n}, false, nil)
				}
			}
		}
	}
}

// settled is what lies in lots once the commit has succeeded.
func (c *commit) settled() *holding {
	h := c.held
	for _, ch := range c.lots {
		for _, n := range ch.went {
			delete(h.at, ch.ids[n])
		}
		ch.lot.gone, ch.left = ch.gone, ch.left-len(ch.went)
	}
	h.all = slices.DeleteFunc(h.all, func(l *lot) bool { return l.left == 0 })
	for _, l := range c.made {
		h.add(l)
	}
	h.seq = c.batch.Seq
	return h
}
