package job

import (
	"encoding/binary"
	"encoding/json"
	"errors"
)

// Fields of a packed shard in the order of their bits. The order is stored and never changes; new ones come behind the last.
const (
	bitReason = iota
	bitToken
	bitSession
	bitWorker
	bitClosed    // has no value
	bitConfirmed // has no value
	bitAttempt
	bitFaults
	bitLosses
	bitLeasedAt
	bitStartedAt // this and the next instants are differences from LeasedAt
	bitEndedAt
	bitTimeoutAt
	bitRetryAt
	bitStopBy
	bitReportSeq
	bitCheckpointSeq
	bitDone
	bitTotal
	bitNote
	bitCheckpoint
	bitResult
	bitError    // as JSON
	bitAttempts // as JSON
	bitFirst    // has no value: Attempts are firstAttempt(AttemptRunning)
	bitOnly     // has no value: Attempts are firstAttempt(AttemptSucceeded)
	shardBits
)

// stateBytes are the states of shards as AppendPackedShard writes them, from 1. The order is stored.
var stateBytes = [...]ShardState{"", ShardQueued, ShardLeased, ShardRunning, ShardRetryWait, ShardStopping, ShardSucceeded, ShardFailed, ShardTimedOut, ShardCancelled}

var errPackedShard = errors.New("a packed shard that is cut off, or of another form")

// AppendPackedShard writes a shard, but for Execution and Index, as a byte for its state, a number whose bits are the
// fields that are not zero, and their values: a shard that nothing befell yet takes two bytes, one that succeeded at its
// first attempt about forty.
func AppendPackedShard(b []byte, s *Shard) []byte {
	state := byte(0)
	for i, known := range stateBytes {
		if s.State == known {
			state = byte(i)
		}
	}
	var room [256]byte
	p := shardPacker{b: room[:0]}
	p.text(bitReason, string(s.Reason))
	p.number(bitToken, int64(s.Token))
	p.text(bitSession, string(s.Session))
	p.text(bitWorker, s.Worker)
	p.flag(bitClosed, s.Closed)
	p.flag(bitConfirmed, s.Confirmed)
	p.number(bitAttempt, int64(s.Attempt))
	p.number(bitFaults, int64(s.Faults))
	p.number(bitLosses, int64(s.Losses))
	p.number(bitLeasedAt, int64(s.LeasedAt))
	for i, at := range [...]Instant{s.StartedAt, s.EndedAt, s.TimeoutAt, s.RetryAt, s.StopBy} {
		if at != 0 {
			p.fields |= 1 << (bitStartedAt + i)
			p.b = binary.AppendVarint(p.b, int64(at-s.LeasedAt))
		}
	}
	for i, n := range [...]int64{s.ReportSeq, s.CheckpointSeq, s.Progress.Done, s.Progress.Total} {
		p.number(bitReportSeq+i, n)
	}
	p.text(bitNote, s.Progress.Note)
	p.text(bitCheckpoint, string(s.Checkpoint))
	p.text(bitResult, string(s.Result))
	if s.Error != nil {
		p.text(bitError, string(s.Error.append(nil)))
	}
	switch {
	case s.onlyAttempt(AttemptRunning):
		p.flag(bitFirst, true)
	case s.onlyAttempt(AttemptSucceeded):
		p.flag(bitOnly, true)
	case len(s.Attempts) > 0:
		p.text(bitAttempts, string(AppendAttempts(nil, s.Attempts)))
	}
	return append(binary.AppendUvarint(append(b, state), p.fields), p.b...)
}

// firstAttempt is the attempt of a shard as it is when nothing special befell it.
func (s *Shard) firstAttempt(state AttemptState) Attempt {
	a := Attempt{Number: s.Attempt, Token: s.Token, Worker: s.Worker, State: state, StartedAt: s.LeasedAt}
	if state != AttemptRunning {
		a.EndedAt = s.EndedAt
	}
	return a
}

func (s *Shard) onlyAttempt(state AttemptState) bool {
	return len(s.Attempts) == 1 && s.Attempts[0] == s.firstAttempt(state)
}

type shardPacker struct {
	fields uint64
	b      []byte
}

func (p *shardPacker) flag(bit int, is bool) {
	if is {
		p.fields |= 1 << bit
	}
}

func (p *shardPacker) number(bit int, n int64) {
	if n != 0 {
		p.fields |= 1 << bit
		p.b = binary.AppendVarint(p.b, n)
	}
}

func (p *shardPacker) text(bit int, v string) {
	if v != "" {
		p.fields |= 1 << bit
		p.b = append(binary.AppendUvarint(p.b, uint64(len(v))), v...)
	}
}

// PackedState is the state of a packed shard; "" for none that is known.
func PackedState(b []byte) ShardState {
	if len(b) == 0 || int(b[0]) >= len(stateBytes) {
		return ""
	}
	return stateBytes[b[0]]
}

// ReadPackedShard reads what AppendPackedShard wrote into s, and leaves Execution and Index alone. name keeps a text that
// many shards have alike. failure and attempts are JSON that is not read yet; nil when there is none.
func ReadPackedShard(b []byte, s *Shard, name func([]byte) string) (failure, attempts []byte, err error) {
	if len(b) == 0 {
		return nil, nil, errPackedShard
	}
	s.State = PackedState(b)
	p := shardUnpacker{b: b[1:]}
	p.fields = p.unsigned()
	if p.fields >= 1<<shardBits {
		return nil, nil, errPackedShard
	}
	s.Reason, s.Token = Reason(name(p.text(bitReason))), Token(p.number(bitToken))
	s.Session, s.Worker = SessionID(name(p.text(bitSession))), name(p.text(bitWorker))
	s.Closed, s.Confirmed = p.has(bitClosed), p.has(bitConfirmed)
	s.Attempt, s.Faults, s.Losses = int(p.number(bitAttempt)), int(p.number(bitFaults)), int(p.number(bitLosses))
	s.LeasedAt = Instant(p.number(bitLeasedAt))
	for i, at := range [...]*Instant{&s.StartedAt, &s.EndedAt, &s.TimeoutAt, &s.RetryAt, &s.StopBy} {
		if p.has(bitStartedAt + i) {
			*at = s.LeasedAt + Instant(p.signed())
		}
	}
	for i, n := range [...]*int64{&s.ReportSeq, &s.CheckpointSeq, &s.Progress.Done, &s.Progress.Total} {
		*n = p.number(bitReportSeq + i)
	}
	s.Progress.Note = string(p.text(bitNote))
	s.Checkpoint, s.Result = json.RawMessage(p.copied(bitCheckpoint)), json.RawMessage(p.copied(bitResult))
	failure, attempts = p.text(bitError), p.text(bitAttempts)
	switch {
	case p.has(bitFirst):
		s.Attempts = []Attempt{s.firstAttempt(AttemptRunning)}
	case p.has(bitOnly):
		s.Attempts = []Attempt{s.firstAttempt(AttemptSucceeded)}
	}
	if p.bad || len(p.b) > 0 {
		err = errPackedShard
	}
	return failure, attempts, err
}

type shardUnpacker struct {
	fields uint64
	b      []byte // what is left
	bad    bool
}

func (p *shardUnpacker) has(bit int) bool { return p.fields&(1<<bit) != 0 }

func (p *shardUnpacker) unsigned() uint64 {
	n, size := binary.Uvarint(p.b)
	p.skip(size)
	return n
}

func (p *shardUnpacker) signed() int64 {
	n, size := binary.Varint(p.b)
	p.skip(size)
	return n
}

// skip passes over a number of so many bytes.
func (p *shardUnpacker) skip(size int) {
	if size <= 0 {
		p.bad, size = true, len(p.b)
	}
	p.b = p.b[size:]
}

func (p *shardUnpacker) number(bit int) int64 {
	if !p.has(bit) {
		return 0
	}
	return p.signed()
}

// text is a part of what is unpacked; nil when there is none.
func (p *shardUnpacker) text(bit int) []byte {
	if !p.has(bit) {
		return nil
	}
	n := p.unsigned()
	if n > uint64(len(p.b)) {
		p.bad = true
		return nil
	}
	v := p.b[:n:n]
	p.b = p.b[n:]
	return v
}

func (p *shardUnpacker) copied(bit int) []byte {
	v := p.text(bit)
	if v == nil {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}
