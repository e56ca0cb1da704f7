package app_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// Who gives a server a file or an address that it cannot use is told what to give.
func TestFaultsOfAStartSayWhatToDo(t *testing.T) {
	dir := t.TempDir()
	spaced := filepath.Join(dir, "spaced")
	if err := os.WriteFile(spaced, []byte("a token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none")
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := taken.Close(); err != nil {
			t.Error(err)
		}
	}()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "takt.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	const free = "127.0.0.1:0"
	for _, test := range []struct {
		name       string
		cfg        app.Config
		code, hint string
	}{
		{"port in use", app.Config{Store: st, Listen: taken.Addr().String()}, "listen_failed", "--listen"},
		{"no token file", app.Config{Store: st, Listen: free, TokenFile: none}, "bad_token_file", "openssl"},
		{"token with a space", app.Config{Store: st, Listen: free, TokenFile: spaced}, "bad_token_file", "openssl"},
		{"no file of a CA", app.Config{Store: st, Listen: free, PeerCA: none}, "bad_peer_ca", "--peer-ca"},
		{"no certificate of a CA", app.Config{Store: st, Listen: free, PeerCA: spaced}, "bad_peer_ca", "--peer-ca"},
		{"no port", app.Config{Store: st, Listen: free, Advertise: "http://127.0.0.1:99999"}, "bad_advertise", "port"},
		{"port 0", app.Config{Store: st, Listen: free, Advertise: "https://h:0"}, "bad_advertise", "port"},
	} {
		a, err := app.New(t.Context(), test.cfg)
		if err == nil {
			err = a.Close()
		}
		if e, ok := errors.AsType[*job.Error](err); !ok || e.Code != test.code || !strings.Contains(e.Hint, test.hint) {
			t.Errorf("%s: %v, want %s with a hint", test.name, err, test.code)
		}
	}
}
