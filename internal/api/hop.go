package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/peer"
)

// hop is what a call says that another server sent. A call that is marked as one without the right key is an
// ordinary call for every check, but is not passed on again either: two servers that know each other's key no longer
// would pass it to and fro.
type hop struct {
	trusted bool      // it showed our key, for a role that may make this call
	epoch   job.Epoch // of the owner, as the sender knows it
	request string    // the sender's id of the request
}

type hopKey struct{}

// hopOf reads the marks of another server's call; false when there are none.
func (s *server) hopOf(r *http.Request) (hop, bool) {
	marks := r.Header.Values(peer.HeaderEpoch)
	if len(marks) == 0 {
		return hop{}, false
	}
	if !s.shows(r.Header.Get(peer.HeaderKey)) {
		return hop{}, true
	}
	epoch, err := strconv.ParseInt(marks[0], 10, 64)
	role, path := r.Header.Get(peer.HeaderRole), r.URL.Path
	trusted := err == nil && epoch >= 0 && (role == peer.RoleWorker && strings.HasPrefix(path, pathWorker) ||
		role == peer.RoleServer && strings.HasPrefix(path, peer.Path))
	if !trusted {
		return hop{}, true
	}
	h := hop{trusted: true, epoch: job.Epoch(epoch)}
	if id := r.Header.Get(peer.HeaderRequest); len(id) <= 64 {
		h.request = id
	}
	return h, true
}

// shows tells whether a key is ours, in a time that does not depend on it.
func (s *server) shows(key string) bool {
	given, own := sha256.Sum256([]byte(key)), sha256.Sum256(s.peerKey)
	return subtle.ConstantTimeCompare(given[:], own[:]) == 1 && len(s.peerKey) > 0
}

// hopEpoch is the epoch under which another server thinks that we own the partition; 0: no server sent the call.
func hopEpoch(ctx context.Context) job.Epoch {
	h, _ := ctx.Value(hopKey{}).(hop)
	return h.epoch
}

// passOn hands a worker's call to the server that owns its partition, as it is, and gives back what that one says.
// It is false when the call is to be answered here: because the partition is ours, or nobody's.
func (s *server) passOn(w http.ResponseWriter, r *http.Request, in intake, body []byte) bool {
	if s.peers == nil {
		return false
	}
	p, ok := s.partitionFor(r, body)
	if !ok {
		return false
	}
	if r.Context().Value(hopKey{}) != nil {
		s.peers.AwaitHere(r.Context(), p, body)
		return false
	}
	c := peer.Call{Path: r.URL.Path, Body: body, Header: r.Header, Request: requestID(r.Context()), Wait: callTimeout, Hangs: in.hangs}
	if in.hangs {
		c.Wait += s.limits.PollMax
	}
	a, passed, err := s.peers.Pass(r.Context(), p, c)
	if !passed {
		return false
	}
	if err != nil {
		s.refuse(w, r, err)
		return true
	}
	for _, name := range []string{"Content-Type", takt.EpochHeader, "Retry-After"} {
		if v := a.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(a.Status)
	if _, err := w.Write(a.Body); err != nil {
		s.logger.DebugContext(r.Context(), "the answer did not reach the caller; it will ask again", "request", requestID(r.Context()), "cause", err)
	}
	return true
}

// partitionFor finds the partition of a worker's call: by the header that says it, else by a look at the few fields
// that matter. What the call says is judged by the owner; a header that lies leads to no owner. False: it does not say.
func (s *server) partitionFor(r *http.Request, body []byte) (int, bool) {
	session, pool := r.Header.Get(takt.SessionHeader), r.Header.Get(takt.PoolHeader)
	opens := r.URL.Path == pathWorker+"open"
	var said struct{ Session, Namespace, Pool string }
	if ns, name, ok := strings.Cut(pool, "/"); ok && opens {
		said.Namespace, said.Pool = ns, name
	} else if session == "" || opens {
		if err := json.Unmarshal(body, &said); err != nil {
			return 0, false
		}
		session = said.Session
	}
	n := s.owners.Count()
	if opens {
		return partition.Of(said.Namespace, said.Pool, n), said.Pool != ""
	}
	p, ok := job.SessionID(session).Partition()
	return p, ok && p < n
}
