package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/taktsched/takt/internal/job"
)

const (
	pathBackup    = "/api/v1/backup"
	backupTimeout = time.Hour // for the copy of a large database
	backupRate    = 64 << 10  // bytes of it that a reader must take in a second, an hour aside: the copy fills the disk until then
)

func (s *server) backups() {
	register(s, huma.Operation{OperationID: "getBackup", Method: http.MethodGet, Path: pathBackup, Tags: []string{"server"},
		Summary:     "Download the whole database as it is at one instant",
		Description: "The content is a SQLite file with everything that the server knows, of all namespaces. `takt restore` makes a data directory of it.",
		Responses: map[string]*huma.Response{"200": {Description: "The file.",
			Content: map[string]*huma.MediaType{"application/vnd.sqlite3": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}},
	}, intake{patience: backupTimeout}, s.getBackup)
}

func (s *server) getBackup(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
	if s.backup == nil {
		return nil, job.Errorf(job.KindConflict, "no_backup", "this server has no database file of its own").
			WithHint("back up PostgreSQL with its own tools, pg_dump or continuous archiving; docs/OPERATIONS.md says how")
	}
	file, size, err := s.backup(ctx)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "application/vnd.sqlite3")
		hc.SetHeader("Content-Length", strconv.FormatInt(size, 10))
		hc.SetStatus(http.StatusOK)
		err := copyRenewing(hc.BodyWriter(), file, time.Now().Add(backupTimeout+time.Duration(size/backupRate)*time.Second))
		if e := file.Close(); err == nil {
			err = e
		}
		if err != nil {
			s.logger.Warn("a backup was not read to its end; its reader sees that by the length", "request", requestID(ctx), "err", err)
		}
	}}, nil
}

// copyRenewing gives each piece, not the whole, the time of an answer: a database may be large and its reader slow. A reader
// that takes bytes for ever is left at the end.
func copyRenewing(to io.Writer, from io.Reader, end time.Time) error {
	w, ok := to.(http.ResponseWriter)
	if !ok {
		_, err := io.Copy(to, from)
		return err
	}
	conn, piece := http.NewResponseController(w), make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			deadline := time.Now().Add(writeTimeout)
			if deadline.After(end) {
				deadline = end
			}
			_ = conn.SetWriteDeadline(deadline) // see bound
			if _, err := w.Write(piece[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // of what net/http still holds
	return nil
}
