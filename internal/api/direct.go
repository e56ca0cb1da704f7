package api

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// registerDirect is register for calls that come for each single execution: huma's part in one, which reads a body of people's twice,
// costs as much as the rest of it. fill decodes a body and tells whether the call is surely in order: before the body is checked what is
// read by hand, whose form leaves nothing to check, then what strictJSON has let pass. The rest goes through huma, which says what is wrong
// with it. Description and errors are huma's for all.
func registerDirect[I, O any](s *server, op huma.Operation, in intake, use func(context.Context, *I) (*answer[O], error),
	fill func(r *http.Request, body []byte, checked bool, i *I) bool,
) {
	in.direct = func(w http.ResponseWriter, r *http.Request, body []byte, checked bool) bool {
		var i I
		if r.URL.RawQuery != "" || !takesJSON(r.Header.Values("Accept")) || !fill(r, body, checked, &i) {
			return false
		}
		out, err := guarded(r.Context(), s, in, &i, use)
		if err != nil {
			s.refuse(w, r, err)
			return true
		}
		s.write(w, r, &out.Body)
		return true
	}
	register(s, op, in, use)
}

// takesJSON tells whether a caller says that it takes JSON, in the words of almost all of them, or says nothing.
func takesJSON(accept []string) bool {
	return len(accept) == 0 || len(accept) == 1 && (accept[0] == "application/json" || accept[0] == "*/*")
}

// write answers 200 with v.
func (s *server) write(w http.ResponseWriter, r *http.Request, v any) {
	text, quick := answerText(v)
	if !quick {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			s.refuse(w, r, err)
			return
		}
		text = b.Bytes()
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(text); err != nil {
		s.logger.LogAttrs(r.Context(), slog.LevelDebug, "the answer did not reach the caller; it will ask again",
			slog.String("request", requestID(r.Context())), slog.Any("cause", err))
	}
}

// fillBody decodes a worker's call, whose checks are its own: by hand before it is checked, else by encoding/json.
func fillBody[T any](in []byte, checked bool, i *body[T], read func([]byte, *T) bool) bool {
	if !checked {
		return read(in, &i.Body)
	}
	return json.Unmarshal(in, &i.Body) == nil
}

// isName tells whether s is a name of the form ^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$.
func isName(s string) bool {
	if s == "" || len(s) > 63 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alnum && (c != '.' && c != '-' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return true
}

// isKey tells whether s is an idempotency key, or none.
func isKey(s string) bool {
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= 128
}
