package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/taktsched/takt/internal/job"
)

// tokens are the sums of the bearer tokens: equal lengths, so that comparing them takes equal time.
type tokens struct {
	asked   bool // there are tokens at all
	apart   bool // people and workers have one each
	people  [sha256.Size]byte
	workers [sha256.Size]byte
}

func newTokens(people, workers string) tokens {
	t := tokens{asked: people != "", apart: workers != "" && workers != people}
	if workers == "" {
		workers = people
	}
	t.people, t.workers = sha256.Sum256([]byte(people)), sha256.Sum256([]byte(workers))
	return t
}

// check refuses a request that does not bear the token its path asks for. Both tokens may read the OpenAPI document.
func (t *tokens) check(r *http.Request) *job.Error {
	if !t.asked {
		return nil
	}
	given := r.Header.Get("Authorization")
	if given == "" {
		return job.Errorf(job.KindUnauthorized, "token_required", "this server asks for a token").WithField("header.Authorization").
			WithHint("send Authorization: Bearer TOKEN; the CLI takes --token-file")
	}
	scheme, token, _ := strings.Cut(given, " ")
	sum := sha256.Sum256([]byte(token))
	// Both are compared always, so that the time tells nothing of which one it was.
	people := subtle.ConstantTimeCompare(sum[:], t.people[:]) == 1
	workers := subtle.ConstantTimeCompare(sum[:], t.workers[:]) == 1
	if !strings.EqualFold(scheme, "Bearer") || !people && !workers {
		return job.Errorf(job.KindUnauthorized, "token_wrong", "this is not the server's token").WithField("header.Authorization").
			WithHint("send Authorization: Bearer TOKEN with the token of --token-file")
	}
	work := strings.HasPrefix(r.URL.Path, pathWorker)
	switch {
	case work && workers, !work && people, r.URL.Path == pathOpenAPI:
		return nil
	case work:
		return job.Errorf(job.KindForbidden, "token_of_people", "this is people's token, and the call is a worker's").
			WithField("header.Authorization").WithHint("give the worker the token of the server's --worker-token-file")
	}
	return job.Errorf(job.KindForbidden, "token_of_workers", "this is the workers' token, and the call is for people").
		WithField("header.Authorization").WithHint("use the token of the server's --token-file")
}
