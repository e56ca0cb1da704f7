package partition

import (
	"hash/fnv"
	"strconv"
	"time"
)

// rankStep separates the servers that may try for one partition.
const rankStep = 500 * time.Millisecond

// Rank is the place of a server among the live ones in the order in which they may take a partition
// (rendezvous hashing): 0 takes it at once, k tries k × 0.5 s later, so that differing views of who
// lives never leave a partition unowned. A server that is not among the live comes after all of them.
// Servers that join or leave move only the partitions that they win or lose.
func Rank(partition int, server string, live []string) int {
	mine := score(partition, server)
	rank, listed := 0, false
	for _, s := range live {
		if s == server {
			listed = true
			continue
		}
		if o := score(partition, s); o > mine || o == mine && s < server {
			rank++
		}
	}
	if !listed {
		return len(live)
	}
	return rank
}

// score is the weight of a server for a partition. FNV alone spreads the last bytes badly, so its sum is
// mixed (the finalizer of MurmurHash3).
func score(partition int, server string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(server + "\x00" + strconv.Itoa(partition)))
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
