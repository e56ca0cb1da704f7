package api

import (
	"net/http"

	"github.com/taktsched/takt/internal/job"
)

// unrouted tells why the mux has no operation for a request: its own answer (404, or 405 with Allow) is
// taken apart and becomes a problem.
func unrouted(w http.ResponseWriter, r *http.Request, mux http.Handler) *job.Error {
	probe := probe{header: http.Header{}}
	mux.ServeHTTP(&probe, r)
	if probe.status != http.StatusMethodNotAllowed {
		return unknownPath()
	}
	allow := probe.header.Get("Allow")
	w.Header().Set("Allow", allow)
	return job.Errorf(job.KindInvalid, "method_not_allowed", "this path does not take the method").WithField("method").
		WithHint("it takes %s", allow)
}

// probe takes an answer without sending it.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }

func panicError() error {
	return job.Errorf(job.KindInternal, "internal", "a handler panicked")
}
