package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/postgres"
	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// cutCall is a call that writes, and what tells how often it has.
type cutCall struct {
	name  string
	call  func(ctx context.Context) error
	wrote func() int64
}

// TestCutAnywhere: wherever the connection breaks amid a call, what the call says of it is so: done is there, refused is not and never
// will be, and nothing is there twice.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t)
	dsn := c.Database(t)
	name := pgtest.Name(dsn)
	p := newProxy(t, c.HostPort())
	s := openAt(t, postgres.Config{DSN: through(p, dsn, c), Partitions: 3, Name: "cut", OwnerTTL: time.Minute})
	direct := openAt(t, postgres.Config{DSN: dsn, Name: "direct"})
	for _, x := range cutCalls(t, s, direct) {
		for answers, step := range map[bool]int{true: 61, false: 211} {
			unknown, refused, done, n := 0, 0, 0, 0
			for over := false; !over; n += step {
				for well := 0; well < 4; well++ { // connections are there, and know the statements
					if err := x.call(t.Context()); err != nil {
						well = 0 // it met one that was cut
					}
				}
				before := x.wrote()
				p.cutAfter(n, answers)
				err := x.call(t.Context())
				over = !p.cutAlready()
				p.cut()
				for alive := int64(1); alive > 0; {
					var wrong error
					if alive, wrong = c.Exec(`SELECT 1 FROM pg_stat_activity WHERE datname = $1 AND application_name LIKE 'cut %'`, name); wrong != nil {
						t.Fatal(wrong)
					}
				}
				times := x.wrote() - before
				switch kind := job.KindOf(err); {
				case times < 0 || times > 1:
					t.Errorf("%s, cut after %d bytes (of answers: %t): %v, and it is there %d times", x.name, n, answers, err, times)
				case err == nil && times == 1:
					done++
				case kind == job.KindUnknown:
					unknown++
				case kind == job.KindUnavailable && times == 0:
					refused++
				default:
					t.Errorf("%s, cut after %d bytes (of answers: %t): %v, and it is there %d times", x.name, n, answers, err, times)
				}
			}
			t.Logf("%s, up to %d bytes (of answers: %t): %d done, %d refused, %d unknown", x.name, n, answers, done, refused, unknown)
		}
	}
}

func cutCalls(t *testing.T, s, direct *postgres.Store) []cutCall {
	count := func(text string) func() int64 {
		return func() (n int64) {
			if _, err := fmt.Sscan(postgres.Text(context.Background(), t, direct, text), &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	putOne(t, direct)
	rows, err := direct.PartitionRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var fences []store.Fence
	for i := range rows {
		got, err := direct.AcquirePartition(t.Context(), rows[i], "me", 1, engine.Level)
		if err != nil {
			t.Fatal(err)
		}
		fences = append(fences, got.Fence)
	}
	asked := uint16(0)
	one := func() store.Trigger {
		asked++
		return store.Trigger{Namespace: "ns", Job: "j", Execution: job.RequestedID(noon, [10]byte{9, byte(asked >> 8), byte(asked)})}
	}
	seq := count(`SELECT seq::text FROM partitions WHERE id = 0`)
	inbox := count(`SELECT count(*)::text FROM inbox WHERE kind = 'trigger'`)
	return []cutCall{
		{"commit", func(ctx context.Context) error {
			fences[0].Seq = seq()
			return s.Commit(ctx, fences[0], grants(fences[0], 9, int(20*fences[0].Seq)))
		}, seq},
		{"request of a known job", func(ctx context.Context) error { _, err := s.Trigger(ctx, one(), toFirst); return err }, inbox},
		{"request with a key", func(ctx context.Context) error {
			x := one()
			x.Key = store.RequestKey{Namespace: "ns", Operation: "o", Key: fmt.Sprint(asked), Hash: "h"}
			_, err := s.Trigger(ctx, x, toFirst)
			return err
		}, inbox},
		{"edit", func(ctx context.Context) error {
			_, _, err := s.PutJob(ctx, put("edited", fmt.Sprint("h", time.Now().UnixNano()), 7, 0))
			return err
		}, count(`SELECT coalesce((SELECT revision FROM jobs WHERE name = 'edited'), 0)::text`)},
		{"beat", func(ctx context.Context) error {
			_, err := s.PutServer(ctx, store.Server{Incarnation: "i", Name: "n", Address: "a", Key: "k", Build: "b"})
			return err
		}, count(`SELECT coalesce((SELECT beat FROM servers), 0)::text`)},
		{"renewal", func(ctx context.Context) error { _, err := s.RenewPartition(ctx, fences[1]); return err },
			count(`SELECT beat::text FROM partition_beats WHERE id = 1`)},
		{"take-over", func(ctx context.Context) error {
			rows, err := direct.PartitionRows(ctx)
			if err == nil {
				_, err = s.AcquirePartition(ctx, rows[2], "me", 1, engine.Level)
			}
			return err
		}, count(`SELECT (epoch - 1)::text FROM partitions WHERE id = 2`)},
	}
}
