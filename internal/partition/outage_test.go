package partition_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/partition"
)

// One line of a kind each half minute, and it says how many were left out.
func TestOutageIsToldOnce(t *testing.T) {
	may := partition.OutageLines()
	for _, c := range []struct {
		text, code string
		at         time.Duration
		left       int
		write      bool
	}{
		{"renew", "down", 0, 0, true},
		{"renew", "down", time.Second, 0, false},
		{"acquire", "down", time.Second, 0, true},
		{"renew", "full", 2 * time.Second, 0, true},
		{"renew", "down", 29 * time.Second, 0, false},
		{"renew", "down", 30 * time.Second, 2, true},
		{"renew", "down", 31 * time.Second, 0, false},
		{"renew", "down", time.Hour, 1, true},
		{"renew", "down", 2 * time.Hour, 0, true},
	} {
		if left, write := may(c.text, c.code, c.at); left != c.left || write != c.write {
			t.Errorf("%s/%s at %v: %d left out, %v; should be %d, %v", c.text, c.code, c.at, left, write, c.left, c.write)
		}
	}
}
