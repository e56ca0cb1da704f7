package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"
)

// What is written at once is what the driver reads again, and NULL stays what it was.
func TestPlainArrays(t *testing.T) {
	m := pgtype.NewMap()
	m.RegisterTypes(arrayTypes(pgtype.NewMap()))
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOf(rapid.Ptr(rapid.String(), true)).Draw(t, "some")
		roundTrip(t, m, pgtype.TextArrayOID, some, func(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b })
		same(t, m, pgtype.TextArrayOID, rapid.SliceOf(rapid.String()).Draw(t, "texts"))
		same(t, m, pgtype.Int8ArrayOID, rapid.SliceOf(rapid.Int64()).Draw(t, "longs"))
		same(t, m, pgtype.UUIDArrayOID, rapid.SliceOf(rapid.Custom(func(t *rapid.T) [16]byte {
			return [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		})).Draw(t, "ids"))
	})
}

func same[T comparable](t *rapid.T, m *pgtype.Map, oid uint32, all []T) {
	roundTrip(t, m, oid, all, func(a, b T) bool { return a == b })
}

// roundTrip writes an array behind what is there, and reads it.
func roundTrip[T any](t *rapid.T, m *pgtype.Map, oid uint32, all []T, equal func(a, b T) bool) {
	b, err := m.Encode(oid, pgtype.BinaryFormatCode, all, []byte("before"))
	if err != nil || string(b[:6]) != "before" {
		t.Fatalf("%v: %q, %v", all, b, err)
	}
	var got []T
	if err := pgtype.NewMap().Scan(oid, pgtype.BinaryFormatCode, b[6:], &got); err != nil {
		t.Fatalf("%v: %v", all, err)
	}
	if len(got) != len(all) {
		t.Fatalf("%d became %d", len(all), len(got))
	}
	for i := range all {
		if !equal(all[i], got[i]) {
			t.Fatalf("%v became %v at %d", all[i], got[i], i)
		}
	}
}

func TestPlainArraysOfNothing(t *testing.T) {
	m := pgtype.NewMap()
	m.RegisterTypes(arrayTypes(m))
	for _, oid := range []uint32{pgtype.TextArrayOID, pgtype.Int8ArrayOID} {
		if b, err := m.Encode(oid, pgtype.BinaryFormatCode, []int64(nil), []byte{}); b != nil || err != nil {
			t.Errorf("nothing at all as %d: %v, %v; it is NULL", oid, b, err)
		}
	}
}
