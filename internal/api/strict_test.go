package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/api"
)

// What the check lets pass decodes, and to the same value whatever the order of equal keys would be:
// a decoder that refuses unknown fields takes it too.
func FuzzStrictJSON(f *testing.F) {
	f.Add([]byte(document("1h", "1h")))
	f.Add([]byte(document(`{"a":1}`, ` [ { } , [ ] , "\"\\\/\b\n" , "\ud83d\ude00" , 1e5 , -0.5 , true , null ] `)))
	for _, c := range hostile {
		if len(c.q.body) < 4096 {
			f.Add([]byte(c.q.body))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, lenient := range []bool{false, true} {
			for _, v := range []any{new(takt.Job), new(takt.ReportRequest)} {
				err := api.StrictJSON(body, v, lenient)
				if err != nil {
					continue
				}
				d := json.NewDecoder(bytes.NewReader(body))
				if !lenient {
					d.DisallowUnknownFields()
				}
				if err := d.Decode(v); err != nil {
					t.Errorf("passed and does not decode: %v\n%s", err, body)
				}
				if bytes.Contains(body, []byte{0}) || strings.Contains(fmt.Sprintf("%+v", v), "\x00") {
					t.Errorf("passed with NUL: %q", body)
				}
			}
		}
	})
}

// Objects with many keys are judged like small ones, and fast.
func TestManyKeys(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"params":{`)
	for i := range 50_000 {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	good := strings.TrimSuffix(b.String(), ",") + `}}`
	if err := api.StrictJSON([]byte(good), takt.TriggerRequest{}, false); err != nil {
		t.Errorf("50,000 keys: %v", err)
	}
	for _, twice := range []int{0, 5, 49_999} {
		bad := fmt.Sprintf(`%s"k%d":1}}`, b.String(), twice)
		if err := api.StrictJSON([]byte(bad), takt.TriggerRequest{}, false); err == nil {
			t.Errorf("key k%d twice: passed", twice)
		}
	}
}

func TestDepth(t *testing.T) {
	nested := func(n int) []byte {
		return []byte(`{"params":` + strings.Repeat(`[`, n) + strings.Repeat(`]`, n) + `}`)
	}
	if err := api.StrictJSON(nested(64), takt.TriggerRequest{}, false); err != nil {
		t.Errorf("64 deep: %v", err)
	}
	if err := api.StrictJSON(nested(65), takt.TriggerRequest{}, false); err == nil {
		t.Error("65 deep: passed")
	}
}

// A hint leads from a near miss to the right name.
func TestNearMisses(t *testing.T) {
	for given, want := range map[string]string{
		`{"parms":1}`: "did you mean params?", `{"Params":1}`: "write params", `{"PARAMS":1}`: "write params", `{"paramſ":1}`: "write params", `{"paramz":1}`: "did you mean params?",
	} {
		r := newRig(t, nil)
		if p := refused(r, post(one+"/trigger", given), 422, "unknown_field"); !strings.Contains(p.Hint, want) {
			t.Errorf("%s: hint %q", given, p.Hint)
		}
	}
	r := newRig(t, nil)
	long := strings.Repeat("ä", 200)
	p := refused(r, post(one+"/trigger", `{"`+long+`\n":1}`), 422, "unknown_field")
	if len(p.Errors[0].Field) > 80 || strings.ContainsAny(p.Errors[0].Field, "\n\x00") {
		t.Errorf("field %q", p.Errors[0].Field)
	}
}
