package storetest

import (
	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/store"
)

// lineageOf is what new partition rows of a store hold.
func lineageOf(tb TB, s store.Store) string {
	tb.Helper()
	l, is := s.(store.Lineage)
	if !is {
		return ""
	}
	name, err := l.Lineage(ctx)
	wantVerdict(tb, "Lineage", err, "ok")
	if name == "" {
		tb.Errorf("a store that has a lineage does not name it")
	}
	return name
}

// serverCases are about the rows of servers, and about what partition rows say of lineages.
var serverCases = []examCase{
	{"Servers/rows", func(tb TB, s store.Store) {
		all, err := s.Servers(ctx)
		wantVerdict(tb, "Servers", err, "ok")
		equal(tb, "none", len(all), 0)
		b := store.Server{Incarnation: "b-1", Name: "b", Address: "http://b:7070", Key: "secret", Build: "1.2", Level: 3,
			Unreachable: []string{"a-1", "ü\""}, SitsOut: true, Beat: 77}
		a := store.Server{Incarnation: "a-1", Name: "a"}
		for want := int64(1); want <= 3; want++ {
			beat, err := s.PutServer(ctx, b)
			wantVerdict(tb, "PutServer", err, "ok")
			equal(tb, "beat", beat, want)
		}
		_, err = s.PutServer(ctx, a)
		wantVerdict(tb, "PutServer", err, "ok")
		a.Beat, b.Beat = 1, 3
		all, err = s.Servers(ctx)
		wantVerdict(tb, "Servers", err, "ok")
		equal(tb, "rows by incarnation", all, []store.Server{a, b})
		b.Unreachable, b.SitsOut, b.Address, b.Key, b.Build, b.Level, b.Name = nil, false, "", "k", "", 0, "c"
		_, err = s.PutServer(ctx, b)
		wantVerdict(tb, "PutServer", err, "ok")
		b.Beat = 4
		all, _ = s.Servers(ctx)
		equal(tb, "everything is what was put last", all, []store.Server{a, b})
	}},
	{"Servers/remove", func(tb TB, s store.Store) {
		left := func(what string, want ...string) {
			tb.Helper()
			all, err := s.Servers(ctx)
			wantVerdict(tb, "Servers", err, "ok")
			got := []string{}
			for _, v := range all {
				got = append(got, v.Incarnation)
			}
			equal(tb, what, got, append([]string{}, want...))
		}
		for _, name := range []string{"a", "b", "b"} {
			_, err := s.PutServer(ctx, store.Server{Incarnation: name, Name: "n"})
			wantVerdict(tb, "PutServer", err, "ok")
		}
		wantVerdict(tb, "RemoveServer", s.RemoveServer(ctx, "b", 1), "ok")
		left("one that has beaten since it was judged", "a", "b")
		wantVerdict(tb, "RemoveServer", s.RemoveServer(ctx, "b", 2), "ok")
		left("one whose beat stands still", "a")
		wantVerdict(tb, "RemoveServer", s.RemoveServer(ctx, "b", 2), "ok")
		wantVerdict(tb, "RemoveServer", s.RemoveServer(ctx, "a", 0), "ok")
		left("its own, whatever the beat")
		beat, err := s.PutServer(ctx, store.Server{Incarnation: "a", Name: "n"})
		wantVerdict(tb, "PutServer", err, "ok")
		if beat < 1 {
			tb.Errorf("a row that came back has beat %d", beat)
		}
		left("back again", "a")
	}},
	{"Servers/what is no text", func(tb TB, s store.Store) {
		for _, bad := range []store.Server{
			{}, {Incarnation: "a\x00"}, {Incarnation: "a", Name: "\xff"}, {Incarnation: "a", Unreachable: []string{"\x00"}},
			{Incarnation: "a", Address: "\x00"}, {Incarnation: "a", Key: "\x00"}, {Incarnation: "a", Build: "\x00"},
		} {
			_, err := s.PutServer(ctx, bad)
			wantVerdict(tb, "PutServer", err, "rejected/bad_server")
		}
		all, err := s.Servers(ctx)
		wantVerdict(tb, "Servers", err, "ok")
		equal(tb, "rows", len(all), 0)
	}},
	{"Partitions/settle", func(tb TB, s store.Store) {
		d := sit(tb, s)
		stale, other := d.f, d.f
		stale.Epoch, other.Owner = stale.Epoch-1, "you"
		for _, f := range []store.Fence{stale, other, {Partition: 1}} {
			d.unchanged("settle by another", "fenced/fence", func() error { return s.SettlePartition(ctx, f, "x") })
		}
		d.unchanged("settle on what is no text", "rejected/bad_lineage", func() error { return s.SettlePartition(ctx, d.f, "\x00") })
		before := lineageOf(tb, s)
		wantVerdict(tb, "SettlePartition", s.SettlePartition(ctx, d.f, "another history"), "ok")
		rows, err := s.PartitionRows(ctx)
		wantVerdict(tb, "PartitionRows", err, "ok")
		equal(tb, "settled", []string{rows[0].Lineage, rows[1].Lineage}, []string{"another history", before})
		equal(tb, "the store's own lineage", lineageOf(tb, s), before)
		equal(tb, "what the next owner sees", acquire(tb, s, "you", 0).Lineage, "another history")
		d.f = rows[0].Fence
		d.refused("commit of the owner before", "fenced/fence", engine.Batch{})
	}},
}
