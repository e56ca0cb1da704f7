package drill

import (
	"net"
	"slices"
)

// way is the direction from a name to another one.
type way struct{ from, to string }

// Mute lets nothing come back to from of what it asks to, or ends that: on open connections requests arrive and their
// answers are lost, new ones are not made. What to asks from is not touched: of a network that is cut one way, only one
// side knows. Connections that lost something break when it ends.
func (n *Network) Mute(from, to string, mute bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := way{from, to}
	was := n.mute[w]
	switch {
	case mute && was == nil:
		n.mute[w] = make(chan struct{})
		for _, h := range n.open[w] {
			h.lose()
		}
	case !mute && was != nil:
		close(was)
		delete(n.mute, w)
		for _, h := range n.open[w] {
			h.mu.Lock()
			h.closed = h.closed || h.lossy
			h.cond.Broadcast()
			h.mu.Unlock()
		}
	}
}

func (h *half) lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lossy = true
}

// note remembers a connection that from opened, and forgets those that are over.
func (n *Network) note(w way, client net.Conn) {
	in := client.(*conn).in //nolint:forcetypeassert // made by Pipe
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[w] = slices.DeleteFunc(n.open[w], func(h *half) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.closed || h.broken
	})
	n.open[w] = append(n.open[w], in)
}
