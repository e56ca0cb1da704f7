package job

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// UID names one life of a job: 16 random bytes, new after delete and create.
type UID [16]byte

// String is 32 hexadecimal digits.
func (u UID) String() string { return hex.EncodeToString(u[:]) }

// IsZero tells whether u names nothing.
func (u UID) IsZero() bool { return u == UID{} }

// ParseUID reads what String wrote.
func ParseUID(s string) (UID, error) {
	var u UID
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(u) {
		return u, Errorf(KindInvalid, "bad_uid", "%q is no job uid", s)
	}
	copy(u[:], b)
	return u, nil
}

// ExecutionID is a UUID version 8 that sorts by planned time: 48 bits of Unix milliseconds, then 74
// bits of hash (planned instants) or of chance (requests). See DESIGN R4.
type ExecutionID [16]byte

// PlannedID is the identity of the execution of job u for the planned instant at: the same for every
// planner, so planning twice is the same row. The schedule is not part of it.
func PlannedID(u UID, at Instant) ExecutionID {
	var in [24]byte
	copy(in[:16], u[:])
	binary.BigEndian.PutUint64(in[16:], uint64(at)*1_000_000) // nanoseconds
	sum := sha256.Sum256(in[:])
	return stamp(at, [10]byte(sum[:10]))
}

// RequestedID is the identity of an execution that somebody asked for at the given instant; random is
// drawn by the caller (control), for pure code draws no random bits.
func RequestedID(at Instant, random [10]byte) ExecutionID { return stamp(at, random) }

func stamp(at Instant, rest [10]byte) ExecutionID {
	var id ExecutionID
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at))
	copy(id[:6], ms[2:])
	copy(id[6:], rest[:])
	id[6] = id[6]&0x0f | 0x80 // version 8
	id[8] = id[8]&0x3f | 0x80 // RFC 9562 variant
	return id
}

var lookalike = strings.NewReplacer("i", "1", "l", "1", "o", "0")

var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// String is 26 lower-case Crockford characters, in the order of the bytes.
func (id ExecutionID) String() string {
	var b [26]byte
	return string(id.AppendTo(b[:0]))
}

// AppendTo appends String.
func (id ExecutionID) AppendTo(b []byte) []byte { return crockford.AppendEncode(b, id[:]) }

// UUID is the usual form with dashes.
func (id ExecutionID) UUID() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// IsZero tells whether id names nothing.
func (id ExecutionID) IsZero() bool { return id == ExecutionID{} }

// MarshalText writes String.
func (id ExecutionID) MarshalText() ([]byte, error) { return id.AppendTo(nil), nil }

// UnmarshalText reads either form.
func (id *ExecutionID) UnmarshalText(b []byte) error {
	v, err := ParseExecutionID(string(b))
	*id = v
	return err
}

// ParseExecutionID reads 26 Crockford characters (any case; i, l read as 1 and o as 0) or a UUID.
func ParseExecutionID(s string) (ExecutionID, error) {
	var id ExecutionID
	given := s
	bad := func() *Error {
		return Errorf(KindInvalid, "bad_execution_id", "%.64q is no execution id", given).
			WithHint("an id is 26 characters such as 06cw1bq0fr8j1x4cw6h3ybkq2c, or a UUID; `takt get executions` lists them")
	}
	var b []byte
	var err error
	switch len(s) {
	case 26:
		s = lookalike.Replace(strings.ToLower(s))
		var room [16]byte
		b, err = crockford.AppendDecode(room[:0], []byte(s))
		if err == nil && len(b) == len(id) && ExecutionID(b).String() != s { // two spare bits: one id, one text
			return id, bad()
		}
	case 36:
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return id, bad()
		}
		b, err = hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	default:
		return id, bad()
	}
	if err != nil || len(b) != len(id) {
		return id, bad()
	}
	copy(id[:], b)
	return id, nil
}

// PlannedAt is the instant that the id carries.
func (id ExecutionID) PlannedAt() Instant {
	var ms [8]byte
	copy(ms[2:], id[:6])
	return Instant(binary.BigEndian.Uint64(ms[:]))
}

// SessionID names one connected life of a worker: "<partition>.<hash>", so that any server can tell
// which partition a call belongs to.
type SessionID string

// SessionIDOf is a function of (namespace, pool, worker, incarnation): opening twice is one session.
func SessionIDOf(partition int, namespace, pool, worker, incarnation string) SessionID {
	sum := sha256.Sum256([]byte(strings.Join([]string{namespace, pool, worker, incarnation}, "\x00")))
	return SessionID(fmt.Sprintf("%d.%x", partition, sum[:12]))
}

// Partition is the number in front; false when s is not of that form.
func (s SessionID) Partition() (int, bool) {
	var p int
	head, tail, ok := strings.Cut(string(s), ".")
	if !ok || len(tail) != 24 || len(head) > 4 {
		return 0, false
	}
	for _, c := range head {
		if c < '0' || c > '9' {
			return 0, false
		}
		p = p*10 + int(c-'0')
	}
	return p, head != ""
}

// Token is the fencing token of a shard: it rises with every lease, and the newest one alone may write.
type Token int64

// Epoch fences the owner of a partition: it rises with every change of owner and every failed commit.
type Epoch int64

// Key is the idempotency key that every attempt of a shard carries.
func Key(e *Execution, shard int) string {
	name := e.Namespace + "/" + e.Job
	switch {
	case e.OfInstant():
		return fmt.Sprintf("%s@%s#%d", name, e.PlannedAt.Time().Format("2006-01-02T15:04:05.000Z"), shard)
	case e.RequestKey != "":
		return fmt.Sprintf("%s!%s#%d", name, e.RequestKey, shard)
	default:
		return fmt.Sprintf("%s!%s#%d", name, e.ID, shard)
	}
}
