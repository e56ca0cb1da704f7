package api_test

import (
	"testing"

	"github.com/taktsched/takt"
)

// Every server lists all of them, with who owns what; the one that answers is marked.
func TestServersAreListed(t *testing.T) {
	c := startCluster(t, 3)
	for i, n := range c.nodes {
		for {
			list := answered[takt.ServerList](n, "GET", "/api/v1/servers", "")
			if len(list.Items) < 3 || len(list.Unowned) > 0 {
				continue // not all rows were read yet, or a partition is on its way
			}
			owned, self := 0, ""
			for _, s := range list.Items {
				owned += len(s.Partitions)
				if s.Self {
					self += s.Name
				}
				if !s.Live || s.SitsOut || s.Build != "v0-test" || s.Incarnation == "" || s.Address == "" || s.UptimeMs == nil || len(s.Unreachable) > 0 {
					t.Errorf("server %d lists %+v", i, s)
				}
			}
			if owned != 4 || list.Partitions != 4 || self != list.Items[i].Name {
				t.Errorf("server %d lists %+v, itself %q", i, list, self)
			}
			break
		}
	}
	one := startNode(t)
	list := asked[takt.ServerList](one, "GET", "/api/v1/servers", "")
	if len(list.Items) != 1 || !list.Items[0].Self || !list.Items[0].Live || len(list.Items[0].Partitions) != 1 || list.Items[0].Name == "" || len(list.Unowned) != 0 {
		t.Errorf("a server alone lists %+v", list)
	}
}
