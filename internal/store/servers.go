package store

import (
	"context"
	"time"
)

// Server is one node of the scheduling centre, as it says of itself.
type Server struct {
	Incarnation string   // key; this life of the server
	Name        string   // its place in the order of partition.Rank
	Address     string   // base URL at which the other servers reach it: "https://10.0.0.3:7070"; "" when they cannot
	Key         string   // what a call from another server must show; drawn anew by each incarnation
	Build       string   // for people
	Level       int      // newest states and entry kinds that it knows: nothing newer is written while it lives
	Unreachable []string // incarnations of live servers that it could not reach lately
	SitsOut     bool     // it released what it owned and takes nothing for the moment
	Beat        int64    // raised by each PutServer
}

// Servers is used by the membership of a server. No clock is read or stored: whether a server lives is judged
// by whoever watches its beat stand still (R8).
type Servers interface {
	// PutServer writes the row of s and raises its beat, which it returns; s.Beat is ignored. A row that was
	// removed meanwhile comes back.
	PutServer(ctx context.Context, s Server) (int64, error)
	// Servers lists all rows by incarnation.
	Servers(ctx context.Context) ([]Server, error)
	// RemoveServer deletes the row of an incarnation if its beat is still the given one (a judge's right), or
	// whatever its beat when beat is 0 (the server's own). No error when there is none.
	RemoveServer(ctx context.Context, incarnation string, beat int64) error
}

// Timekeeper is a store with a clock of its own, by which planned instants are read (R9). A store in the
// process's own file has none.
type Timekeeper interface {
	// DatabaseTime reads the database's clock. It is the only statement that does.
	DatabaseTime(ctx context.Context) (time.Time, error)
}

// Lineage is a store whose database may forget its tail: by the failover to a standby, by a restore.
type Lineage interface {
	// Lineage names the history that the database is on now, for comparison only: it changes when a standby was promoted,
	// a backup was restored or another cluster answers (R7). What owners have settled on is PartitionRow.Lineage.
	Lineage(ctx context.Context) (string, error)
}

// Inboxes is a store for which it is cheaper to look at many inboxes at once than to read each.
type Inboxes interface {
	// InboxesFilled tells which of some partitions have an entry in their inbox.
	InboxesFilled(ctx context.Context, partitions []int) ([]int, error)
}

// Hints is a store that can wake other servers. Hints may be lost and come twice (R11).
type Hints interface {
	// Hint says that the inbox of a partition has something, or that it was released.
	Hint(ctx context.Context, partition int) error
	// Hear calls wake for each hint until ctx ends; it reconnects by itself.
	Hear(ctx context.Context, wake func(partition int)) error
}
