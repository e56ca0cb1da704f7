package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/job"
)

// changes are the fields that differ between two revisions, by path; nil stands for no document.
func changes(before, after *job.Definition) []takt.FieldChange {
	return differences(flat(before), flat(after))
}

// differences are the paths whose values differ.
func differences(a, b map[string]json.RawMessage) []takt.FieldChange {
	paths := make([]string, 0, len(a)+len(b))
	for p := range a {
		paths = append(paths, p)
	}
	for p := range b {
		if _, both := a[p]; !both {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	var out []takt.FieldChange
	for _, p := range paths {
		if !bytes.Equal(a[p], b[p]) {
			out = append(out, takt.FieldChange{Field: p, Before: masked(p, a[p]), After: masked(p, b[p])})
		}
	}
	return out
}

// masked is the value of a field as people may read it; the two of a change are compared before.
func masked(path string, v json.RawMessage) json.RawMessage {
	inner, isParams := strings.CutPrefix(path, "spec.params")
	if !isParams || len(v) == 0 {
		return v
	}
	return job.MaskAt(inner, v)
}

// flat is a document's labels and spec as paths of values; lists are values, but for named schedules.
func flat(d *job.Definition) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	if d == nil {
		return out
	}
	spec := fromSpec(&d.Spec)
	named := spec.Schedules
	spec.Schedules = nil
	doc := map[string]any{"spec": spec}
	if len(d.Labels) > 0 {
		doc["metadata"] = map[string]any{"labels": d.Labels}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return out // it was read from JSON
	}
	flatten(out, "", text)
	for _, s := range named {
		if text, err := json.Marshal(s.Schedule()); err == nil {
			flatten(out, "spec.schedules["+s.Name+"]", text)
		}
	}
	return out
}

func flatten(out map[string]json.RawMessage, path string, v json.RawMessage) {
	var object map[string]json.RawMessage
	if json.Unmarshal(v, &object) != nil || len(object) == 0 {
		out[path] = v
		return
	}
	for name, part := range object {
		if path != "" {
			name = path + "." + name
		}
		flatten(out, name, part)
	}
}

func asError(err error) (*job.Error, bool) { return errors.AsType[*job.Error](err) }

// underField names the field of an error anew.
func underField(err error, field string) error {
	if e, ok := asError(err); ok {
		return e.WithField(field)
	}
	return err
}

// toldChanges words what changed since the revision that a caller knew: who, when, why, and each field.
func toldChanges(c *control.Changed) (detail string, fields []takt.ProblemError) {
	have := &c.Have
	detail = fmt.Sprintf("the job %q has revision %d, the change rests on %d", have.Definition.Name, have.Definition.Revision, c.Base.Definition.Revision)
	detail += "; newest change"
	if have.Change.By != "" {
		detail += " by " + have.Change.By
	}
	detail += " at " + have.Definition.UpdatedAt.Time().Format(time.RFC3339)
	if have.Change.Reason != "" {
		detail += fmt.Sprintf(" (%.200s)", have.Change.Reason)
	}
	for _, x := range changes(&c.Base.Definition, &have.Definition) {
		fields = append(fields, takt.ProblemError{Field: x.Field, Message: "was " + valueText(x.Before) + ", is " + valueText(x.After) + " now"})
	}
	return detail, fields
}

// valueText is a value of a document, cut to what fits into a sentence.
func valueText(v json.RawMessage) string {
	const most = 80
	if len(v) == 0 {
		return "absent"
	}
	if len(v) <= most {
		return string(v)
	}
	return strings.ToValidUTF8(string(v[:most]), "") + "…"
}

// setProblem is the answer to a refused set: each fault with its document.
func setProblem(set *job.SetError) (kind job.Kind, code, detail string, fields []takt.ProblemError) {
	kind, code = set.Items[0].Err.Kind, set.Items[0].Err.Code
	for _, x := range set.Items {
		if x.Err.Kind == job.KindInvalid || x.Err.Kind == job.KindInternal && kind != job.KindInvalid {
			kind = x.Err.Kind
		}
		if x.Err.Code != code {
			code = "documents_refused"
		}
		at := fmt.Sprintf("documents[%d].job", x.Index)
		if x.Calendar {
			at = fmt.Sprintf("calendars[%d].calendar", x.Index)
		}
		f := takt.ProblemError{Field: at, Message: x.Err.Message, Code: x.Err.Code, Hint: x.Err.Hint}
		if x.Err.Field != "" {
			f.Field += "." + x.Err.Field
		}
		if changed, ok := errors.AsType[*control.Changed](x.Err); ok {
			var more []takt.ProblemError
			f.Message, more = toldChanges(changed)
			fields = append(fields, f)
			for _, m := range more {
				fields = append(fields, takt.ProblemError{Field: at + "." + m.Field, Message: m.Message})
			}
			continue
		}
		fields = append(fields, f)
	}
	return kind, code, refusedText(set.Refused()), fields
}

func refusedText(n int) string {
	if n == 1 {
		return "1 document of the set is refused; nothing was written"
	}
	return fmt.Sprintf("%d documents of the set are refused; nothing was written", n)
}
