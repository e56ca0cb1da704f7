package jobfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/schedule"
)

// partPath cuts the part of a document out of the path of a field: what is judged as one.
var partPath = regexp.MustCompile(`^((?:metadata|spec)\.[^.\[]+)(?:\[(\d+)\])?`)

// rules judge the parts of a document in which the tags found no fault, so that a person sees every fault at once.
type rules struct {
	doc   *Doc
	known map[string]bool // parts with a fault
	raw   map[string]map[string]json.RawMessage
}

// checkRules applies what no tag can say, as the server does when the document is written.
func (d *Doc) checkRules(text []byte, namespace string, known Errors) (faults Errors) {
	r := rules{doc: d, known: map[string]bool{}, raw: map[string]map[string]json.RawMessage{}}
	var parts struct {
		Metadata, Spec map[string]json.RawMessage
	}
	if !decodes(json.NewDecoder(bytes.NewReader(text)), &parts) {
		return nil // something is no mapping: that is known
	}
	r.raw["metadata"], r.raw["spec"] = parts.Metadata, parts.Spec
	for _, e := range known {
		field := e.Field
		if e.lacks != "" {
			field = join(field, e.lacks)
		}
		r.blank(field)
	}
	read, faults := r.read()
	_, found := Definition(namespace, &read)
	for _, e := range found {
		if !r.blanked(e.Field) {
			faults = append(faults, d.At(e.Field, e.Message, e.Hint))
		}
	}
	return faults
}

// blank makes the part around a faulty field one of which nothing is judged, but that is there: other parts may ask for it.
func (r *rules) blank(field string) {
	if _, section := r.raw[field]; section {
		r.known[field] = true
		return
	}
	m := partPath.FindStringSubmatch(field)
	if m == nil {
		return
	}
	r.known[strings.ToLower(m[0])] = true // JSON is read whatever the case, and a wrong one is a fault
	kind, name, _ := strings.Cut(m[1], ".")
	var list []json.RawMessage
	var i int
	switch _, err := fmt.Sscan(m[2], &i); {
	case err == nil && json.Unmarshal(r.raw[kind][name], &list) == nil && i < len(list):
		list[i] = r.keyed(name, field, m[0], list[i])
		if text, err := json.Marshal(list); err == nil { // they were read from JSON
			r.raw[kind][name] = text
		}
	case name == "schedule":
		r.raw[kind][name] = json.RawMessage("{}")
	case name == "schedules":
		r.known[strings.ToLower(m[1])] = true
		r.raw[kind][name] = json.RawMessage("[{}]")
	default:
		r.known[strings.ToLower(m[1])] = true
		delete(r.raw[kind], name)
	}
}

// itemKeys are what items of lists are told apart by: one is judged also where the rest of its item is not.
var itemKeys = map[string]string{"schedules": "name", "after": "job"}

// keyed is a blank item of a list, with its key when that is no part of what is at fault.
func (r *rules) keyed(list, faulty, item string, text json.RawMessage) json.RawMessage {
	key := itemKeys[list]
	at := item + "." + key
	var all map[string]json.RawMessage
	if faulty == item || faulty == at || r.known[at] || json.Unmarshal(text, &all) != nil || all[key] == nil {
		r.known[at] = true
		return json.RawMessage("null")
	}
	sound := map[string]json.RawMessage{key: all[key]}
	if list == "schedules" {
		sound["every"] = json.RawMessage(`"1h"`)
	}
	kept, err := json.Marshal(sound)
	if err != nil {
		return json.RawMessage("null")
	}
	return kept
}

func (r *rules) blanked(field string) bool {
	section, _, _ := strings.Cut(field, ".")
	m := partPath.FindStringSubmatch(strings.ToLower(field))
	if m == nil || r.known[section] || r.known[m[1]] {
		return m != nil || r.known[section]
	}
	if key := itemKeys[strings.TrimPrefix(m[1], "spec.")]; key != "" && field == m[0]+"."+key {
		return r.known[field]
	}
	return r.known[m[0]]
}

// read decodes the parts one by one, and tells what their types cannot hold.
func (r *rules) read() (read takt.Job, faults Errors) {
	for _, kind := range []string{"metadata", "spec"} {
		for _, name := range slices.Sorted(maps.Keys(r.raw[kind])) {
			next := read
			err := r.decode(kind, name, &next)
			if err != nil {
				faults = append(faults, r.doc.undecodable(kind+"."+name, err))
				r.blank(kind + "." + name)
				next = read
				err = r.decode(kind, name, &next)
			}
			if err == nil {
				read = next
			}
		}
	}
	return read, faults
}

// decode reads one part into a document.
func (r *rules) decode(kind, name string, into *takt.Job) error {
	value, there := r.raw[kind][name]
	if !there {
		return nil
	}
	text, err := json.Marshal(map[string]map[string]json.RawMessage{kind: {name: value}})
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// Passed are warnings about schedules that have no instant after now: they do not fire.
func (d *Doc) Passed(now time.Time) (warnings Errors) {
	check := func(s *takt.ScheduleSpec, at string) {
		if field := schedule.Passed(SpecOf(s), now); field != "" {
			message, hint := schedule.PassedText(field)
			warnings = append(warnings, d.At(at+"."+field, message, hint))
		}
	}
	if s := d.Job.Spec.Schedule; s != nil {
		check(s, "spec.schedule")
	}
	for i := range d.Job.Spec.Schedules {
		one := d.Job.Spec.Schedules[i].Schedule()
		check(&one, fmt.Sprintf("spec.schedules[%d]", i))
	}
	return warnings
}
