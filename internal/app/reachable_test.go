package app_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/partition"
	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/sqlite"
)

// Who could not be reached by servers of other machines is refused; dead ones, and those of this machine, hinder nobody.
func TestUnreachableAddressIsRefused(t *testing.T) {
	lease := partition.Lease{TTL: 3 * time.Second} // P = 1 s
	for _, test := range []struct {
		name, other, advertise string
		beats                  bool
		refused                bool
	}{
		{"a server of another machine", "http://192.0.2.7:7070", "", true, true},
		{"with an address that others reach", "http://192.0.2.7:7070", "http://192.0.2.8:7070", true, false},
		{"a dead server of another machine", "http://192.0.2.7:7070", "", false, false},
		{"a server of this machine", "http://127.0.0.1:7171", "", true, false},
		{"a server that nobody reaches", "", "", true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "takt.db"), NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			other := store.Server{Incarnation: "other-1", Name: "other", Address: test.other}
			if _, err := st.PutServer(ctx, other); err != nil {
				t.Fatal(err)
			}
			if test.beats {
				wg.Go(func() {
					for tick := time.NewTicker(50 * time.Millisecond); ; {
						select {
						case <-ctx.Done():
							tick.Stop()
							return
						case <-tick.C:
							if _, err := st.PutServer(ctx, other); err != nil && ctx.Err() == nil {
								t.Error(err)
							}
						}
					}
				})
			}
			a, err := app.New(t.Context(), app.Config{Store: st, Listen: "127.0.0.1:0", Advertise: test.advertise, Lease: lease})
			if e, ok := errors.AsType[*job.Error](err); test.refused != (ok && e.Code == "address_unreachable" && strings.Contains(e.Message, test.other)) {
				t.Errorf("%v", err)
			}
			if a != nil {
				err = a.Close()
			}
			stop()
			wg.Wait()
			if e := st.Close(); e != nil {
				t.Error(e)
			}
			if err != nil && !test.refused {
				t.Error(err)
			}
		})
	}
}
