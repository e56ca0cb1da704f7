package postgres

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// plainArrays writes arrays of what commits bind by the thousand as the database takes them: at once, in place of element by
// element through interfaces. All else is its codec's.
type plainArrays struct{ *pgtype.ArrayCodec }

// PlanEncode makes plainArrays a pgtype.Codec.
func (c plainArrays) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format != pgtype.BinaryFormatCode {
		return c.ArrayCodec.PlanEncode(m, oid, format, value)
	}
	switch value.(type) {
	case []string:
		if oid == pgtype.TextArrayOID {
			return textsPlan{}
		}
	case []*string:
		if oid == pgtype.TextArrayOID {
			return someTextsPlan{}
		}
	case []int64:
		if oid == pgtype.Int8ArrayOID {
			return longsPlan{}
		}
	case [][16]byte:
		if oid == pgtype.UUIDArrayOID {
			return uuidsPlan{}
		}
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

// arrayTypes are the types of arrays with the codec, for a connection.
func arrayTypes(m *pgtype.Map) (types []*pgtype.Type) {
	for _, oid := range []uint32{pgtype.TextArrayOID, pgtype.Int8ArrayOID, pgtype.UUIDArrayOID} {
		if t, ok := m.TypeForOID(oid); ok {
			if codec, ok := t.Codec.(*pgtype.ArrayCodec); ok {
				types = append(types, &pgtype.Type{Name: t.Name, OID: oid, Codec: plainArrays{codec}})
			}
		}
	}
	return types
}

// The head of an array is its number of dimensions, whether there are NULLs, the type of its elements, how many and counted
// from what; before each element stands its length.
const arrayHead = 5 * 4

func appendHead(b []byte, element uint32, n, size int) []byte {
	b = slices.Grow(b, arrayHead+4*n+size)
	if n == 0 {
		return appendWords(b, 0, 0, element)
	}
	return appendWords(b, 1, 1, element, uint32(n), 1) //nolint:gosec // a number of rows
}

func appendWords(b []byte, words ...uint32) []byte {
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

func appendElement(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...) //nolint:gosec // far below 4 GiB
}

// as is the value that a plan was made for.
func as[T any](value any) (T, error) {
	all, is := value.(T)
	if !is {
		return all, fmt.Errorf("%T is not what this array was planned for", value)
	}
	return all, nil
}

type textsPlan struct{}

func (textsPlan) Encode(value any, b []byte) ([]byte, error) {
	all, err := as[[]string](value)
	size := 0
	for _, text := range all {
		size += len(text)
	}
	b = appendHead(b, pgtype.TextOID, len(all), size)
	for _, text := range all {
		b = appendElement(b, text)
	}
	return b, err
}

type someTextsPlan struct{}

func (someTextsPlan) Encode(value any, b []byte) ([]byte, error) {
	all, err := as[[]*string](value)
	size := 0
	for _, text := range all {
		if text != nil {
			size += len(*text)
		}
	}
	b = appendHead(b, pgtype.TextOID, len(all), size)
	for _, text := range all {
		if text == nil {
			b = appendWords(b, ^uint32(0))
			continue
		}
		b = appendElement(b, *text)
	}
	return b, err
}

type longsPlan struct{}

func (longsPlan) Encode(value any, b []byte) ([]byte, error) {
	all, err := as[[]int64](value)
	b = appendHead(b, pgtype.Int8OID, len(all), 8*len(all))
	for _, n := range all {
		b = binary.BigEndian.AppendUint64(appendWords(b, 8), uint64(n)) //nolint:gosec // its bits
	}
	return b, err
}

type uuidsPlan struct{}

func (uuidsPlan) Encode(value any, b []byte) ([]byte, error) {
	all, err := as[[][16]byte](value)
	b = appendHead(b, pgtype.UUIDOID, len(all), 16*len(all))
	for i := range all {
		b = append(appendWords(b, 16), all[i][:]...)
	}
	return b, err
}
