package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/api"
	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

// late is a store whose clock is an hour behind this machine's.
type late struct{ store.Store }

func (late) DatabaseTime(context.Context) (time.Time, error) { return time.Now().Add(-time.Hour), nil }

// Each server's clock is shown as it stands to the database's, whichever server is asked.
func TestServersClocksAreListed(t *testing.T) {
	c := startCluster(t, 2, func(cfg *app.Config) { cfg.Store = late{cfg.Store} })
	for i, n := range c.nodes {
		for {
			list := answered[takt.ServerList](n, "GET", "/api/v1/servers", "")
			if len(list.Items) < 2 || list.Items[0].UptimeMs == nil || list.Items[1].UptimeMs == nil {
				continue // not all rows were read yet, or the other one did not answer
			}
			for _, s := range list.Items {
				if s.ClockAheadMs == nil {
					t.Errorf("server %d tells nothing of the clock of %s", i, s.Name)
				} else if d := time.Duration(*s.ClockAheadMs) * time.Millisecond; (d - time.Hour).Abs() > time.Minute {
					t.Errorf("server %d says that %s is %v ahead, want an hour", i, s.Name, d)
				}
			}
			break
		}
	}
}

// seen is a Cluster of rows.
type seen []partition.Member

func (s seen) Members() []partition.Member      { return s }
func (seen) Owner(int) (partition.Holder, bool) { return partition.Holder{}, false }
func (seen) Totals() (none partition.Stats)     { return none }
func (seen) Clock() (none partition.Clock)      { return none }

// A server that sits out says so where it is asked whether it is ready, and what to look at.
func TestReadyTellsWhoSitsOut(t *testing.T) {
	for _, sits := range []bool{true, false} {
		self := partition.Member{Lives: true}
		self.Incarnation, self.Address, self.SitsOut = "me", "http://10.9.8.7:1", sits
		other := partition.Member{Lives: true}
		other.Incarnation, other.SitsOut = "other", !sits
		r := newRig(t, func(c *api.Config) { c.Cluster, c.Incarnation = seen{other, self}, "me" })
		r.owners.unready = job.Errorf(job.KindUnavailable, "not_ready", "it is not")
		w := r.do(get("/readyz"))
		var p takt.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusServiceUnavailable {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
		code := "partitions_not_owned"
		if sits {
			code = "sits_out"
		}
		if p.Code != code || sits != strings.Contains(p.Detail, self.Address) || sits != strings.Contains(p.Hint, "--advertise") {
			t.Errorf("sits out %v: %s", sits, w.Body)
		}
	}
}

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
