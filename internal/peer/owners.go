package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

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

// Owners are the partitions of all servers: looks go to the owner wherever it is. Other calls are answered here, for
// they reach the owner undecoded (Peers.Forward).
type Owners struct {
	partition.Owners
	peers *Peers
}

// Everywhere joins the partitions of this server with those of the others.
func Everywhere(here partition.Owners, peers *Peers) *Owners {
	return &Owners{Owners: here, peers: peers}
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
