package api

import "reflect"

// StrictJSON checks a body against the type of v.
func StrictJSON(body []byte, v any, lenient bool) error {
	if e := strictJSON(body, shapeOf(reflect.TypeOf(v)), lenient); e != nil {
		return e
	}
	return nil
}

// Metrics gives kind and help of every metric.
func Metrics() map[string]string {
	all := map[string]string{}
	for name, m := range meters {
		all[name] = map[bool]string{true: "counter ", false: "gauge "}[m.kind == counter] + m.help
	}
	return all
}
