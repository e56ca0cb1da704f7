package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// The database tells of a doubled key in its own language.
func TestInHistory(t *testing.T) {
	const id = "01a22f30-5cde-8348-956d-044029b5044f"
	tests := []struct {
		what string
		err  pgconn.PgError
		id   string
		is   bool
	}{
		{"in English", pgconn.PgError{Code: "23505", TableName: "history_executions_2026_12", Detail: "Key (id)=(" + id + ") already exists."}, id, true},
		{"in German", pgconn.PgError{Code: "23505", TableName: "history_executions_past", Detail: "Schlüssel »(id)=(" + id + ")« existiert bereits."}, id, true},
		{"without a detail", pgconn.PgError{Code: "23505", TableName: "history_executions_2026_12"}, "", true},
		{"of shards", pgconn.PgError{Code: "23505", TableName: "history_shards_2026_12", Detail: "Key (execution, idx)=(" + id + ", 0) already exists."}, "", false},
		{"no month", pgconn.PgError{Code: "23514", TableName: "history_executions"}, "", false},
	}
	for _, tt := range tests {
		if got, is := inHistory(&tt.err); got != tt.id || is != tt.is {
			t.Errorf("%s: %q, %v", tt.what, got, is)
		}
	}
}
