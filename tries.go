package takt

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// tries are the newest errors of the servers that a call was sent to, the last one asked last.
type tries []try

type try struct {
	server string
	err    error
}

func (all *tries) add(server string, err error) {
	*all = append(slices.DeleteFunc(*all, func(t try) bool { return t.server == server }), try{server, err})
}

// withOthers adds to the error that a call ends with what the other servers said: the one that was asked last may be the least to blame.
func (all *tries) withOthers(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || len(*all) < 2 || !errors.Is(err, ErrUnavailable) {
		return err
	}
	var said []string
	for _, t := range (*all)[:len(*all)-1] {
		host := t.server
		if u, bad := url.Parse(t.server); bad == nil {
			host = u.Host // an address may hold a password
		}
		text := t.err.Error()
		if o, ours := errors.AsType[*Error](t.err); ours {
			text = strings.TrimPrefix(text, "takt: "+o.Op+": ")
		}
		said = append(said, host+": "+text)
	}
	told := *e
	told.err = &othersError{cause: e.err, others: strings.Join(said, "; ")}
	return &told
}

// othersError is the cause of an Error, with what other servers said.
type othersError struct {
	cause  error // nil: the server answered
	others string
}

func (o *othersError) Error() string {
	if o.cause == nil {
		return "the others that were asked: " + o.others
	}
	return o.cause.Error() + "; the others that were asked: " + o.others
}

// Unwrap gives the cause.
func (o *othersError) Unwrap() error { return o.cause }
