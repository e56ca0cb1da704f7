package api

import (
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/taktsched/takt/internal/job"
)

// guard decides who may ask at all: no web page of another site, no rebound host name, and, when a
// token is set, only its bearer. Health needs no token.
func (s *server) guard(r *http.Request) *job.Error {
	if s.loopbackOnly && !s.knownHost(r.Host) {
		return job.Errorf(job.KindForbidden, "host_not_allowed", "without a token this server answers to loopback names only").
			WithField("header.Host").WithHint("use http://127.0.0.1 or http://localhost, or start the server with --token-file")
	}
	if e := sameOrigin(r); e != nil {
		return e
	}
	if r.URL.Path == pathHealth || r.URL.Path == pathReady {
		return nil
	}
	return s.tokens.check(r)
}

// knownHost tells whether a Host header names this machine's loopback or a listed host.
func (s *server) knownHost(hostport string) bool {
	host := hostport
	if h, port, err := net.SplitHostPort(hostport); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return true
	}
	return strings.EqualFold(host, "localhost") || slices.ContainsFunc(s.hosts, func(h string) bool {
		return strings.EqualFold(h, hostport) || strings.EqualFold(h, host)
	})
}

// sameOrigin refuses what a browser sends on behalf of another site's page.
func sameOrigin(r *http.Request) *job.Error {
	cross := func(field string) *job.Error {
		return job.Errorf(job.KindForbidden, "cross_site", "a page of another site may not use this server").WithField(field).
			WithHint("call it from a program, or from a page of the same host and port")
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return cross("header.Sec-Fetch-Site")
	}
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return cross("header.Origin")
		}
	}
	return nil
}

// single lists the headers that say something to us: each at most once, and not empty.
var single = []string{"Authorization", "Content-Type", "Content-Encoding", "Idempotency-Key", "If-Match", "If-None-Match"}

// target checks path, query and headers as far as every call needs it.
func target(r *http.Request) *job.Error {
	p := r.URL.Path
	if !utf8.ValidString(p) || strings.ContainsRune(p, 0) {
		return job.Errorf(job.KindInvalid, "malformed_path", "the path is not valid UTF-8, or holds NUL").WithField("path").
			WithHint("names in paths are lower-case letters, digits, '.' and '-'")
	}
	// As it was sent: an escaped slash or dot is part of a name, such as an idempotency key, and no step.
	if sent := r.URL.EscapedPath(); p == "" || p[0] != '/' || p != "/" && path.Clean(sent) != sent {
		return unknownPath()
	}
	for _, name := range single {
		v := r.Header.Values(name)
		if len(v) > 1 || len(v) == 1 && strings.TrimSpace(v[0]) == "" {
			return job.Errorf(job.KindInvalid, "bad_header", "the header is there twice, or empty").WithField("header." + name).
				WithHint("send it once with a value, or leave it out")
		}
	}
	return query(r.URL.RawQuery)
}

func query(raw string) *job.Error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return job.Errorf(job.KindInvalid, "malformed_query", "the query is not well formed").WithField("query").
			WithHint("separate parameters by & and escape values by %%")
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if len(values[name]) > 1 {
			return job.Errorf(job.KindInvalid, "doubled_parameter", "the parameter is there twice").WithField("query." + shown(name)).
				WithHint("keep one of them")
		}
		if v := values[name][0]; !utf8.ValidString(v) || strings.ContainsRune(v, 0) || !utf8.ValidString(name) {
			return job.Errorf(job.KindInvalid, "invalid_utf8", "the parameter is not valid UTF-8, or holds NUL").
				WithField("query." + shown(name)).WithHint("send UTF-8, escaped by %%")
		}
	}
	return nil
}

func unknownPath() *job.Error {
	return job.Errorf(job.KindNotFound, "unknown_path", "there is nothing at this path").WithField("path").
		WithHint("the OpenAPI document at /api/v1/openapi.json lists all paths")
}
