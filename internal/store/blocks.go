package store

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// The shards of an execution that has several lie in blocks: one row of the table of shards holds up to BlockShards of them
// as one value (Block). A shard with much to say (a large checkpoint, result or history) lies in a row of its own, and its
// block says so; it stays there. Executions of earlier versions have a row for each shard and no block.

// BlockShards is how many shards a block holds: about a page of the database while nothing special befell them.
const BlockShards = 64

// ownRowBytes is the size from which a shard lies in a row of its own: a change of one writes its block anew, which may so
// not grow beyond a few pages.
const ownRowBytes = 256

// BlockKey is the index of the row of a block: below those of shards, in the order of blocks.
func BlockKey(block int) int { return block - blockKeys }

const blockKeys = 1 << 30

// InBlock is the block that a shard may lie in.
func InBlock(index int) (block int) { return index / BlockShards }

// Block is what a row holds for its shards. It is stored as a byte for its form, and for each shard, from the first, a
// number: 0 for none, 1 for one in a row of its own, else 1 more than the length of the packed shard that follows.
type Block struct {
	shards [][]byte // packed; empty: none
	apart  []bool
}

const blockForm = 1

var errBlock = errors.New("a block of shards that is cut off, or of another form")

// ReadBlock reads a stored block. It refers to stored.
func ReadBlock(stored []byte) (b Block, err error) {
	if len(stored) == 0 || stored[0] != blockForm {
		return b, errBlock
	}
	for left := stored[1:]; len(left) > 0; {
		size, n := binary.Uvarint(left)
		if n <= 0 || size > uint64(len(left)-n)+1 || len(b.shards) == BlockShards {
			return b, errBlock
		}
		left = left[n:]
		var shard []byte
		if size > 1 {
			shard, left = left[:size-1:size-1], left[size-1:]
		}
		b.shards, b.apart = append(b.shards, shard), append(b.apart, size == 1)
	}
	return b, nil
}

// Append writes the block as it is stored.
func (b *Block) Append(stored []byte) []byte {
	stored = append(stored, blockForm)
	for i, shard := range b.shards {
		switch {
		case b.apart[i]:
			stored = append(stored, 1)
		case len(shard) == 0:
			stored = append(stored, 0)
		default:
			stored = append(binary.AppendUvarint(stored, uint64(len(shard))+1), shard...)
		}
	}
	return stored
}

// Held is how many shards lie in it.
func (b *Block) Held() (n int) {
	for _, shard := range b.shards {
		if len(shard) > 0 {
			n++
		}
	}
	return n
}

// at tells of one shard of the block: its state, or that it lies in a row of its own. Without either there is none.
func (b *Block) at(i int) (state job.ShardState, apart bool) {
	if i >= len(b.shards) {
		return "", false
	}
	return job.PackedState(b.shards[i]), b.apart[i]
}

// put keeps a shard; false when it belongs into a row of its own.
func (b *Block) put(i int, s *job.Shard) bool {
	for len(b.shards) <= i {
		b.shards, b.apart = append(b.shards, nil), append(b.apart, false)
	}
	b.shards[i] = nil
	if len(s.Checkpoint)+len(s.Result) < ownRowBytes {
		b.shards[i] = job.AppendPackedShard(nil, s)
	}
	b.apart[i] = len(b.shards[i]) == 0 || len(b.shards[i]) > ownRowBytes || job.PackedState(b.shards[i]) == ""
	if b.apart[i] {
		b.shards[i] = nil
	}
	return !b.apart[i]
}

// BlockWrite is what a commit does to one block.
type BlockWrite struct {
	Execution job.ExecutionID
	Block     int
	New       bool // the execution is
	Fresh     bool // it is new, and its shards lie in blocks
	writes    []*engine.ShardWrite
}

// Key is the index of its row.
func (w *BlockWrite) Key() int { return BlockKey(w.Block) }

// BlockWrites gathers the writes of shards that may lie in blocks, in the order of the first of each.
func BlockWrites(b *engine.Batch, shards []*engine.ShardWrite) (all []*BlockWrite) {
	type key struct {
		id    job.ExecutionID
		block int
	}
	fresh := map[job.ExecutionID]int{} // of those that are new: how many shards
	for i := range b.Executions {
		if w := &b.Executions[i]; w.From == "" {
			fresh[w.Row.ID] = w.Row.ShardTotal
		}
	}
	of := map[key]*BlockWrite{}
	var last *BlockWrite
	for _, w := range shards {
		k := key{w.Row.Execution, InBlock(w.Row.Index)}
		if last == nil || last.Execution != k.id || last.Block != k.block {
			if last = of[k]; last == nil {
				total, isNew := fresh[k.id]
				last = &BlockWrite{Execution: k.id, Block: k.block, New: isNew, Fresh: total > 1 && b.Level >= engine.LevelBlocks}
				of[k] = last
				all = append(all, last)
			}
		}
		last.writes = append(last.writes, w)
	}
	return all
}

// Apart are all writes, when there is no such block.
func (w *BlockWrite) Apart() []*engine.ShardWrite { return w.writes }

// Apply makes the writes to the block. own are those of shards in rows of their own; new ones are inserted. refused is the
// first that does not find the state it expects, nil for none; unguarded takes any state.
func (w *BlockWrite) Apply(b *Block, unguarded bool) (own []*engine.ShardWrite, refused *engine.ShardWrite) {
	for _, s := range w.writes {
		i := s.Row.Index % BlockShards
		state, apart := b.at(i)
		switch {
		case apart:
			own = append(own, s)
		case state != s.From && !unguarded:
			return own, s
		case !b.put(i, &s.Row):
			own = append(own, &engine.ShardWrite{Total: s.Total, Row: s.Row})
		}
	}
	return own, nil
}

// EachPacked reads the shards that lie in a block. One that cannot be read is marked. name keeps a text that many have
// alike; nil for a new text each.
func EachPacked(id job.ExecutionID, key int, stored []byte, name func([]byte) string, see func(*job.Shard) error) error {
	if name == nil {
		name = asText
	}
	first := (key + blockKeys) * BlockShards
	b, broken := ReadBlock(stored)
	for i := range b.shards {
		if len(b.shards[i]) == 0 {
			continue
		}
		s := b.shard(i, id, first, name)
		if err := see(&s); err != nil {
			return err
		}
	}
	if broken != nil {
		return see(&job.Shard{Execution: id, Index: first + min(len(b.shards), BlockShards-1), Unfit: unreadable("block of shards", broken)})
	}
	return nil
}

// shard is one that lies in the block, marked when it cannot be read.
func (b *Block) shard(i int, id job.ExecutionID, first int, name func([]byte) string) job.Shard {
	s := job.Shard{Execution: id, Index: first + i}
	failure, attempts, err := job.ReadPackedShard(b.shards[i], &s, name)
	ReadShard(&s, failure, attempts)
	if err != nil {
		s = job.Shard{Execution: id, Index: first + i, State: s.State, Unfit: unreadable("shard", err)}
	}
	return s
}

// PackedShards are the shards that lie in a block, from an index on.
func PackedShards(all []job.Shard, id job.ExecutionID, key int, stored []byte, from int) []job.Shard {
	_ = EachPacked(id, key, stored, nil, func(s *job.Shard) error { // see does not fail
		if s.Index >= from {
			all = append(all, *s)
		}
		return nil
	})
	return all
}

// PackedShard is one shard of a block; false when it does not lie there. A block that is nil is not there.
func PackedShard(id job.ExecutionID, index int, stored []byte) (found job.Shard, is bool) {
	b, _ := ReadBlock(stored) // of one that is broken, what can be read
	i := index % BlockShards
	if i < 0 || i >= len(b.shards) || len(b.shards[i]) == 0 {
		return found, false
	}
	return b.shard(i, id, index-i, asText), true
}

func asText(b []byte) string { return string(b) }

// ShardMerge walks over the shards of an execution by index: those in blocks, which are there from the start, and those
// in rows of their own, which are told in order.
type ShardMerge struct {
	Packed []job.Shard // by index
	Left   int         // how many to see at most
	See    func(*job.Shard) error
}

// Own takes in the next shard that has a row of its own. It ends with ErrEnough when nothing more is to be seen.
func (m *ShardMerge) Own(s *job.Shard) error {
	for len(m.Packed) > 0 && m.Packed[0].Index < s.Index {
		if err := m.next(); err != nil {
			return err
		}
	}
	return m.see(s)
}

// Rest sees what is left in blocks.
func (m *ShardMerge) Rest() error {
	for len(m.Packed) > 0 {
		if err := m.next(); errors.Is(err, ErrEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (m *ShardMerge) next() error {
	s := &m.Packed[0]
	m.Packed = m.Packed[1:]
	return m.see(s)
}

func (m *ShardMerge) see(s *job.Shard) error {
	if m.Left--; m.Left < 0 {
		m.Packed = nil
		return ErrEnough
	}
	err := m.See(s)
	if errors.Is(err, ErrEnough) {
		m.Packed, m.Left = nil, 0
	}
	return err
}

// SortShards puts the shards of an execution into their order, which those of blocks and of rows of their own have not.
func SortShards(all []job.Shard) {
	byIndex := func(a, b job.Shard) int { return a.Index - b.Index }
	if !slices.IsSortedFunc(all, byIndex) {
		slices.SortFunc(all, byIndex)
	}
}
