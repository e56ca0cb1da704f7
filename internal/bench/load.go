package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/taktsched/takt"
)

// load makes the requests: many at a time as fast as they are taken, or each when it comes due.
type load struct {
	cfg    *Config
	client *takt.Client
	tally  *tally
	job    string
	prefix string // of keys
	pad    string

	mu       sync.Mutex // of those that ask for numbers
	requests int64
}

func newLoad(cfg *Config, client *takt.Client, t *tally, name string) *load {
	return &load{cfg: cfg, client: client, tally: t, job: name, prefix: rand.Text(), pad: strings.Repeat("x", max(cfg.Payload-len(`{"n":123456,"pad":""}`), 0))}
}

// run makes requests until all are made, For is over or one fails.
func (l *load) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from := l.tally.clock()
	make1 := l.saturate
	if l.cfg.Rate > 0 {
		due := make(chan time.Duration, 1<<16)
		go l.pace(ctx, from, due)
		make1 = func(ctx context.Context, _ time.Duration) error { return l.paced(ctx, due) }
	}
	var wg sync.WaitGroup
	for range l.cfg.Clients {
		wg.Go(func() {
			if err := make1(ctx, from); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// number gives up to n numbers, all due at once; fewer or none at the end of the run.
func (l *load) numbers(due []time.Duration) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var got []int64
	for _, at := range due {
		if n := l.tally.asked.Load(); n >= maxExecutions || l.cfg.Executions > 0 && n >= int64(l.cfg.Executions) {
			break
		}
		got = append(got, l.tally.ask(at))
	}
	if len(got) > 0 {
		l.requests++
	}
	return got
}

// saturate keeps the server busy: a full request whenever the backlog has room for it.
func (l *load) saturate(ctx context.Context, from time.Duration) error {
	due := make([]time.Duration, l.cfg.Bulk)
	for l.cfg.For == 0 || l.tally.clock()-from < l.cfg.For {
		if waiting, changed := l.tally.waiting(); waiting+int64(l.cfg.Bulk) > int64(l.cfg.Backlog) {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		now := l.tally.clock()
		for i := range due {
			due[i] = now
		}
		numbers := l.numbers(due)
		if len(numbers) == 0 {
			return nil
		}
		if err := l.ask(ctx, numbers); err != nil {
			return err
		}
	}
	return nil
}

// pace tells when each request comes due, evenly, and then closes due.
func (l *load) pace(ctx context.Context, from time.Duration, due chan<- time.Duration) {
	defer close(due)
	each := time.Duration(float64(time.Second) / l.cfg.Rate)
	for n := 0; l.cfg.Executions == 0 || n < l.cfg.Executions; n++ {
		at := from + time.Duration(n)*each
		if l.cfg.For > 0 && at-from >= l.cfg.For {
			return
		}
		if wait := at - l.tally.clock(); wait > 0 {
			time.Sleep(wait)
		}
		select {
		case due <- at:
		case <-ctx.Done():
			return
		}
	}
}

// paced sends what is due; what has come due meanwhile goes along, up to Bulk.
func (l *load) paced(ctx context.Context, due <-chan time.Duration) error {
	for at := range due {
		all := []time.Duration{at}
		for more := true; more && len(all) < l.cfg.Bulk; {
			select {
			case at, ok := <-due:
				if more = ok; ok {
					all = append(all, at)
				}
			default:
				more = false
			}
		}
		if err := l.ask(ctx, l.numbers(all)); err != nil {
			return err
		}
	}
	return nil
}

// ask makes one request: a list, or of one execution a trigger.
func (l *load) ask(ctx context.Context, numbers []int64) error {
	items := make([]takt.TriggerItem, len(numbers))
	for i, n := range numbers {
		items[i] = takt.TriggerItem{Job: l.job, Params: []byte(`{"n":` + strconv.FormatInt(n, 10) + `,"pad":"` + l.pad + `"}`)}
		if l.cfg.Keys {
			items[i].Key = l.prefix + "-" + strconv.FormatInt(n, 10)
		}
	}
	made, err := l.client.TriggerMany(ctx, items)
	if err == nil && len(made.Items) != len(items) {
		err = fmt.Errorf("the server answered %d executions for %d requests", len(made.Items), len(items))
	}
	return err
}

// numberIn reads the number of an execution out of its parameters; false when it is not one of ask's.
func numberIn(params []byte) (int64, bool) {
	rest, ok := strings.CutPrefix(string(params[:min(len(params), 32)]), `{"n":`)
	digits, _, found := strings.Cut(rest, ",")
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, ok && found && err == nil
}
