package bench

import (
	"context"
	"fmt"

	"github.com/taktsched/takt"
)

// Names of what meters count.
const (
	Commits       = "commits"            // transactions of the database
	OwnerCommits  = "ownerCommits"       // commits of partitions' owners among them
	WALBytes      = "walBytes"           // of the database's write-ahead log
	WrittenBytes  = "writtenBytes"       // to the disk, by this process: log, checkpoints, all
	ProcessCPU    = "processCpuSeconds"  // of this process: load and workers, and the server when it runs here
	DatabaseCPU   = "databaseCpuSeconds" // of a database server on this machine
	ServerCPU     = "serverCpuSeconds"   // of a server process of its own
	Resident      = "residentBytes"      // of this process
	ServerWritten = "serverWrittenBytes" // to the disk, by that process
)

// servers counts the commits of the owners on the server that answers.
type servers struct{ client *takt.Client }

// Read implements Meter.
func (s servers) Read(ctx context.Context) (map[string]float64, error) {
	stats, err := s.client.Stats(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the server's counts: %w", err)
	}
	var commits int64
	for _, p := range stats.Partitions {
		commits += p.Commits
	}
	return map[string]float64{OwnerCommits: float64(commits)}, nil
}

// This process: what it took of the processors and wrote to the disk, where the system tells.
type This struct{}

// Read implements Meter.
func (This) Read(context.Context) (map[string]float64, error) { return ofSelf(), nil }
