package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/taktsched/takt"
)

// Whatever field is set, also one that came later: what is written by hand is what encoding/json writes.
func TestAnswersHaveEveryField(t *testing.T) {
	check := func(what string, v any) {
		t.Helper()
		got, quick := answerText(v)
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil || quick && want.String() != string(got) {
			t.Errorf("%s: wrote %s, want %s, %v", what, got, want.String(), err)
		}
	}
	each := func(of any, wrap func(reflect.Value) any) {
		typ := reflect.TypeOf(of)
		for i := range typ.NumField() {
			v := reflect.New(typ).Elem()
			fill(v.Field(i))
			check(typ.Name()+"."+typ.Field(i).Name, wrap(v))
		}
	}
	each(takt.PollResponse{}, func(v reflect.Value) any { return v.Addr().Interface() })
	each(takt.ReportResponse{}, func(v reflect.Value) any { return v.Addr().Interface() })
	each(takt.TriggeredMany{}, func(v reflect.Value) any { return v.Addr().Interface() })
	each(takt.Assignment{}, func(v reflect.Value) any {
		return &takt.PollResponse{Assignments: []takt.Assignment{v.Interface().(takt.Assignment)}}
	})
	each(takt.TriggeredItem{}, func(v reflect.Value) any {
		return &takt.TriggeredMany{Items: []takt.TriggeredItem{v.Interface().(takt.TriggeredItem)}}
	})
}

// fill sets a value to one that is not zero.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMilli(1790000000123).UTC()))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`{"a":[1]}`))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
	}
}
