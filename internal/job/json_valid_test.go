package job

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func sameVerdict(t interface{ Errorf(string, ...any) }, text []byte) {
	if got, want := ValidJSON(text), json.Valid(text); got != want {
		t.Errorf("%.200q: %v, encoding/json says %v", text, got, want)
	}
}

// Texts made of what means something in JSON are judged as encoding/json does it, whole and with one byte changed.
func TestValidJSON(t *testing.T) {
	parts := []string{"{", "}", "[", "]", ",", ":", `"`, `\`, `"a"`, `"é"`, `"\u00e9"`, `"\u00G9"`, `"\n"`, `"\x"`, "true", "false", "null", "nul",
		"0", "-0", "01", "1.5", "-", "1.", ".5", "1e5", "1e", "1E+3", "1e-", "+1", " ", "\n", "\t", "\r", "\x00", "\x1f", "\x7f", "\xff", `{"k":1}`, "[1,2]", `{"a":[{}]}`}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 12).Draw(t, "parts"), ""))
		sameVerdict(t, text)
		value, err := json.Marshal(rapid.Custom(anyValue).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		sameVerdict(t, value)
		value[rapid.IntRange(0, len(value)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		sameVerdict(t, value)
		sameVerdict(t, value[:rapid.IntRange(0, len(value)).Draw(t, "cut")])
	})
}

// Each escape and each hexadecimal digit, by every byte.
func TestValidJSONBytes(t *testing.T) {
	for c := range 256 {
		for _, around := range []string{`"@"`, `"\@"`, `"\u@000"`, `"\u000@"`, "@", "1@", "-@", "1.@", "1e@", "[@1]", "[1@]", `{"a"@1}`, "true@"} {
			sameVerdict(t, []byte(strings.Replace(around, "@", string([]byte{byte(c)}), 1)))
		}
	}
}

func TestValidJSONDepth(t *testing.T) {
	for _, n := range []int{deepest - 1, deepest, deepest + 1} {
		sameVerdict(t, []byte(strings.Repeat("[", n)+strings.Repeat("]", n)))
		sameVerdict(t, []byte(strings.Repeat(`{"a":`, n)+"1"+strings.Repeat("}", n)))
	}
}

func anyValue(t *rapid.T) any {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return rapid.SliceOfN(rapid.Custom(anyValue), 0, 3).Draw(t, "list")
	case 1:
		return rapid.MapOfN(rapid.String(), rapid.Custom(anyValue), 0, 3).Draw(t, "object")
	case 2:
		return rapid.Float64().Draw(t, "number")
	case 3:
		return rapid.Bool().Draw(t, "flag")
	case 4:
		return nil
	}
	return rapid.String().Draw(t, "text")
}

func BenchmarkValidJSON(b *testing.B) {
	text := []byte(`{"n":208,"pad":"` + strings.Repeat("x", 80) + `"}`)
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			ValidJSON(text)
		}
	})
	b.Run("std", func(b *testing.B) {
		for b.Loop() {
			json.Valid(text)
		}
	})
}
