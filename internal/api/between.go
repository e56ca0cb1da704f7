package api

import (
	"encoding/json"
	"net/http"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/peer"
)

// between serves what servers ask each other. It is no part of the public document: to who does not show the key of this
// server, there is nothing.
func (s *server) between() {
	s.mux.HandleFunc("POST "+peer.PathInspect, s.ofServers(s.peerInspect))
	s.mux.HandleFunc("POST "+peer.PathStats, s.ofServers(func(*http.Request) (any, error) { return s.ofItself(), nil }))
	s.mux.HandleFunc("POST "+peer.PathPing, s.ofServers(func(*http.Request) (any, error) { return struct{}{}, nil }))
}

// ofServers answers servers alone.
func (s *server) ofServers(use func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if h, _ := r.Context().Value(hopKey{}).(hop); !h.trusted {
			s.refuse(w, r, unknownPath())
			return
		}
		v, err := use(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			s.logger.DebugContext(r.Context(), "the answer did not reach the other server; it will ask again", "request", requestID(r.Context()), "cause", err)
		}
	}
}

func (s *server) peerInspect(r *http.Request) (any, error) {
	var look peer.Look
	body := http.MaxBytesReader(nil, r.Body, s.limits.Body)
	if err := json.NewDecoder(body).Decode(&look); err != nil {
		return nil, job.Errorf(job.KindInvalid, "malformed_json", "this is no look").WithCause(err)
	}
	if look.Partition < 0 || look.Partition >= s.owners.Count() {
		return nil, job.Errorf(job.KindNotFound, "partition_unknown", "there is no partition %d", look.Partition)
	}
	return peer.Serve(r.Context(), s.owners, hopEpoch(r.Context()), look)
}
