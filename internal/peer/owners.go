package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
)

// Look asks what an owner's memory knows. Servers of two builds understand each other: unknown fields are ignored.
type Look struct {
	Partition int
	Query     engine.InspectQuery
}

// Looked is the answer. The rows of an execution are left out: they are in the database.
type Looked struct {
	Epoch     job.Epoch
	Inspected engine.Inspected
}

// Owners are the partitions of all servers: looks go to the owner wherever it is, and a wake to another server is a
// hint. Other calls are answered here, for they reach the owner undecoded (Peers.Forward).
type Owners struct {
	partition.Owners
	peers *Peers
	hints *Hinter // nil: the inbox of other servers is found by their polling
}

// Everywhere joins the partitions of this server with those of the others. hints may be nil.
func Everywhere(here partition.Owners, peers *Peers, hints *Hinter) *Owners {
	return &Owners{Owners: here, peers: peers, hints: hints}
}

// Call implements partition.Owners.
func (o *Owners) Call(ctx context.Context, p int, seen job.Epoch, ev engine.Event) (partition.Reply, error) {
	look, isLook := ev.(engine.Inspect)
	if !isLook {
		return o.Owners.Call(ctx, p, seen, ev)
	}
	to, elsewhere := o.peers.Elsewhere(p)
	if !elsewhere {
		return o.Owners.Call(ctx, p, seen, ev)
	}
	var out Looked
	if err := o.peers.ask(ctx, to, PathInspect, Look{Partition: p, Query: look.Query}, &out); err != nil {
		return partition.Reply{}, away(to, err)
	}
	return partition.Reply{Value: &out.Inspected, Epoch: out.Epoch}, nil
}

// Wake implements partition.Owners.
func (o *Owners) Wake(p int) {
	o.Owners.Wake(p)
	if o.hints == nil {
		return
	}
	if _, elsewhere := o.peers.Elsewhere(p); elsewhere {
		o.hints.hint(p)
	}
}

// Stats asks a server for what it counts, into out (JSON).
func (p *Peers) Stats(ctx context.Context, s store.Server, out any) error {
	return p.ask(ctx, Target{Server: s}, PathStats, nil, out)
}

// ask makes a call of this server for itself.
func (p *Peers) ask(ctx context.Context, to Target, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	a, err := p.send(ctx, p.calls, RoleServer, to, Call{Path: path, Body: body, Header: http.Header{"Content-Type": {"application/json"}}})
	switch {
	case err != nil:
		return err
	case a.Status != http.StatusOK:
		return fmt.Errorf("answered %d", a.Status)
	}
	return json.Unmarshal(a.Body, out)
}

// Serve answers a Look at a partition that is owned here.
func Serve(ctx context.Context, here partition.Owners, seen job.Epoch, l Look) (Looked, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	reply, err := here.Call(ctx, l.Partition, seen, engine.Inspect{Query: l.Query})
	if err != nil {
		return Looked{}, err
	}
	v, ok := reply.Value.(*engine.Inspected)
	if !ok {
		return Looked{}, job.Errorf(job.KindInternal, "bad_answer", "the owner of partition %d answered %T to a look", l.Partition, reply.Value)
	}
	out := Looked{Epoch: reply.Epoch, Inspected: *v}
	if x := v.Execution; x != nil {
		out.Inspected.Execution = &engine.ExecutionView{Waits: x.Waits, Left: x.Left}
	}
	return out, nil
}

const (
	hintPause   = 5 * time.Millisecond // what comes meanwhile is one hint
	hintTimeout = time.Second
)

// Hinter sends hints to the owners of other servers, never in anybody's transaction, and hears theirs. Hints may be
// lost: the inbox is read each half second whatever happens (R11).
type Hinter struct {
	store  store.Hints
	wanted chan int
}

// NewHinter makes a Hinter.
func NewHinter(s store.Hints) *Hinter { return &Hinter{store: s, wanted: make(chan int, 64)} }

// hint asks for a hint; when many wait already it is lost.
func (h *Hinter) hint(p int) {
	select {
	case h.wanted <- p:
	default:
	}
}

// Run sends until ctx ends.
func (h *Hinter) Run(ctx context.Context) {
	for {
		var first int
		select {
		case <-ctx.Done():
			return
		case first = <-h.wanted:
		}
		due := map[int]bool{first: true}
		timer := time.NewTimer(hintPause)
		for open := true; open; {
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case p := <-h.wanted:
				due[p] = true
			case <-timer.C:
				open = false
			}
		}
		for p := range due {
			h.send(ctx, p)
		}
	}
}

// send sends one hint. A failure is silent: the database's trouble is told by whoever needs it, and the owner polls.
func (h *Hinter) send(ctx context.Context, p int) {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	_ = h.store.Hint(ctx, p)
}
