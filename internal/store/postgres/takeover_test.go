//go:build unix

package postgres_test

import (
	"testing"

	"github.com/taktsched/takt/internal/store"
	"github.com/taktsched/takt/internal/store/storetest"
)

func BenchmarkTakeOver(b *testing.B) {
	storetest.TakeOver(b, func(b *testing.B) (store.Store, store.Fence) { return benchStore(b) })
}
