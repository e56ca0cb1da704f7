package postgres

import "context"

// Spoil runs SQL on the store's database.
func (s *Store) Spoil(ctx context.Context, text string) error {
	_, err := s.people.Exec(ctx, text)
	return err
}
