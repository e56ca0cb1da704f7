package api

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/partition"
)

const (
	pathMetrics = "/metrics"
	metricsLook = time.Second // at one owned partition's memory
)

// metrics serves what this server counts, in the text form of Prometheus. Whoever may make people's calls may read it.
func (s *server) metrics() {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&meter{s: s})
	s.mux.Handle("GET "+pathMetrics, promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
}

// meter reads the node when it is asked: nothing is counted twice.
type meter struct{ s *server }

// metric is one line of the page; docs/METRICS.md explains all.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	help string
}

var meters = map[string]metric{}

func declare(name, help string, kind prometheus.ValueType, labels ...string) string {
	meters[name] = metric{prometheus.NewDesc(name, help, labels, nil), kind, help}
	return name
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

var (
	mBuild       = declare("takt_build_info", "The version that runs; the value is 1.", gauge, "version", "server")
	mReady       = declare("takt_ready", "1 when calls can be served: see /readyz.", gauge)
	mDatabase    = declare("takt_database_up", "1 when the database answered the newest question, at most a second ago.", gauge)
	mPartitions  = declare("takt_partitions", "Partitions there are.", gauge)
	mOwned       = declare("takt_partitions_owned", "Partitions that this server owns.", gauge)
	mUnowned     = declare("takt_partitions_unowned", "Partitions that nobody owns as far as this server has seen.", gauge)
	mEpoch       = declare("takt_partition_epoch", "Epoch under which this server owns a partition.", gauge, "partition")
	mServers     = declare("takt_servers_live", "Servers that beat, this one included.", gauge)
	mSitsOut     = declare("takt_server_sits_out", "1 when this server owns nothing because no other can reach it, or it stops.", gauge)
	mOffset      = declare("takt_server_clock_offset_seconds", "How far this server's clock is ahead of the database's; missing where the database has none.", gauge)
	mRoundTrip   = declare("takt_server_clock_round_trip_seconds", "Of the question that the offset comes from; half of it is its error.", gauge)
	mSteps       = declare("takt_engine_steps_total", "Steps of the engines.", counter)
	mEngines     = declare("takt_engines_total", "Engines made: one for each partition that was taken or whose commit failed.", counter)
	mCommits     = declare("takt_commits_total", "Commits.", counter)
	mCommitErrs  = declare("takt_commit_errors_total", "Commits that failed or whose outcome is unknown.", counter)
	mCommitP99   = declare("takt_commit_p99_seconds", "Worst 99th percentile over the owned partitions, each of its newest 1,000 commits.", gauge)
	mPlanBehind  = declare("takt_planning_behind_seconds", "How long ago the oldest instant was due that is neither an execution nor a decision yet, over the owned partitions whose engine runs; 0 when there is none.", gauge)
	mPoisoned    = declare("takt_events_set_aside_total", "Events that could not be decided or stored, and were set aside.", counter)
	mCreated     = declare("takt_executions_created_total", "Executions that were made.", counter)
	mEnded       = declare("takt_executions_ended_total", "Executions that ended, by state; one that is rerun ends again.", counter, "state")
	mGranted     = declare("takt_leases_granted_total", "Shards given to workers.", counter)
	mRenewed     = declare("takt_leases_renewed_total", "Leases renewed.", counter)
	mExpired     = declare("takt_leases_expired_total", "Leases that ended because their worker was silent.", counter)
	mUndelivered = declare("takt_leases_undelivered_total", "Assignments that their worker never confirmed.", counter)
	mTimedOut    = declare("takt_attempts_timed_out_total", "Attempts that ran longer than their bound.", counter)
	mStale       = declare("takt_reports_stale_total", "Report items refused for an old token.", counter)
	mUnexplained = declare("takt_instants_unexplained_total", "Planned instants that got neither an execution nor a decision; it stays 0.", counter)
	mClockSteps  = declare("takt_clock_steps_total", "Steps of the clock that is planned by, or of this server's.", counter)
	mBadClocks   = declare("takt_worker_clock_alarms_total", "Workers whose clock was found wrong by more than 5 s.", counter)
	mWorkers     = declare("takt_workers", "Live workers of the pools that this server decides.", gauge)
	mSlots       = declare("takt_worker_slots", "Their slots.", gauge)
	mBusy        = declare("takt_worker_slots_busy", "Slots with a lease.", gauge)
	mQueued      = declare("takt_shards_queued", "Shards in memory that wait for a worker.", gauge)
	mWaiting     = declare("takt_executions_waiting", "Executions that wait for another one of their job to end.", gauge)
	mSkew        = declare("takt_worker_clock_skew_seconds", "The clock that is furthest from this server's among its workers', positive when it is ahead.", gauge)
)

// Describe implements prometheus.Collector.
func (m *meter) Describe(out chan<- *prometheus.Desc) {
	for _, d := range meters {
		out <- d.desc
	}
}

// Collect implements prometheus.Collector.
func (m *meter) Collect(out chan<- prometheus.Metric) {
	set := func(name string, v float64, labels ...string) {
		d := meters[name]
		out <- prometheus.MustNewConstMetric(d.desc, d.kind, v, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*pingTimeout)
	defer cancel()
	set(mBuild, 1, m.s.version, m.s.name)
	up := m.s.pulse.ping(ctx) == nil
	set(mDatabase, flag(up))
	set(mReady, flag(up && !m.s.stopping() && m.s.node.Ready() == nil))
	m.cluster(set)
	rows := m.s.owners.Stats()
	m.counts(rows, set)
	m.live(ctx, rows, set)
}

type setter func(name string, v float64, labels ...string)

func (m *meter) cluster(set setter) {
	n, unowned := m.s.owners.Count(), 0
	for p := range n {
		if _, ok := m.s.cluster.Owner(p); !ok {
			unowned++
		}
	}
	set(mPartitions, float64(n))
	set(mUnowned, float64(unowned))
	live, out := 1, false
	for _, o := range m.s.cluster.Members() {
		if o.Incarnation == m.s.incarnation {
			out = o.SitsOut
		} else if o.Lives {
			live++
		}
	}
	set(mServers, float64(live))
	set(mSitsOut, flag(out))
	if c := m.s.cluster.Clock(); c.Measured {
		set(mOffset, c.Ahead.Seconds())
		set(mRoundTrip, c.RoundTrip.Seconds())
	}
}

// counts are sums over all partitions that this server has owned since it started.
func (m *meter) counts(rows []partition.Stats, set setter) {
	owned, worst, behind := 0, time.Duration(0), time.Duration(0)
	for i := range rows {
		if r := &rows[i]; r.Owned {
			owned++
			behind = max(behind, r.PlanBehind)
			set(mEpoch, float64(r.Epoch), strconv.Itoa(r.Partition))
			worst = max(worst, r.CommitP99)
		}
	}
	set(mOwned, float64(owned))
	set(mPlanBehind, behind.Seconds())
	sum := m.s.cluster.Totals()
	set(mSteps, float64(sum.Steps))
	set(mEngines, float64(sum.Engines))
	set(mCommits, float64(sum.Commits))
	set(mCommitErrs, float64(sum.CommitErr))
	set(mCommitP99, worst.Seconds())
	x := &sum.Executions
	set(mCreated, float64(x.Created))
	for state, v := range map[string]int64{"succeeded": x.Succeeded, "partially_succeeded": x.PartiallySucceeded, "failed": x.Failed,
		"timed_out": x.TimedOut, "cancelled": x.Cancelled} {
		set(mEnded, float64(v), state)
	}
	c := &sum.Counters
	for name, v := range map[string]int64{mGranted: c.Granted, mRenewed: c.Renewed, mExpired: c.Expired, mUndelivered: c.Undelivered,
		mTimedOut: c.TimedOut, mStale: c.Stale, mPoisoned: c.Poisoned, mUnexplained: c.Unexplained, mClockSteps: c.ClockSteps, mBadClocks: c.WorkerClocks} {
		set(name, float64(v))
	}
}

// live looks into the memories of the owned partitions.
func (m *meter) live(ctx context.Context, rows []partition.Stats, set setter) {
	var workers, slots, busy, queued, waiting int
	var skew time.Duration
	for i := range rows {
		if !rows[i].Owned {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, metricsLook)
		reply, err := m.s.owners.Call(ctx, rows[i].Partition, 0, engine.Inspect{})
		cancel()
		seen, ok := reply.Value.(*engine.Inspected)
		if err != nil || !ok {
			continue // it was given up meanwhile
		}
		for _, p := range seen.Pools {
			slots, busy, queued = slots+p.Slots, busy+p.Busy, queued+p.Queued
		}
		workers, waiting = workers+len(seen.Sessions), waiting+seen.Waiting
		for j := range seen.Sessions {
			if c := seen.Sessions[j].Clock; c != nil && c.Abs() > skew.Abs() {
				skew = *c
			}
		}
	}
	for name, v := range map[string]int{mWorkers: workers, mSlots: slots, mBusy: busy, mQueued: queued, mWaiting: waiting} {
		set(name, float64(v))
	}
	set(mSkew, skew.Seconds())
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
