package main

import (
	"errors"
	"testing"

	"github.com/taktsched/takt/internal/bench"
)

// Lost instants are exit code 1, and how many there were.
func TestLostInstants(t *testing.T) {
	t.Parallel()
	f, ok := errors.AsType[*failure](lostInstants(&bench.Fired{Expected: 40, Lost: 30}))
	if !ok || f.code != exitNegative || f.what != "30 of 40 instants did not run" {
		t.Errorf("%+v", f)
	}
	if err := lostInstants(&bench.Fired{Expected: 40}); err != nil {
		t.Error(err)
	}
}
