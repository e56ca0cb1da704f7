package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/taktsched/takt/internal/api"
	"github.com/taktsched/takt/internal/app"
)

// sample is the value of a metric on a page; -1 when it is not there.
func sample(page, name string) float64 {
	for line := range strings.Lines(page) {
		var v float64
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(rest, &v); err == nil {
				return v
			}
		}
	}
	return -1
}

func TestMetrics(t *testing.T) {
	n := startNode(t)
	first := n.asPerson()
	n.asWorker(first.Execution)
	status, b := n.ask("GET", "/metrics", "")
	page := string(b)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, page)
	}
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", err, problems)
	}
	for name, want := range map[string]float64{"takt_ready": 1, "takt_database_up": 1, "takt_partitions": 1, "takt_partitions_owned": 1,
		"takt_partitions_unowned": 0, "takt_servers_live": 1, "takt_server_sits_out": 0, "takt_executions_created_total": 1,
		`takt_executions_ended_total{state="succeeded"}`: 1, `takt_executions_ended_total{state="failed"}`: 0, "takt_leases_granted_total": 1,
		"takt_reports_stale_total": 1, "takt_commit_errors_total": 0, "takt_planning_behind_seconds": 0, "takt_workers": 0, "takt_shards_queued": 0} {
		if got := sample(page, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if sample(page, "takt_commits_total") < 3 || sample(page, "takt_commit_p99_seconds") <= 0 || sample(page, `takt_partition_epoch{partition="0"}`) < 1 {
		t.Errorf("page\n%s", page)
	}
	n.refused("POST", "/metrics", "", http.StatusMethodNotAllowed, "method_not_allowed")
}

// The page is people's: whoever may not ask what they ask may not read it.
func TestMetricsWantPeoplesToken(t *testing.T) {
	dir := t.TempDir()
	people, workers := writeToken(t, dir, "people"), writeToken(t, dir, "workers")
	n := startNode(t, func(c *app.Config) { c.TokenFile, c.WorkerTokenFile = people, workers })
	n.refused("GET", "/metrics", "", http.StatusUnauthorized, "token_required")
	n.refused("GET", "/metrics", "", http.StatusForbidden, "token_of_workers", "Authorization", "Bearer workers")
	if status, _ := n.ask("GET", "/metrics", "", "Authorization", "Bearer people"); status != http.StatusOK {
		t.Errorf("answered %d", status)
	}
}

// A store that is away shows, and the page is there all the same.
func TestMetricsWithoutTheDatabase(t *testing.T) {
	r := newRig(t, func(c *api.Config) { c.Store = &heart{fails: errors.New("disk on fire")} })
	w := r.do(get("/metrics"))
	if page := w.Body.String(); w.Code != http.StatusOK || sample(page, "takt_database_up") != 0 || sample(page, "takt_ready") != 0 {
		t.Errorf("%d\n%s", w.Code, page)
	}
}

var metricRow = regexp.MustCompile("(?m)^\\| `(takt_[a-z0-9_]+)(\\{[a-z, ]+\\})?` \\| (counter|gauge) \\| (.+) \\|$")

// docs/METRICS.md has every metric with its own help, and none that is not there.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, m := range metricRow.FindAllStringSubmatch(string(text), -1) {
		said[m[1]] = m[3] + " " + m[4]
	}
	for name, want := range api.Metrics() {
		if said[name] != want {
			t.Errorf("docs/METRICS.md says of %s %q, want %q", name, said[name], want)
		}
		delete(said, name)
	}
	for name := range said {
		t.Errorf("docs/METRICS.md has %s, the server has not", name)
	}
}
