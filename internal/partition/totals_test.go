package partition

import (
	"reflect"
	"testing"
)

// A counter that is added to Stats must be added up, too.
func TestTotalsAddEveryCounter(t *testing.T) {
	says := map[string]bool{"Partition": true, "Owned": true, "Epoch": true, "Seq": true, "CommitP99": true, "PlanBehind": true}
	var one, sum Stats
	fill(reflect.ValueOf(&one).Elem())
	sum.Add(&one)
	sum.Add(&one)
	v := reflect.ValueOf(sum)
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		if says[name] {
			continue
		}
		for _, n := range counts(f) {
			if n != 2 {
				t.Errorf("%s is %d after adding 1 twice", name, n)
			}
		}
	}
}

func fill(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Int64:
			f.SetInt(1)
		case reflect.Struct:
			fill(f)
		}
	}
}

func counts(v reflect.Value) (all []int64) {
	if v.Kind() == reflect.Int64 {
		return []int64{v.Int()}
	}
	for i := range v.NumField() {
		all = append(all, counts(v.Field(i))...)
	}
	return all
}
