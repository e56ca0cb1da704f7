package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// cachedFor is how long names that were looked up are taken for true: a person presses the key several times.
const cachedFor = 10 * time.Second

// cachedNames is a file of the cache.
type cachedNames struct {
	At    time.Time          `json:"at"`
	Names []cobra.Completion `json:"names"`
}

// nameCache keeps the names of one kind, of one server and namespace as one token sees them. Without a directory for caches it
// keeps nothing; no fault of the cache is one of the completion.
type nameCache struct{ file string }

func newNameCache(parts ...string) nameCache {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nameCache{}
	}
	hash := sha256.New()
	for _, p := range parts {
		hash.Write([]byte(p + "\x00")) // a hash takes everything
	}
	return nameCache{file: filepath.Join(dir, "takt", "names", hex.EncodeToString(hash.Sum(nil)[:16])+".json")}
}

func (c nameCache) read(now time.Time) ([]cobra.Completion, bool) {
	var kept cachedNames
	text, err := os.ReadFile(c.file)
	if err != nil || json.Unmarshal(text, &kept) != nil {
		return nil, false
	}
	old := now.Sub(kept.At)
	return kept.Names, old >= 0 && old < cachedFor
}

func (c nameCache) write(now time.Time, names []cobra.Completion) {
	if c.file == "" || os.MkdirAll(filepath.Dir(c.file), 0o700) != nil {
		return
	}
	text, err := json.Marshal(cachedNames{At: now, Names: names})
	if err != nil {
		return
	}
	tmp, err := os.CreateTemp(filepath.Dir(c.file), ".names-*") // mode 0600
	if err != nil {
		return
	}
	_, writeErr := tmp.Write(text)
	if tmp.Close() != nil || writeErr != nil || os.Rename(tmp.Name(), c.file) != nil {
		_ = os.Remove(tmp.Name()) // the names are looked up again
	}
}
