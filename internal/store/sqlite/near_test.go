package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/taktsched/takt/internal/store/sqlite"
)

// Inbox pages are read on the connection that writes when it is free, and beside it when it is not.
func TestInboxPagesBesideCommits(t *testing.T) {
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "takt.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if _, err := s.InboxPage(t.Context(), 0, 10); err != nil {
					t.Error(err)
					return
				}
				if err := s.Ping(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.InboxPage(t.Context(), 0, 10); err == nil {
		t.Error("a closed database gave a page")
	}
}
