package drill_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taktsched/takt/internal/drill"
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/schedule"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

const (
	movePartitions = 4
	moveServers    = 3
	moveJobs       = 6
)

// removal is servers that share four partitions on one SQLite file, and jobs that move between pools all the time,
// while servers crash and come back and commits fail. Nobody works.
type removal struct {
	t     *testing.T
	seed  uint64
	dice  *rand.Rand
	st    *sqlite.Store
	wg    sync.WaitGroup
	lives int
	nodes []*mover
	jobs  []*moving
	asked map[job.ExecutionID]int // partition that a request was written to
}

// mover is one life of a server.
type mover struct {
	node *partition.Node
	st   *chaos
	stop context.CancelFunc
}

// moving is a job; a steady one keeps its schedule and is never deleted.
type moving struct {
	name   string
	uid    job.UID
	every  time.Duration
	steady bool
	made   job.Instant
}

func newRemoval(t *testing.T, seed uint64) *removal {
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "takt.db"), Partitions: movePartitions, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	r := &removal{t: t, seed: seed, dice: rand.New(rand.NewPCG(seed, 5)), st: st, asked: map[job.ExecutionID]int{}, nodes: make([]*mover, moveServers)}
	for i := range moveJobs {
		r.jobs = append(r.jobs, &moving{name: fmt.Sprintf("j%d", i), every: time.Duration(2+i) * time.Second, steady: i < moveJobs/2})
	}
	return r
}

// begin starts a life of server i.
func (r *removal) begin(i int) {
	r.lives++
	life, ctx := r.lives, context.Context(nil)
	m := &mover{st: &chaos{Store: r.st}}
	ctx, m.stop = context.WithCancel(context.Background())
	name := fmt.Sprintf("s%d", i)
	m.st.pace = func(method string) {
		time.Sleep(time.Microsecond + time.Duration(drill.Draw(r.seed, name, method, strconv.FormatInt(time.Now().UnixNano(), 10))%9_000))
	}
	jitter := func() time.Duration {
		return time.Duration(drill.Draw(r.seed, name, strconv.FormatInt(time.Now().UnixNano(), 10)) % 20_000)
	}
	n, err := partition.NewNode(ctx, partition.Config{Store: m.st, Server: name, Incarnation: fmt.Sprintf("%s-%d", name, life), Jitter: jitter, Seed: r.seed})
	if err != nil {
		r.t.Error(err)
		return
	}
	m.node, r.nodes[i] = n, m
	r.wg.Go(func() {
		if err := n.Run(ctx); err != nil && !errors.Is(err, partition.ErrCrashed) && !m.st.isDead() {
			r.t.Errorf("server %s: %v", name, err)
		}
	})
}

// end ends a life: gracefully, or as a process dies.
func (r *removal) end(i int, abrupt bool) {
	if m := r.nodes[i]; m != nil {
		if abrupt {
			m.st.die()
		}
		m.stop()
		r.nodes[i] = nil
	}
}

// shake makes some commits of a server fail, or their outcome unknown.
func (r *removal) shake(i int) {
	m, often := r.nodes[i], uint64(20+r.dice.IntN(200))
	if m == nil {
		return
	}
	m.st.setRule(func(n string, _ *engine.Batch) commitFault {
		d := drill.Draw(r.seed, "shake", strconv.Itoa(i), n)
		if d%1000 >= often {
			return ""
		}
		return []commitFault{commitFails, commitLost, commitLanded}[d/1000%3]
	})
}

func (r *removal) instant() job.Instant { return job.InstantOf(time.Now()) }

// put moves a job to a pool, whichever partition that is in.
func (r *removal) put(j *moving) {
	pool := fmt.Sprintf("pool-%d", r.dice.IntN(8))
	spec := job.Spec{Pool: pool, Handler: "h", Overlap: &job.Overlap{Policy: job.OverlapAllow}, Schedules: []job.Schedule{{ID: "main", Spec: schedule.Spec{Every: j.every}}}}
	if !j.steady {
		spec.Disabled = r.dice.IntN(5) == 0
		if r.dice.IntN(5) == 0 {
			spec.Schedules = nil
		}
	}
	var uid job.UID
	for i := range uid {
		uid[i] = byte(r.dice.IntN(256))
	}
	d, _, err := r.st.PutJob(context.Background(), store.PutJob{At: r.instant(), Partition: partition.Of("default", pool, movePartitions),
		Definition: job.Definition{UID: uid, Namespace: "default", Name: j.name, Spec: spec}})
	if err != nil {
		r.t.Error(err)
	}
	if j.uid != d.UID {
		j.uid, j.made = d.UID, d.CreatedAt
	}
}

func (r *removal) people() {
	ctx, j := context.Background(), r.jobs[r.dice.IntN(moveJobs)]
	var err error
	switch n := r.dice.IntN(20); {
	case j.made == 0 || n < 9:
		r.put(j)
	case n < 11:
		p := &job.Pause{At: r.instant()}
		if r.dice.IntN(2) == 0 {
			p.Until = p.At.Add(time.Duration(r.dice.IntN(20)) * time.Second)
		}
		_, _, err = r.st.PauseJob(ctx, store.PauseJob{Namespace: "default", Name: j.name, At: p.At, Pause: p})
	case n < 14:
		_, _, err = r.st.PauseJob(ctx, store.PauseJob{Namespace: "default", Name: j.name, At: r.instant()})
	case n < 18:
		err = r.trigger(j)
	case !j.steady:
		_, err = r.st.DeleteJob(ctx, store.DeleteJob{Namespace: "default", Name: j.name, Deletion: job.Deletion{At: r.instant(), Cancel: r.dice.IntN(2) == 0}})
		j.made = 0
	}
	if err != nil {
		r.t.Error(err)
	}
}

func (r *removal) trigger(j *moving) error {
	now := r.instant()
	id := job.RequestedID(now, [10]byte{1, 8: byte(len(r.asked) >> 8), 9: byte(len(r.asked))})
	got, err := r.st.Trigger(context.Background(), store.Trigger{Namespace: "default", Job: j.name, Execution: id, Request: engine.Request{At: now}},
		func(d job.Definition) int { return partition.Of(d.Namespace, d.Spec.Pool, movePartitions) })
	r.asked[id] = got.Partition
	return err
}

// play lets it all happen for d, then heals everything and waits until the inboxes are empty.
func (r *removal) play(d time.Duration) {
	for i := range moveServers {
		r.begin(i)
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Duration(50+r.dice.IntN(1500)) * time.Millisecond)
		r.people()
		switch i := r.dice.IntN(moveServers); r.dice.IntN(30) {
		case 0, 1:
			r.end(i, r.dice.IntN(3) > 0)
		case 2, 3, 4:
			if r.nodes[i] == nil {
				r.begin(i)
			}
		case 5:
			r.shake(i)
		case 6, 7:
			if m := r.nodes[i]; m != nil {
				m.st.setRule(nil)
			}
		}
	}
	for i, m := range r.nodes {
		if m == nil {
			r.begin(i)
		} else {
			m.st.setRule(nil)
		}
	}
	time.Sleep(time.Minute)
	synctest.Wait()
}

// close ends everything and gives what the database holds.
func (r *removal) close() *drill.History {
	h := &drill.History{Executions: allExecutions(r.t, r.st), End: time.Now()}
	for p := range movePartitions {
		page, err := r.st.InboxPage(context.Background(), p, 100)
		if err != nil || len(page.Entries) > 0 {
			r.t.Errorf("partition %d: %v, entries that nobody takes: %+v", p, err, page.Entries)
		}
		rows, err := r.st.Journal(context.Background(), p, 0, 1<<30)
		if err != nil {
			r.t.Fatal(err)
		}
		events, err := drill.ReadJournal(rows)
		if err != nil {
			r.t.Fatal(err)
		}
		h.Events = append(h.Events, events...)
	}
	r.judge(h)
	for i := range r.nodes {
		r.end(i, false)
	}
	r.wg.Wait()
	if err := r.st.Close(); err != nil {
		r.t.Error(err)
	}
	return h
}

func (r *removal) judge(h *drill.History) {
	t := r.t
	made := map[job.ExecutionID]job.Execution{}
	for _, x := range h.Executions {
		made[x.ID] = x
		if p := partition.Of(x.Namespace, x.Pool, movePartitions); p != x.Partition {
			t.Errorf("execution %s of pool %s is in partition %d", x.ID, x.Pool, x.Partition)
		}
	}
	for id, p := range r.asked {
		if x, there := made[id]; !there || x.Partition != p {
			t.Errorf("request %s went to partition %d and is %+v", id, p, x)
		}
	}
	for _, e := range h.Events {
		if e.Kind == engine.FactSetAside {
			t.Errorf("set aside: %s", e.Note)
		}
	}
	r.fates(made)
	r.forward(h)
}

// fates: every instant of a steady job, from the first that was planned, has one fate (I02).
func (r *removal) fates(made map[job.ExecutionID]job.Execution) {
	for _, j := range r.jobs {
		if !j.steady {
			continue
		}
		row, err := r.st.Job(context.Background(), "default", j.name)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(row.Cursors) != 1 {
			r.t.Errorf("job %s has cursors %+v", j.name, row.Cursors)
			continue
		}
		var decisions []job.Decision
		for after, first := "", true; first || after != ""; first = false {
			rows, next, err := r.st.Decisions(context.Background(), "default", j.name, store.Page{After: after, Limit: 500})
			if err != nil {
				r.t.Fatal(err)
			}
			decisions, after = append(decisions, rows...), next
		}
		begun, c := 0, row.Cursors[0]
		for at := j.made.Add(j.every); at <= r.instant().Add(-2*time.Second) && (c.Held == 0 || at < c.Held); at = at.Add(j.every) {
			fates := 0
			if _, is := made[job.PlannedID(j.uid, at)]; is {
				fates++
			}
			for _, d := range decisions {
				if d.From <= at && at <= d.To {
					fates++
				}
			}
			if begun += fates; begun > 0 && fates != 1 {
				r.t.Errorf("I02: instant %s of %s has %d fates", at, j.name, fates)
			}
		}
		if begun == 0 && c.Held == 0 {
			r.t.Errorf("nothing of %s was planned: %+v", j.name, c)
		}
	}
}

// forward: what a job's partitions planned one after the other rises (I05). They have one clock here.
func (r *removal) forward(h *drill.History) {
	planned := slices.Clone(h.Events)
	slices.SortStableFunc(planned, func(a, b drill.Event) int { return int(a.At - b.At) })
	last, moves := map[string]job.Instant{}, 0
	for _, e := range planned {
		switch e.Kind {
		case engine.FactJobHandedOver:
			moves++
		case engine.FactJobDeleted:
			delete(last, e.Job)
		case engine.FactPlanned:
			if e.PlannedAt <= last[e.Job] || e.Until != 0 && e.Until <= e.PlannedAt {
				r.t.Errorf("I05: %s planned %s after %s", e.Job, e.PlannedAt, last[e.Job])
			}
			last[e.Job] = e.PlannedAt
		}
	}
	if moves < 10 {
		r.t.Errorf("only %d moves", moves)
	}
}

// TestMoves: jobs move between the partitions of three servers that crash. A failing seed is the subtest's name:
// go test ./internal/drill -run Moves -seed N plays it alone.
func TestMoves(t *testing.T) {
	seeds := []uint64{}
	n := max(*manySeeds/2, 1)
	if testing.Short() || raceOn {
		n = min(n, 2)
	}
	for i := range n {
		seeds = append(seeds, uint64(i)+1)
	}
	if *oneSeed >= 0 {
		seeds = []uint64{uint64(*oneSeed)}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRemoval(t, seed)
				r.play(5 * time.Minute)
				sound(t, r.close())
			})
		})
	}
}
