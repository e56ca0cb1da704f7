package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt/internal/job"
)

const pingTimeout = 2 * time.Second

// text is a plain answer.
type text struct {
	ContentType string `header:"Content-Type" hidden:"true"`
	Body        []byte
}

func plain(s string) *text {
	return &text{ContentType: "text/plain; charset=utf-8", Body: []byte(s + "\n")}
}

func plainResponse() map[string]*huma.Response {
	return map[string]*huma.Response{"200": {Description: "It is.",
		Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}}
}

func (s *server) health() {
	tags := []string{"health"}
	register(s, huma.Operation{OperationID: "healthz", Method: http.MethodGet, Path: pathHealth, Tags: tags, Summary: "Whether the process lives",
		Responses: plainResponse()}, intake{}, func(context.Context, *struct{}) (*text, error) { return plain("ok"), nil })
	register(s, huma.Operation{OperationID: "readyz", Method: http.MethodGet, Path: pathReady, Tags: tags,
		Summary:     "Whether calls can be served",
		Description: "The store answers, every partition has its owner here, and the server is not stopping.",
		Responses:   plainResponse()}, intake{}, s.ready)
}

func (s *server) ready(ctx context.Context, _ *struct{}) (*text, error) {
	if s.stopping() {
		return nil, job.Errorf(job.KindUnavailable, "stopping", "the server is stopping").WithHint("ask another server")
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := s.store.Ping(ctx); err != nil {
		return nil, job.Errorf(job.KindUnavailable, "store_unavailable", "the store does not answer").
			WithHint("look into the server's log; it goes on by itself when the store is back").WithCause(err)
	}
	owned := 0
	for _, p := range s.owners.Stats() {
		if p.Owned {
			owned++
		}
	}
	if n := s.owners.Count(); owned < n {
		return nil, job.Errorf(job.KindNoOwner, "partitions_not_owned", "%d of %d partitions have their owner here", owned, n).
			WithHint("right after a start this takes a moment")
	}
	return plain("ready"), nil
}
