package api

import (
	"net/http"
	"time"
)

const (
	// bodyTimeout bounds the coming of a body, of a refused request too: net/http reads on to its end
	// before the answer is sent.
	bodyTimeout = 10 * time.Second
	// writeTimeout bounds the writing of an answer, from its first byte: a poll may hang before.
	writeTimeout = 30 * time.Second
	// peopleTimeout bounds what a call of people's waits for the database; setTimeout that of many objects at once.
	peopleTimeout = 10 * time.Second
	setTimeout    = time.Minute
)

// bound sets the deadlines of a request that begins. A connection without deadlines (an in-memory
// recorder) has no slow client either.
func bound(w http.ResponseWriter, r *http.Request) *http.ResponseController {
	conn := http.NewResponseController(w)
	if r.ContentLength != 0 {
		_ = conn.SetReadDeadline(time.Now().Add(bodyTimeout))
	}
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // of "100 Continue"; that of the last answer may be over
	return conn
}

// lift ends the time for a body that is there: a poll hangs longer, and net/http would take the
// deadline for a gone client.
func lift(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}

// watched remembers the status of an answer, and bounds its writing.
type watched struct {
	http.ResponseWriter
	conn   *http.ResponseController
	status int
}

// WriteHeader notes the first status.
func (w *watched) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write implies 200.
func (w *watched) Write(b []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

func (w *watched) begin(status int) {
	if w.status == 0 {
		w.status = status
		_ = w.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
