package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taktsched/takt"
)

// load makes the requests: many at a time as fast as they are taken, or each when it comes due.
type load struct {
	cfg    *Config
	client *takt.Client
	tally  *tally
	jobs   []string // asked for in turn
	prefix string   // of keys
	pad    string

	mu       sync.Mutex // of those that ask for numbers
	requests int64
	turn     atomic.Uint64
}

func newLoad(cfg *Config, client *takt.Client, t *tally, jobs []string) *load {
	return &load{cfg: cfg, client: client, tally: t, jobs: jobs, prefix: rand.Text(), pad: strings.Repeat("x", max(cfg.Payload-len(`{"n":123456,"pad":""}`), 0))}
}

// asking makes one request for executions with these numbers.
type asking func(ctx context.Context, numbers []int64) error

// run makes requests until all are made, For is over or one fails.
func (l *load) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from := l.tally.clock()
	make1 := func(ctx context.Context, ask asking) error { return l.saturate(ctx, from, ask) }
	if l.cfg.Rate > 0 {
		due := make(chan time.Duration, 1<<16)
		go l.pace(ctx, from, due)
		make1 = func(ctx context.Context, ask asking) error { return l.paced(ctx, due, ask) }
	}
	var wg sync.WaitGroup
	for range l.cfg.Clients {
		wg.Go(func() {
			ask, end := l.asker()
			defer end()
			if err := make1(ctx, ask); err != nil {
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
func (l *load) saturate(ctx context.Context, from time.Duration, ask asking) error {
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
		if err := ask(ctx, numbers); err != nil {
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
func (l *load) paced(ctx context.Context, due <-chan time.Duration, ask asking) error {
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
		if err := ask(ctx, l.numbers(all)); err != nil {
			return err
		}
	}
	return nil
}

// next is the job that a request asks for: one for all that it asks for.
func (l *load) next() string { return l.jobs[l.turn.Add(1)%uint64(len(l.jobs))] }

// asker makes the requests of one client; end is called behind the last.
func (l *load) asker() (ask asking, end func()) {
	at := newLine(l.cfg.Server, l.cfg.Namespace, l.cfg.Token)
	if at == nil {
		return l.ask, func() {}
	}
	var body []byte
	return func(ctx context.Context, numbers []int64) error {
		if len(numbers) == 0 {
			return nil
		}
		body = l.appendBody(body[:0], numbers)
		made, err := at.ask(ctx, body)
		if err != nil {
			return fmt.Errorf("ask for executions: %w", err)
		}
		return l.all(made, numbers)
	}, at.close
}

// ask makes one request by the client of everybody.
func (l *load) ask(ctx context.Context, numbers []int64) error {
	items, name := make([]takt.TriggerItem, len(numbers)), l.next()
	for i, n := range numbers {
		items[i] = takt.TriggerItem{Job: name, Params: l.appendParams(nil, n)}
		if l.cfg.Keys {
			items[i].Key = l.key(n)
		}
	}
	made, err := l.client.TriggerMany(ctx, items)
	if err != nil {
		return err
	}
	return l.all(len(made.Items), numbers)
}

func (l *load) all(made int, numbers []int64) error {
	if made != len(numbers) {
		return fmt.Errorf("the server answered %d executions for %d requests", made, len(numbers))
	}
	return nil
}

func (l *load) key(n int64) string { return l.prefix + "-" + strconv.FormatInt(n, 10) }

func (l *load) appendParams(b []byte, n int64) []byte {
	b = strconv.AppendInt(append(b, `{"n":`...), n, 10)
	return append(append(append(b, `,"pad":"`...), l.pad...), `"}`...)
}

// appendBody writes a takt.TriggerManyRequest. Names and keys of the load need no escapes.
func (l *load) appendBody(b []byte, numbers []int64) []byte {
	name := l.next()
	b = append(b, `{"items":[`...)
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"job":"`...), name...), '"')
		if l.cfg.Keys {
			b = append(append(append(b, `,"key":"`...), l.key(n)...), '"')
		}
		b = append(l.appendParams(append(b, `,"params":`...), n), '}')
	}
	return append(b, "]}"...)
}

// numberIn reads the number of an execution out of its parameters; false when it is not one of ask's.
func numberIn(params []byte) (int64, bool) {
	rest, ok := strings.CutPrefix(string(params[:min(len(params), 32)]), `{"n":`)
	digits, _, found := strings.Cut(rest, ",")
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, ok && found && err == nil
}
