package sqlite

import "context"

// Spoil runs SQL on the store's file.
func (s *Store) Spoil(ctx context.Context, text string) error {
	return s.write(ctx, rankPeople, "spoil", func(w *link) error {
		_, err := w.conn.ExecContext(ctx, text)
		return err
	})
}
