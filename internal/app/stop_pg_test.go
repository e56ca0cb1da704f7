package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/taktsched/takt/internal/store/postgres/pgtest"
)

// A server stops although its database hangs, and although calls and the upkeep have asked it something.
func TestStopWhileTheDatabaseHangs(t *testing.T) {
	pg := pgtest.New(t, pgtest.Options{})
	m := join(t, pg.Database(t))
	m.until("/readyz", ready)
	if err := pg.Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := pg.Resume(); err != nil {
			t.Error(err)
		}
	}()
	m.until("/readyz", func(status int, _ string) bool { return status == http.StatusServiceUnavailable })
	took := m.stop()
	t.Logf("stopped in %s", took)
	if took > 12*time.Second { // it is to take five; what it waited for would take more than twenty
		t.Errorf("the stop took %s", took)
	}
}
