package api

import "reflect"

// StrictJSON checks a body against the type of v.
func StrictJSON(body []byte, v any, lenient bool) error {
	if e := strictJSON(body, shapeOf(reflect.TypeOf(v)), lenient); e != nil {
		return e
	}
	return nil
}
